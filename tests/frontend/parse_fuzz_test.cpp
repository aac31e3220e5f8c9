// The parser on damaged programs: it ends, its ranges lie in the file, and faults are reported.

#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>

#include "frontend/ast/walk.h"
#include "frontend/parse/parse.h"
#include "tests/support/golden.h"
#include "tests/support/random_cases.h"

namespace piper {
namespace {

const std::vector<std::string>& programs() {
  static const std::vector<std::string> list = [] {
    std::vector<std::string> texts;
    for (const char* name : {"gpt", "megatron", "moe", "schedules"}) {
      texts.push_back(
          test::read_text("tests/frontend/testdata/parse/programs/" + std::string(name) + ".pipe")
              .value());
    }
    return texts;
  }();
  return list;
}

/// Parses and checks everything that must hold for any text at all.
void check(const std::string& text) {
  LocationTable table;
  DiagnosticSink sink(table);
  FileId file = table.files().add("fuzz.pipe", text);
  ast::Module module = parse::parse(table.files(), file, sink);
  bool has_error_node = false;
  auto size = static_cast<std::uint32_t>(text.size());
  ast::walk(module, [&](SourceRange range, bool is_error) {
    EXPECT_EQ(range.file, file);
    EXPECT_LE(range.begin, range.end);
    EXPECT_LE(range.end, size);
    has_error_node |= is_error;
  });
  EXPECT_TRUE(!has_error_node || sink.has_errors()) << "an error node without a diagnostic";
  for (const Diagnostic& diagnostic : sink.sorted()) {
    EXPECT_TRUE(diagnostic.range.begin <= diagnostic.range.end && diagnostic.range.end <= size);
    EXPECT_FALSE(diagnostic.message.empty());
    for (const char* leak : {"mismatched", "extraneous", "no viable", "missing ",
                             "token recognition", "<EOF>", "SEMI"}) {
      EXPECT_EQ(diagnostic.message.find(leak), std::string::npos) << diagnostic.message;
    }
  }
  print(module, table.files());
  render_text(sink.sorted(), table.files());
  render_json(sink.sorted(), table.files());
}

/// Rough tokens: words, numbers, strings, blanks, single signs. Joined they are the text again.
std::vector<std::string> pieces(const std::string& text) {
  std::vector<std::string> list;
  for (std::size_t i = 0; i < text.size();) {
    auto is_word = [&](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    };
    std::size_t end = i + 1;
    if (is_word(text[i])) {
      while (end < text.size() && is_word(text[end])) ++end;
    } else if (text[i] == ' ') {
      while (end < text.size() && text[end] == ' ') ++end;
    }
    list.push_back(text.substr(i, end - i));
    i = end;
  }
  return list;
}

std::string join(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& piece : list) text += piece;
  return text;
}

/// Every prefix of short programs; of long ones about a thousand.
TEST(ParseFuzz, PrefixesOfEveryProgram) {
  for (const std::string& program : programs()) {
    for (std::size_t size = 0; size < program.size(); size += 1 + program.size() / 1000) {
      check(program.substr(0, size));
      if (testing::Test::HasFailure()) FAIL() << program.substr(0, size);
    }
  }
}

TEST(ParseFuzz, MovedTokens) {
  static const std::vector<std::string> kWords = {
      "(",     ")",    "[",     "]",    "{",     "}",     ";",    "\n",     ",",   ":",  "=",
      ".",     "..",   "->",    "&",    "-",     "not",   "if",   "else",   "for", "in", "on",
      "into",  "over", "by",    "with", "model", "order", "rank", "cursor", "at",  "F",  "BW",
      "place", "use",  "train", "\"",   "1",     "25MB",  "x",    "//"};
  test::for_each_case(1500, [](test::Random& random) {
    std::vector<std::string> list = pieces(random.pick(programs()));
    for (std::int64_t count = random.between(1, 6); count > 0 && list.size() > 2; --count) {
      std::size_t at = random.below(list.size()), other = random.below(list.size());
      auto position = list.begin() + static_cast<std::ptrdiff_t>(at);
      switch (random.below(5)) {
        case 0: list.erase(position); break;
        case 1: list.insert(position, list[other]); break;
        case 2: std::swap(list[at], list[other]); break;
        case 3: list.insert(position, random.pick(kWords)); break;
        default: *position = random.pick(kWords); break;
      }
    }
    std::string text = join(list);
    check(text);
    if (testing::Test::HasFailure()) ADD_FAILURE() << text;
  });
}

TEST(ParseFuzz, ChangedBytes) {
  test::for_each_case(1000, [](test::Random& random) {
    std::string text = random.pick(programs());
    for (std::int64_t count = random.between(1, 20); count > 0 && !text.empty(); --count) {
      std::size_t at = random.below(text.size());
      switch (random.below(3)) {
        case 0: text[at] = static_cast<char>(random.below(256)); break;
        case 1: text.insert(at, 1, static_cast<char>(random.below(256))); break;
        default: text.erase(at, random.below(30)); break;
      }
    }
    check(text);
    if (testing::Test::HasFailure()) ADD_FAILURE() << text;
  });
}

TEST(ParseFuzz, Soup) {
  static const std::vector<std::string> kSoup = {
      "(",         ")",       "[",      "]",         "{",      "}",          ";",       "\n",
      ",",         ":",       "=",      ".",         "..",     "->",         "&",       "-",
      "+",         "@",       "not ",   "if ",       "then ",  "else ",      "for ",    "in ",
      "on ",       "into ",   "over ",  "by ",       "with ",  "model ",     "order ",  "rank ",
      "cursor ",   "at ",     "F ",     "BW ",       "place ", "use ",       "train ",  "def ",
      "schedule ", "mesh ",   "param ", "repeat ",   "let ",   "stage",      "mb",      " ",
      "1",         "0..3",    "x ",     "\"a\"",     "split ", "partition ", "weight ", "input ",
      "return ",   "stream ", "shard ", "replicate "};
  test::for_each_case(1500, [](test::Random& random) {
    std::string text;
    for (std::int64_t count = random.between(1, 60); count > 0; --count) text += random.pick(kSoup);
    check(text);
    if (testing::Test::HasFailure()) ADD_FAILURE() << text;
  });
}

/// A damaged program that is certainly outside the language must be reported. Each pair is a text
/// and its damage.
TEST(ParseFuzz, DamageIsReported) {
  test::for_each_case(800, [](test::Random& random) {
    std::vector<std::string> list = pieces(random.pick(programs()));
    // One bracket more or fewer outside comments and strings cannot be legal.
    std::vector<std::size_t> brackets;
    bool comment = false, string = false;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i] == "\n") comment = string = false;
      if (list[i] == "/" && i + 1 < list.size() && list[i + 1] == "/") comment = true;
      if (list[i] == "\"") string = !string;
      if (!comment && !string && std::string("()[]{}").find(list[i]) != std::string::npos &&
          list[i].size() == 1)
        brackets.push_back(i);
    }
    std::size_t at = random.pick(brackets);
    if (random.chance(0.5)) {
      list[at] = " ";
    } else {
      list[at] += list[at];
    }
    LocationTable table;
    DiagnosticSink sink(table);
    std::string text = join(list);
    parse::parse(table.files(), table.files().add("fuzz.pipe", text), sink);
    EXPECT_TRUE(sink.has_errors()) << text;
  });
}

}  // namespace
}  // namespace piper
