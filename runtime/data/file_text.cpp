#include "runtime/data/file_text.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <new>
#include <system_error>
#include <utility>

#include "runtime/data/data_file.h"

namespace piper::runtime {
namespace {

namespace fs = std::filesystem;

/// The time that a pipe may be without a writer: one that is started beside this process opens it a
/// moment later.
constexpr std::chrono::seconds kWriterComes{3};

/// Reads a file or a pipe to its end, or up to the limit. It opens without waiting, so that it
/// notices a pipe without a writer, and a regular file that blocks its reader, such as the log of
/// the kernel.
class Reader {
 public:
  explicit Reader(const std::string& path)
      : file_(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
    struct stat status{};
    pipe_ = good() && fstat(file_, &status) == 0 && S_ISFIFO(status.st_mode);
  }
  ~Reader() {
    if (good()) close(file_);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  bool good() const { return file_ >= 0; }

  bool append(std::uint64_t limit, Text& out, std::string& reason) {
    const auto deadline = std::chrono::steady_clock::now() + kWriterComes;
    unsigned char buffer[1 << 16];
    bool written = !pipe_;  // a writer is or was there
    while (out.size() < limit) {
      const ssize_t count = read(
          file_, buffer,
          static_cast<std::size_t>(std::min<std::uint64_t>(sizeof(buffer), limit - out.size())));
      if (count > 0) {
        out.insert(out.end(), buffer, buffer + count);
        written = true;
      } else if (count < 0 && errno == EAGAIN) {
        if (!pipe_) {
          reason = "it gives its bytes only as they come, and has no end";
          return false;
        }
        written = true;
        wait(-1);
      } else if (count < 0 && errno != EINTR) {
        reason = error_text(errno);
        return false;
      } else if (count == 0 && written) {
        return true;
      } else if (count == 0) {
        const Event event = wait(100);
        written = event == Event::end;
        if (event != Event::none || std::chrono::steady_clock::now() < deadline) continue;
        reason = "it is a pipe without a writer";
        return false;
      }
    }
    return true;
  }

 private:
  enum class Event : std::uint8_t { none, bytes, end };
  Event wait(int milliseconds) const {
    pollfd ready{file_, POLLIN, 0};
    if (poll(&ready, 1, milliseconds) <= 0) return Event::none;
    return (ready.revents & POLLIN) != 0 ? Event::bytes : Event::end;
  }

  int file_;
  bool pipe_ = false;
};

bool append(const std::string& path, std::uint64_t limit, Text& out, std::string& reason) {
  Reader reader(path);
  if (!reader.good()) reason = error_text(errno);
  return reader.good() && reader.append(limit, out, reason);
}

/// The number of bytes read to find the size of a file that reports none.
constexpr std::uint64_t kReadForSize = std::uint64_t{1} << 24;

std::nullopt_t unreadable(const std::string& what, const std::string& reason, Failure& failure) {
  // Patterns that a shell would have expanded.
  const bool pattern = what.find_first_of("*?") != std::string::npos,
             home = what.starts_with("~") || what.find("/~") != std::string::npos;
  failure = {.code = kDataUnreadable,
             .message = "cannot read `" + what + "`: " + reason,
             .hint = pattern
                         ? "patterns are not expanded: name a folder, and all files in it are read"
                     : home ? "`~` is not expanded: write the whole path"
                            : "name a file that can be read, or a folder of such files"};
  return std::nullopt;
}

/// The reason why an entry of a folder is not text; empty for a file, and for a folder, whose files
/// are text.
std::string no_text(const fs::directory_entry& entry) {
  std::error_code error;
  const fs::file_status status = entry.status(error);
  switch (status.type()) {
    case fs::file_type::regular: return {};
    case fs::file_type::directory:
      return entry.is_symlink(error) ? "it is a link to a folder, which is not followed" : "";
    case fs::file_type::not_found:
      return entry.is_symlink(error) ? "it is a link to nothing" : "it is gone";
    case fs::file_type::fifo: return "it is a pipe, which is read only if the data line names it";
    case fs::file_type::socket: return "it is a socket";
    case fs::file_type::block:
    case fs::file_type::character: return "it is a device";
    default: return error_text(error.value());
  }
}

}  // namespace

std::optional<std::vector<std::string>> files_below(const std::string& path, Failure& failure) {
  std::vector<std::string> files;
  std::error_code error;
  if (path.empty()) {
    failure = {.code = kDataUnreadable,
               .message = "the name of the data is empty",
               .hint = "name a file that can be read, or a folder of such files"};
    return std::nullopt;
  }
  if (!fs::is_directory(path, error)) {
    // A device has no end, and bytes cannot be requested from a socket.
    if (fs::is_character_file(path, error) || fs::is_block_file(path, error))
      return unreadable(path, "it is a device", failure);
    if (fs::is_socket(path, error)) return unreadable(path, "it is a socket", failure);
    files.push_back(path);
    return files;
  }
  // Entries that are not text, with the reason: skipped silently they would not be missed.
  std::vector<std::pair<std::string, std::string>> refused;
  fs::recursive_directory_iterator it(path, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    const bool hidden = it->path().filename().native().starts_with('.');
    std::error_code ignored;
    if (hidden && it->is_directory(ignored)) it.disable_recursion_pending();
    if (hidden) continue;
    if (std::string reason = no_text(*it); !reason.empty()) {
      refused.emplace_back(it->path().native(), std::move(reason));
    } else if (it->is_regular_file(ignored)) {
      files.push_back(it->path().native());
    }
  }
  if (error) return unreadable(path, error_text(error.value()), failure);
  if (!refused.empty()) {
    const auto& [name, reason] = *std::min_element(refused.begin(), refused.end());
    unreadable(name, reason, failure);
    failure.hint =
        "every file of a folder must be text: remove other files, or hide them behind a name that begins with a dot";
    return std::nullopt;
  }
  if (files.empty()) return unreadable(path, "the folder holds no files", failure);
  std::sort(files.begin(), files.end());
  return files;
}

std::optional<Text> read_text(const std::string& path, Failure& failure, std::uint64_t limit) {
  try {
    const auto files = files_below(path, failure);
    if (!files) return std::nullopt;
    // If the room is requested at once a text that does not fit is refused; grown bit by bit, it
    // would take the machine's memory first.
    std::uintmax_t bytes = 0;
    for (const std::string& file : *files) {
      std::error_code error;
      const std::uintmax_t size = fs::file_size(file, error);
      bytes += error ? 0 : size;
    }
    Text text;
    bytes = std::min<std::uintmax_t>(bytes, limit);
    if (bytes > text.max_size()) return unreadable(path, "it does not fit into memory", failure);
    text.reserve(bytes);
    for (const std::string& file : *files) {
      if (text.size() == limit) break;
      std::string reason;
      if (!append(file, limit, text, reason)) return unreadable(file, reason, failure);
    }
    return text;
  } catch (const std::bad_alloc&) {
    return unreadable(path, "it does not fit into memory", failure);
  } catch (const fs::filesystem_error& error) {
    return unreadable(path, error_text(error.code().value()), failure);
  }
}

std::optional<std::uint64_t> text_size(const std::string& path, Failure& failure) {
  try {
    const auto files = files_below(path, failure);
    if (!files) return std::nullopt;
    std::uint64_t bytes = 0;
    for (const std::string& file : *files) {
      std::error_code error;
      // The writer of a pipe would find its reader gone.
      if (fs::is_fifo(file, error)) return kUnknownSize;
      std::uintmax_t size = fs::file_size(file, error);
      if (error) return unreadable(file, error_text(error.value()), failure);
      if (size == 0) {  // also a file that the system generates on reading
        Text text;
        std::string reason;
        if (!append(file, kReadForSize, text, reason)) return unreadable(file, reason, failure);
        size = text.size();
      } else if (!Reader(file).good()) {
        return unreadable(file, error_text(errno), failure);
      }
      bytes += size;
    }
    return bytes;
  } catch (const fs::filesystem_error& error) {
    return unreadable(path, error_text(error.code().value()), failure);
  }
}

std::optional<std::uint64_t> find_byte_from(std::span<const unsigned char> text, std::int64_t bound,
                                            std::optional<std::int64_t> ignored) {
  const auto at = std::find_if(text.begin(), text.end(), [&](unsigned char byte) {
    return byte >= bound && byte != ignored;
  });
  if (at == text.end()) return std::nullopt;
  return static_cast<std::uint64_t>(at - text.begin());
}

bool holds_window(const std::string& path, std::uint64_t size, std::uint64_t seq, Failure& failure,
                  std::string_view unit) {
  if (size > seq) return true;
  failure = {.code = kDataTooShort,
             .message = "`" + path + "` has `" + std::to_string(size) + "` " + std::string(unit) +
                        (size == 1 ? "" : "s") + "; a window of `seq: " + std::to_string(seq) +
                        "` needs `" + std::to_string(seq + 1) + "`",
             .hint = "give more text or a smaller `seq`"};
  return false;
}

std::shared_ptr<const Text> TextFiles::read(const std::string& path, Failure& failure) {
  std::shared_ptr<const Text>& text = texts_[path];
  if (text) return text;
  if (auto found = read_text(path, failure)) text = std::make_shared<const Text>(std::move(*found));
  return text;
}

}  // namespace piper::runtime
