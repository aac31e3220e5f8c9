#pragma once
// Entries of earlier sessions, in a file that several sessions may write at once.
//
//   HistoryFile file("/home/me/.local/state/piper/history");
//   for (std::string& entry : file.read()) history.add(std::move(entry));
//   if (const std::string error = file.append(":grid zbv p=4"); !error.empty()) say(error);
//
// One entry is one line, a line end inside of it `\n` and a backslash `\\`. Other users cannot read
// it.

#include <string>
#include <string_view>
#include <vector>

namespace piper::repl {

class HistoryFile {
 public:
  static constexpr std::size_t kKept = 1000;

  /// Empty: nothing is kept.
  explicit HistoryFile(std::string path) : path_(std::move(path)) {}

  /// The last kKept entries, the newest last; older ones are removed once the file is twice as
  /// long. None if there is no file.
  std::vector<std::string> read() const;
  /// The reason why it could not be written; empty if it was.
  std::string append(std::string_view entry) const;

 private:
  std::string path_;
};

}  // namespace piper::repl
