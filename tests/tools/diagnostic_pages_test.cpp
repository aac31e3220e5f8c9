// Every example on the page of a diagnostic is run, and gives the output on the page.
//
//   pipe-error   a program that `piper check` refuses with the page's code
//   pipe         a program for which `piper check` prints nothing
//   pir-error    an edit of a legal `.pir` text (`<!-- plan NAME -->`) that `piper check` refuses with the page's code, and the lines of its output
//                that begin with `error` or `warning`
//   pir          one for which it prints nothing
//   console      commands of the shell, each with lines that it prints, in their order; `...` stands for anything. Under `A confusing case` one of them
//                prints the page's code
//
// A page whose code no example can provoke is listed in tests/diagnostics/codes_without_example.txt
// with the reason; a block without a kind is not run, so only such pages have any. Comments before
// a block are those of `page_blocks.h`; `piper explain` shows none of them.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "ir/diagnostics/diagnostics.h"
#include "tests/support/golden.h"
#include "tests/support/text_edit.h"
#include "tests/tools/page_blocks.h"
#include "tests/tools/shell.h"

namespace piper::test {
namespace {

constexpr const char* kWithoutExample = "tests/diagnostics/codes_without_example.txt";

std::string page_path(const std::string& code) { return "ir/diagnostics/pages/" + code + ".md"; }

/// `...` in the pattern stands for anything.
bool line_matches(const std::string& pattern, const std::string& line) {
  std::size_t at = 0, from = 0;
  for (bool first = true;; first = false) {
    const std::size_t gap = pattern.find("...", from);
    const std::string part = pattern.substr(from, gap == std::string::npos ? gap : gap - from);
    const bool last = gap == std::string::npos;
    if (first && last) return part == line;
    if (first && !line.starts_with(part)) return false;
    if (last) return line.size() >= at + part.size() && line.ends_with(part);
    const std::size_t found = first ? 0 : line.find(part, at);
    if (found == std::string::npos) return false;
    at = found + part.size();
    from = gap + 3;
  }
}

/// The first line of `shown` that `printed` lacks behind the ones before it.
std::string missing_line(const std::vector<std::string>& shown, const std::string& printed) {
  std::istringstream lines(printed);
  for (const std::string& pattern : shown) {
    if (pattern == "...") continue;
    bool found = false;
    for (std::string line; !found && std::getline(lines, line);)
      found = line_matches(pattern, line);
    if (!found) return pattern;
  }
  return {};
}

struct Command {
  std::string line;
  std::vector<std::string> shown;
};

std::vector<Command> commands_of(const PageBlock& block) {
  std::vector<Command> commands;
  std::istringstream lines(block.text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("$ ")) {
      commands.push_back({line.substr(2), {}});
    } else if (!commands.empty()) {
      commands.back().shown.push_back(line);
    } else {
      ADD_FAILURE() << "a console block begins with `$ `";
    }
  }
  return commands;
}

/// A page with its code, and the fault of its blocks: empty, or the program that was run with its
/// output.
class Page {
 public:
  explicit Page(std::string code)
      : code_(std::move(code)), blocks_(blocks_of(read_text(page_path(code_)).value_or(""))) {}

  const std::vector<PageBlock>& blocks() const { return blocks_; }
  static bool is_example(const PageBlock& block) {
    return block.kind == "pipe-error" || block.kind == "pir-error" ||
           (block.kind == "console" && block.section == "A confusing case");
  }

  std::string wrong_with(const PageBlock& block) const {
    const auto printed = [&] { return text_of(check_block(block, "text")); };
    if (block.kind == "pipe-error")
      return says_code(codes_of(check_block(block, "json")))
                 ? ""
                 : "does not give the code:\n" + printed();
    if (block.kind == "pipe")
      return codes_beside_notices(block) == block.gives ? "" : "is not clean:\n" + printed();
    if (block.kind == "pir-error" || block.kind == "pir") return wrong_with_plan(block);
    if (block.kind == "console") return wrong_with_console(block);
    return block.kind.empty()
               ? "is run by nobody: mark it, or name the page in " + std::string(kWithoutExample)
               : "is of no kind that is run: " + block.kind;
  }

 private:
  bool says_code(const std::vector<std::string>& codes) const {
    return std::find(codes.begin(), codes.end(), code_) != codes.end();
  }
  static std::string text_of(const ToolResult& result) { return result.out + result.err; }

  std::string wrong_with_plan(const PageBlock& block) const {
    std::string edits, error;
    std::vector<std::string> told;
    std::istringstream lines(block.text);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("error ") || line.starts_with("warning ")) {
        told.push_back("..." + line);
      } else {
        edits += line + "\n";
      }
    }
    const std::string text = edited(
        read_text("tests/verify/testdata/legal/" + block.plan + ".pir").value_or(""), edits, error);
    if (!error.empty()) return error;
    const std::map<std::string, std::string> files = {{"block.pir", text}};
    const std::string printed = text_of(run_tool({"check", "block.pir"}, files));
    const bool as_said = block.kind == "pir"
                             ? printed.empty()
                             : printed.find(" " + code_ + ": ") != std::string::npos;
    if (!as_said) return "does not give what the page says:\n" + printed;
    const std::string missing = missing_line(told, printed);
    return missing.empty() ? "" : "does not print `" + missing + "`, but\n" + printed;
  }

  std::string wrong_with_console(const PageBlock& block) const {
    const TemporaryFolder folder;
    for (const auto& [name, text] : block.files) folder.write(name, text);
    bool told = false;
    for (const Command& command : commands_of(block)) {
      const ProcessResult run = shell(
          folder, "export HOME=\"$PWD\" PATH=\"${0%/*}:$PATH\"; { " + command.line + "\n} 2>&1");
      const std::string& said = run.out;
      if (!is_example(block) && run.exit_code != 0) return "`" + command.line + "` fails:\n" + said;
      told = told || said.find(code_) != std::string::npos;
      const std::string missing = missing_line(command.shown, said);
      if (!missing.empty())
        return "`" + command.line + "` does not print `" + missing + "`, but\n" + said;
    }
    return told || !is_example(block) ? "" : "does not print the code";
  }

  std::string code_;
  std::vector<PageBlock> blocks_;
};

/// The codes at the start of its lines; each has a reason behind `#`.
std::set<std::string> codes_without_example() {
  std::set<std::string> codes;
  std::istringstream lines(read_text(kWithoutExample).value_or(""));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#")) continue;
    const std::size_t end = line.find(" # ");
    EXPECT_NE(end, std::string::npos) << kWithoutExample << ": no reason: " << line;
    EXPECT_TRUE(parse_code(line.substr(0, end)).has_value())
        << kWithoutExample << ": no code: " << line;
    codes.insert(line.substr(0, end));
  }
  return codes;
}

TEST(DiagnosticPages, EveryExampleGivesTheCodeOfItsPage) {
  const std::set<std::string> without = codes_without_example();
  for (const CodeInfo& info : all_codes()) {
    const std::string code = code_text(info.code);
    const Page page(code);
    bool has_example = false;
    for (const PageBlock& block : page.blocks()) {
      has_example = has_example || Page::is_example(block);
      if (block.kind.empty() && without.contains(code)) continue;
      const std::string wrong = page.wrong_with(block);
      if (!wrong.empty()) ADD_FAILURE() << page_path(code) << ":" << block.line << " " << wrong;
    }
    EXPECT_NE(has_example, without.contains(code))
        << (has_example ? "remove " + code + " from " + kWithoutExample
                        : page_path(code) + " has no example");
  }
}

TEST(DiagnosticPages, ExplainShowsNoComments) {
  for (const CodeInfo& info : all_codes()) {
    for (const char* format : {"text", "json"}) {
      const ToolResult result = run_tool({"explain", code_text(info.code), "--format", format});
      EXPECT_EQ(result.exit_code, 0);
      EXPECT_NE(result.out.find("## The fix"), std::string::npos) << result.out;
      EXPECT_EQ(result.out.find("<!--"), std::string::npos) << result.out;
    }
  }
}

}  // namespace
}  // namespace piper::test
