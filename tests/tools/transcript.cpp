#include "tests/tools/transcript.h"

#include <algorithm>
#include <regex>
#include <sstream>

#include "frontend/tools/driver.h"
#include "tests/support/library_declarations.h"

namespace piper::test {
namespace {

/// Files in memory, and behind them the disk.
class LayeredFiles : public source::FileSystem {
 public:
  explicit LayeredFiles(const std::map<std::string, std::string>& files) : files_(files) {}
  source::ReadResult read(std::string_view path, std::uint64_t limit) const override {
    if (const auto found = files_.find(std::string(path)); found != files_.end()) {
      source::ReadResult result;
      result.text = found->second;
      return result;
    }
    return disk_.read(path, limit);
  }

 private:
  const std::map<std::string, std::string>& files_;
  source::RealFileSystem disk_;
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

/// Replaces text that differs from one run to the next.
std::string without_times(const std::string& text) {
  static const std::regex seconds("[0-9.]+ s(,|\n)"), speed("[0-9.]+ ?[kMG]? (tokens|samples)/s"),
      left("left [0-9:]+"), rate("(builtin|MKL|oneDNN) +[0-9.]+\n");
  const std::string without_speeds =
      std::regex_replace(std::regex_replace(text, seconds, "# s$1"), speed, "# $1/s");
  return std::regex_replace(std::regex_replace(without_speeds, left, "left #"), rate, "$1 #\n");
}

void append_lines(std::string& to, const std::string& text) {
  to += text;
  if (!text.empty() && text.back() != '\n') to += "\n\\ no line break at the end\n";
}

}  // namespace

ToolResult run_tool(const std::vector<std::string>& words,
                    const std::map<std::string, std::string>& files,
                    std::map<std::string, std::string> environment, unsigned columns) {
  environment.emplace("PIPER_MATH", "builtin");
  std::ostringstream out, err;
  const LayeredFiles layered(files);
  tools::Console console{
      out, err, layered, std::move(environment), {}, [columns] { return columns; }};
  const int code = tools::run(words, console);
  return {code, std::move(out).str(), std::move(err).str()};
}

std::string replay_transcript(std::string_view text,
                              const std::filesystem::path& temporary_folder) {
  std::map<std::string, std::string> files;
  std::string* file = nullptr;
  bool commands = false;
  std::string result;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("$ ")) {
      if (commands) continue;  // output of an earlier run
      result += line + "\n";
      if (line.starts_with("=== ")) {
        file = &files[line.substr(4)];
      } else if (file) {
        *file += line + "\n";
      }
      continue;
    }
    commands = true;
    std::istringstream stream(line.substr(2));
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    const auto program = std::find(words.begin(), words.end(), "piper");
    // Behind the `=` alone: a variable may be called TMPDIR.
    for (auto word = words.begin(); word != words.end(); ++word) {
      const std::size_t value = word < program ? word->find('=') + 1 : 0;
      *word =
          word->substr(0, value) + replaced(word->substr(value), "TMP", temporary_folder.string());
    }
    std::map<std::string, std::string> environment;
    for (auto word = words.begin(); word != program; ++word)
      environment[word->substr(0, word->find('='))] = word->substr(word->find('=') + 1);
    const ToolResult run = run_tool(
        program == words.end() ? words : std::vector<std::string>(program + 1, words.end()), files,
        environment);
    std::string printed;
    append_lines(printed, run.out);
    if (!run.err.empty()) printed += "-- err\n";
    append_lines(printed, run.err);
    result += line + "\n" +
              replaced(without_library(without_times(printed)), temporary_folder.string(), "TMP") +
              "-- exit " + std::to_string(run.exit_code) + "\n";
  }
  return result;
}

}  // namespace piper::test
