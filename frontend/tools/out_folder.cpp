#include "frontend/tools/out_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

namespace piper::tools {
namespace {

/// This run, as named in the lock file: `process 4711 on node7 since 2026-11-22 18:40:02 UTC`.
std::string this_run() {
  char host[256] = "", since[64] = "";
  gethostname(host, sizeof host - 1);
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::strftime(since, sizeof since, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return "process " + std::to_string(getpid()) + " on " + host + " since " + since + "\n";
}

/// The text of the holder, without characters that could disturb a terminal; empty before it
/// writes.
std::string holder_in(int file) {
  char text[512];
  const ssize_t count = pread(file, text, sizeof text, 0);
  std::string holder;
  for (ssize_t i = 0; i < count && text[i] != '\n'; ++i)
    holder += static_cast<unsigned char>(text[i]) < 0x20 ? '?' : text[i];
  return holder;
}

/// Whether the path still leads to the open file: whoever had it removes it at the end.
bool is_at(const std::string& path, const struct stat& open_file) {
  struct stat there{};
  return stat(path.c_str(), &there) == 0 && there.st_dev == open_file.st_dev &&
         there.st_ino == open_file.st_ino;
}

}  // namespace

OutFolder::~OutFolder() {
  if (file_ < 0) return;
  unlink(path_.c_str());  // before others can have the lock
  close(file_);
}

bool OutFolder::hold(Session& session) {
  const std::string& folder = session.arguments().out_folder;
  return folder.empty() || (session.make_folder(folder) && lock(session, folder));
}

bool OutFolder::lock(Session& session, const std::string& folder) {
  path_ = folder + "/run.lock";
  const auto refuse = [&](const std::string& cause) {
    session.sink()
        .report(Code::unwritable_output, SourceRange(), "`{}` cannot be locked: {}", path_, cause)
        .hint("give `--out` a folder that can be written, on a disk that knows locks");
    return false;
  };
  for (;;) {
    // Without waiting, even if it is a pipe; a link would empty the file that it leads to.
    const int file =
        open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0644);
    if (file < 0) return refuse(errno == ELOOP ? "it is a link" : reason(errno));
    struct stat status{};
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
      close(file);
      return refuse("it is no plain file");
    }
    if (flock(file, LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      const std::string holder = holder_in(file);
      close(file);
      if (error != EWOULDBLOCK) return refuse(reason(error));
      session.sink()
          .report(Code::folder_in_use, SourceRange(), "another run writes to `{}`: {}", folder,
                  holder.empty() ? "it has just begun" : holder)
          .hint("wait for its end, or give `--out` another folder");
      return false;
    }
    if (!is_at(path_, status)) {
      close(file);
      continue;
    }
    file_ = file;
    const std::string text = this_run();
    if (ftruncate(file_, 0) != 0 ||
        pwrite(file_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
      return refuse(reason(errno));
    return true;
  }
}

}  // namespace piper::tools
