#include "frontend/source/source_manager.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace piper::source {

namespace {

std::string reason(int number) {
  std::string text = std::strerror(number);
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z')
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  return text;
}

}  // namespace

ReadResult RealFileSystem::read(std::string_view path, std::uint64_t limit) const {
  const std::string name(path);
  // Reading waits for a pipe, but not for a regular file; the kernel's log claims to be one.
  struct stat status{};
  const bool waits = stat(name.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
  const int descriptor = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | (waits ? 0 : O_NONBLOCK));
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      descriptor < 0 ? nullptr : fdopen(descriptor, "rb"), std::fclose);
  if (file == nullptr) return {std::nullopt, reason(errno), 0};
  // Read until the end instead of asking for the size: pipes and /proc have none.
  std::string text;
  char buffer[64 * 1024];
  errno = 0;
  while (std::size_t count = std::fread(buffer, 1, sizeof buffer, file.get())) {
    text.append(buffer, count);
    if (text.size() > limit) return {std::nullopt, "", text.size()};
  }
  if (std::ferror(file.get()) != 0)
    return {
        std::nullopt,
        errno == EAGAIN ? "it gives its bytes only as they come, and has no end" : reason(errno),
        0};
  return {std::move(text), "", 0};
}

ReadResult UnblockingFileSystem::read(std::string_view path, std::uint64_t limit) const {
  struct stat status{};
  const bool waits =
      stat(std::string(path).c_str(), &status) == 0 &&
      (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode) || S_ISSOCK(status.st_mode));
  return waits ? ReadResult{std::nullopt, "it is a pipe or a device, which is not waited for", 0}
               : files_.read(path, limit);
}

ReadResult MemoryFileSystem::read(std::string_view path, std::uint64_t limit) const {
  auto found = files_.find(path);
  if (found == files_.end()) return {std::nullopt, reason(ENOENT), 0};
  if (found->second.size() > limit) return {std::nullopt, "", found->second.size()};
  return {found->second, "", 0};
}

std::optional<FileId> open(std::string_view path, SourceRange named_at,
                           const FileSystem& file_system, SourceTable& files,
                           DiagnosticSink& sink) {
  if (std::optional<FileId> known = files.find(path); known && files.has_text(*known)) return known;
  const bool is_dag = path.ends_with(".pir");
  const std::uint64_t most = is_dag ? kMaxDagSize : kMaxFileSize;
  ReadResult read = file_system.read(path, most);
  if (read.text) return files.add(std::string(path), std::move(*read.text));
  if (read.too_large > 0) {
    auto&& builder =
        sink.report(Code::file_too_large, named_at, "`{}` has more than {} MiB", path, most >> 20);
    if (!is_dag) builder.hint("a program is a text of a few hundred lines; is this its data?");
  } else {
    auto&& builder =
        sink.report(Code::unreadable_file, named_at, "cannot read `{}`: {}", path, read.error);
    if (named_at.valid())
      builder.hint(
          "`use a.b` reads `a/b.pipe` beside this file; names of the standard library begin with `std`");
  }
  return std::nullopt;
}

}  // namespace piper::source
