// Every code has a page and a test that provokes it.

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <sstream>

#include "ir/diagnostics/diagnostics.h"
#include "tests/support/golden.h"

namespace piper {
namespace {

namespace fs = std::filesystem;

/// The codes named at the start of the lines of `tests/diagnostics/<name>`; `#` begins a comment.
std::set<Code> codes_of(const std::string& name) {
  std::set<Code> codes;
  std::istringstream lines(test::read_text("tests/diagnostics/" + name).value_or("missing"));
  for (std::string line; std::getline(lines, line);) {
    std::string word = line.substr(0, line.find_first_of(" #"));
    if (word.empty()) continue;
    std::optional<Code> code = parse_code(word);
    EXPECT_TRUE(code.has_value()) << name << ": " << line;
    if (code) codes.insert(*code);
  }
  return codes;
}

/// All test sources and test data in one text.
std::string all_tests() {
  std::string text;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator("tests")) {
    if (entry.is_regular_file() && entry.path().extension() != ".txt")
      text += test::read_text(entry.path()).value_or("") + '\n';
  }
  return text;
}

/// True when `word` stands in `text` and does not go on as a longer name.
bool mentions(const std::string& text, const std::string& word) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    auto next = static_cast<unsigned char>(text[at + word.size()]);
    if (std::isalnum(next) == 0 && next != '_') return true;
  }
  return false;
}

TEST(Coverage, EveryCodeHasAPage) {
  std::set<Code> exempt = codes_of("codes_without_page.txt");
  for (const CodeInfo& info : all_codes()) {
    std::string code = code_text(info.code);
    std::string_view text = page(info.code);
    EXPECT_NE(text.empty(), !exempt.contains(info.code))
        << (text.empty() ? "write ir/diagnostics/pages/" + code + ".md"
                         : "remove " + code + " from tests/diagnostics/codes_without_page.txt");
    if (text.empty()) continue;
    EXPECT_TRUE(text.starts_with("# " + code + ": "))
        << "ir/diagnostics/pages/" << code << ".md must begin with `# " << code << ": `";
    for (std::string_view section : {"## A confusing case", "## The fix"}) {
      EXPECT_TRUE(text.find(section) != std::string_view::npos) << code << " lacks " << section;
    }
  }
}

TEST(Coverage, EveryPageHasACode) {
  for (const fs::directory_entry& entry : fs::directory_iterator("ir/diagnostics/pages")) {
    EXPECT_TRUE(parse_code(entry.path().stem().string()).has_value()) << entry.path();
  }
}

TEST(Coverage, EveryCodeIsTested) {
  std::string tests = all_tests();
  std::set<Code> exempt = codes_of("codes_without_test.txt");
  for (const CodeInfo& info : all_codes()) {
    bool tested =
        mentions(tests, code_text(info.code)) || mentions(tests, "Code::" + std::string(info.name));
    EXPECT_NE(tested, exempt.contains(info.code))
        << code_text(info.code) << " (" << info.name << ") "
        << (tested ? "is tested: remove it from tests/diagnostics/codes_without_test.txt"
                   : "is in no test");
  }
}

}  // namespace
}  // namespace piper
