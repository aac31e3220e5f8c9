#pragma once
// Entries of earlier sessions, in a file that several sessions may write at once.
//
//   HistoryFile file("/home/me/.local/state/piper/history");
//   for (std::string& entry : file.read()) history.add(std::move(entry));
//   if (const std::string error = file.append(":grid zbv p=4"); !error.empty()) say(error);
//
// One entry is one line, a line end inside of it `\n` and a backslash `\\`. Nobody else may read it.

#include <string>
#include <string_view>
#include <vector>

namespace piper::repl {

class HistoryFile {
 public:
  static constexpr std::size_t kKept = 1000;

  /// Empty: nothing is kept.
  explicit HistoryFile(std::string path) : path_(std::move(path)) {}

  /// The last kKept entries, the newest last; what is older leaves the file once it is twice as long. None where there is no file.
  std::vector<std::string> read() const;
  /// Why it could not be written; empty: it was.
  std::string append(std::string_view entry) const;

 private:
  std::string path_;
};

}  // namespace piper::repl
