#include "frontend/repl/history_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "frontend/source/write_file.h"

namespace piper::repl {
namespace {

namespace fs = std::filesystem;

std::string to_line(std::string_view entry) {
  std::string line;
  for (const char c : entry) {
    if (c == '\n') {
      line += "\\n";
    } else {
      line += c == '\\' ? std::string("\\\\") : std::string(1, c);
    }
  }
  return line + "\n";
}

std::string from_line(std::string_view line) {
  std::string entry;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool escaped = line[i] == '\\' && i + 1 < line.size();
    entry += !escaped ? line[i] : line[i + 1] == 'n' ? '\n' : line[i + 1];
    i += escaped ? 1 : 0;
  }
  return entry;
}

/// Appends a text to a file, which is made if it is missing; returns the number of the error, or 0.
int append_to(const std::string& path, std::string_view text) {
  const int file =
      ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0600);
  if (file < 0) return errno;
  int error = 0;
  while (!text.empty() && error == 0) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno != EINTR) error = errno;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  ::close(file);
  return error;
}

}  // namespace

std::vector<std::string> HistoryFile::read() const {
  std::vector<std::string> entries;
  std::error_code unread;
  if (path_.empty() || !fs::is_regular_file(path_, unread)) return entries;
  std::ifstream in(path_, std::ios::binary);
  // Reads only the end of a file that is not a history, or that was never shortened.
  constexpr std::uintmax_t kMaxBytes = 4 << 20;
  if (const std::uintmax_t bytes = fs::file_size(path_, unread); !unread && bytes > kMaxBytes) {
    in.seekg(static_cast<std::streamoff>(bytes - kMaxBytes));
    in.ignore(static_cast<std::streamsize>(kMaxBytes), '\n');
  }
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) entries.push_back(from_line(line));
  }
  if (entries.size() <= kKept) return entries;
  const bool long_enough = entries.size() >= 2 * kKept;
  entries.erase(entries.begin(), entries.end() - kKept);
  if (!long_enough) return entries;
  std::string text;
  for (const std::string& entry : entries) text += to_line(entry);
  (void)source::write_file(path_, text);  // one that cannot be shortened is as good
  return entries;
}

std::string HistoryFile::append(std::string_view entry) const {
  if (path_.empty() || entry.empty()) return {};
  std::error_code unmade;
  fs::create_directories(fs::path(path_).parent_path(), unmade);
  const int error = append_to(path_, to_line(entry));
  return error == 0 ? ""
                    : std::string("what is typed is not kept for later sessions: `") + path_ +
                          "`: " + std::strerror(error);
}

}  // namespace piper::repl
