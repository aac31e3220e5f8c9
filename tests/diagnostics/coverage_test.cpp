// Every code has a page of its own and a test that provokes it.

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "ir/diagnostics/diagnostics.h"
#include "tests/support/golden.h"

namespace piper {
namespace {

namespace fs = std::filesystem;

/// Codes that no test can provoke, each with the reason. Keep it short.
const std::map<Code, std::string_view>& exempt_from_tests() {
  static const std::map<Code, std::string_view> list = {};
  return list;
}

/// All test sources and test data in one text.
std::string all_tests() {
  std::string text;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator("tests")) {
    if (entry.is_regular_file()) text += test::read_text(entry.path()).value_or("") + '\n';
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
  for (const CodeInfo& info : all_codes()) {
    std::string code = code_text(info.code);
    std::string_view text = page(info.code);
    EXPECT_TRUE(text.starts_with("# " + code + ": ")) << "ir/diagnostics/pages/" << code << ".md must begin with `# " << code << ": `";
    for (const char* section : {"## A confusing case", "## The fix"}) {
      EXPECT_NE(text.find(section), std::string_view::npos) << code << " lacks " << section;
    }
  }
}

TEST(Coverage, EveryPageHasACode) {
  std::size_t pages = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator("ir/diagnostics/pages")) {
    EXPECT_TRUE(parse_code(entry.path().stem().string()).has_value()) << entry.path();
    ++pages;
  }
  EXPECT_EQ(pages, all_codes().size());
}

TEST(Coverage, EveryCodeIsTested) {
  std::string tests = all_tests();
  for (const CodeInfo& info : all_codes()) {
    bool tested = mentions(tests, code_text(info.code)) || mentions(tests, "Code::" + std::string(info.name));
    EXPECT_NE(tested, exempt_from_tests().contains(info.code))
        << code_text(info.code) << " (" << info.name << ") " << (tested ? "is tested and exempt" : "is in no test");
  }
}

}  // namespace
}  // namespace piper
