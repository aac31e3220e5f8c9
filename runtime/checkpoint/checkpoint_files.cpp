#include "runtime/checkpoint/checkpoint_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace piper::runtime {
namespace {

namespace fs = std::filesystem;

/// The step of a folder's name; nothing for any other name, such as `step-007`.
std::optional<std::uint64_t> step_of(std::string_view name) {
  constexpr std::string_view kPrefix = "step-";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  std::uint64_t step = 0;
  const char* const end = name.data() + name.size();
  const auto [stopped, error] = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (error != std::errc() || stopped != end || step_folder(step) != name) return std::nullopt;
  return step;
}

bool is_complete(const std::string& folder) {
  struct stat status{};
  return lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         lstat((folder + "/" + kManifestName).c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

/// The names in a folder; none if it cannot be read.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    names.push_back(entry->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<Failure> remove_tree(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) return unwritable_checkpoint(path, error.value());
  return std::nullopt;
}

}  // namespace

std::string step_folder(std::uint64_t step) { return "step-" + std::to_string(step); }
std::string partial_folder(std::uint64_t step) { return "." + step_folder(step) + ".partial"; }

std::vector<std::uint64_t> complete_steps(const std::string& out_folder) {
  std::vector<std::uint64_t> steps;
  for (const std::string& name : names_in(out_folder)) {
    const auto step = step_of(name);
    if (step && is_complete(out_folder + "/" + name)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::optional<Failure> remove_partial_checkpoints(const std::string& out_folder) {
  for (const std::string& name : names_in(out_folder)) {
    const std::string_view text = name;
    const bool left =
        text.starts_with(".step-") && (text.ends_with(".partial") || text.ends_with(".removed"));
    if (!left) continue;
    if (auto failure = remove_tree(out_folder + "/" + name)) return failure;
  }
  return std::nullopt;
}

std::optional<Failure> move_checkpoints_aside(const std::string& out_folder,
                                              std::optional<std::uint64_t> after,
                                              std::string& kept_as) {
  kept_as.clear();
  for (const std::string& name : names_in(out_folder)) {
    const auto step = step_of(name);
    if (!step || (after && *step <= *after)) continue;
    for (unsigned number = 1; kept_as.empty(); ++number) {
      const std::string aside = out_folder + "/checkpoints." + std::to_string(number);
      if (mkdir(aside.c_str(), 0777) == 0) {
        kept_as = aside;
      } else if (errno != EEXIST) {
        return unwritable_checkpoint(aside, errno);
      }
    }
    const std::string from = out_folder + "/" + name, to = kept_as + "/" + name;
    if (rename(from.c_str(), to.c_str()) != 0) return unwritable_checkpoint(to, errno);
  }
  return std::nullopt;
}

std::optional<Failure> remove_old_checkpoints(const std::string& out_folder, std::uint64_t keep,
                                              std::optional<std::uint64_t> best) {
  const std::vector<std::uint64_t> steps = complete_steps(out_folder);
  if (keep == 0) return std::nullopt;
  for (std::size_t i = 0; i + keep < steps.size(); ++i) {
    if (best == steps[i]) continue;
    // A folder that is half removed must not look complete.
    const std::string from = out_folder + "/" + step_folder(steps[i]),
                      to = out_folder + "/." + step_folder(steps[i]) + ".removed";
    if (rename(from.c_str(), to.c_str()) != 0) return unwritable_checkpoint(to, errno);
    if (auto failure = remove_tree(to)) return failure;
  }
  return std::nullopt;
}

Failure unwritable_checkpoint(const std::string& path, int error) {
  const std::string reason = error == ELOOP    ? "it is a link"
                             : error == EMLINK ? "the file has a second name, a hard link"
                             : error == ENXIO  ? "it is no plain file"
                                               : std::strerror(error);
  return {
      .code = kOutputUnwritable,
      .message = "cannot write `" + path + "`: " + reason + "; earlier checkpoints are unchanged",
      .hint = "give `--out` a folder that can be written, on a disk with space left"};
}

PartialFolder::~PartialFolder() {
  if (folder_ >= 0) close(folder_);
}

std::optional<Failure> PartialFolder::open(const std::string& out_folder, std::uint64_t step) {
  path_ = out_folder + "/" + partial_folder(step);
  if (mkdir(path_.c_str(), 0777) != 0 && errno != EEXIST)
    return unwritable_checkpoint(path_, errno);
  folder_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder_ >= 0) return std::nullopt;
  const int error = errno;
  struct stat status{};
  const bool link = lstat(path_.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
  return unwritable_checkpoint(path_, link ? ELOOP : error);
}

std::optional<Failure> PartialFolder::commit(const std::string& complete) {
  if (fsync(folder_) != 0) return unwritable_checkpoint(path_, errno);
  if (rename(path_.c_str(), complete.c_str()) != 0) return unwritable_checkpoint(complete, errno);
  return std::nullopt;
}

WrittenFile::~WrittenFile() {
  if (file_ >= 0) close(file_);
}

int WrittenFile::create(const std::string& path) {
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  return file_ < 0 ? errno : 0;
}

int WrittenFile::open(const PartialFolder& folder, const std::string& name, std::uint64_t bytes) {
  // O_NONBLOCK: a FIFO is refused instead of being waited for.
  file_ = openat(folder.descriptor(), name.c_str(),
                 O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  if (file_ < 0) return errno;
  struct stat status{};
  if (fstat(file_, &status) != 0) return errno;
  if (!S_ISREG(status.st_mode)) return ENXIO;
  if (status.st_nlink > 1) return EMLINK;
  // All processes set the same size, so none cuts off bytes of another.
  return ftruncate(file_, static_cast<off_t>(bytes)) != 0 ? errno : 0;
}

int WrittenFile::write(std::uint64_t position, const void* from, std::uint64_t bytes) {
  const auto* const data = static_cast<const unsigned char*>(from);
  for (std::uint64_t written = 0; written < bytes;) {
    const ssize_t count =
        pwrite(file_, data + written, bytes - written, static_cast<off_t>(position + written));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return ENOSPC;
    written += static_cast<std::uint64_t>(count);
  }
  return 0;
}

int WrittenFile::finish() {
  if (fsync(file_) != 0) return errno;
  return close(std::exchange(file_, -1)) != 0 ? errno : 0;
}

int sync_folder(const std::string& path) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return errno;
  const int error = fsync(folder) != 0 ? errno : 0;
  close(folder);
  return error;
}

}  // namespace piper::runtime
