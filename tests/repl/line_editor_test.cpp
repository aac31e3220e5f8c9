// The line editor on a terminal whose input is a list of keys.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "frontend/repl/line_editor.h"

namespace piper::test {
namespace {

class Typed : public repl::Terminal {
 public:
  explicit Typed(std::deque<std::string> bytes) : bytes_(std::move(bytes)) {}
  Wait read(std::string& bytes, int) override {
    if (bytes_.empty()) return Wait::closed;
    bytes = bytes_.front();
    bytes_.pop_front();
    return bytes.empty() ? Wait::nothing : Wait::bytes;
  }
  void write(std::string_view bytes) override { drawn += bytes; }
  std::size_t columns() const override { return 20; }
  void set_raw(bool on) override { raw = on; }
  void suspend() override {}

  std::string drawn;
  bool raw = false;

 private:
  std::deque<std::string> bytes_;
};

/// The entries that result from the keys; `-` at the end of the input.
std::vector<std::string> entries(std::deque<std::string> bytes) {
  Typed terminal(std::move(bytes));
  repl::LineEditor editor(terminal);
  editor.goes_on = [](std::string_view text) { return text.ends_with('{'); };
  editor.complete = [](std::string_view text) {
    repl::Completion found{text.rfind(' ') + 1, {}};
    for (const char* word : {":grid", ":grip", "p="}) {
      if (std::string_view(word).starts_with(text.substr(found.begin)))
        found.candidates.emplace_back(word);
    }
    return found;
  };
  std::vector<std::string> list;
  for (;;) {
    const auto entry = editor.read("> ", "| ");
    EXPECT_FALSE(terminal.raw);
    if (!entry) break;
    list.push_back(*entry);
  }
  return list;
}

TEST(LineEditor, EntersTypedLines) {
  using List = std::vector<std::string>;
  const std::pair<std::deque<std::string>, List> cases[] = {
      {{"ab\x1b[D", "c\r"}, {"acb"}},
      {{"a {\r", "b }\r"}, {"a {\nb }"}},
      {{"one\r", "\x1b[A\x1b[A\x7f\r"}, {"one", "on"}},
      {{"one\rtwo\r"}, {"one", "two"}},
      {{"ab\x03", "c\r"}, {"", "c"}},
      {{":g\t", "d\r"}, {":grid"}},
      {{"x p\t", "4\r"}, {"x p=4"}},
      {{"\x1b[200~a\nb\n\x1b[201~\r"}, {"a\nb\n"}},
      {{"\x1b", "", "a\r"}, {"a"}},
      {{"a\x04", "\x1b[D\x04\r", "\x04"}, {""}},
      {{"half"}, {}},
  };
  for (const auto& [bytes, expected] : cases)
    EXPECT_EQ(entries(bytes), expected) << testing::PrintToString(bytes);
}

TEST(LineEditor, LinesThatWrapAreDrawnWhereTheyStand) {
  Typed terminal({"0123456789012345678", "\x1b[D\x1b[D", "\r"});
  repl::LineEditor editor(terminal);
  EXPECT_EQ(editor.read("> ", "| "), "0123456789012345678");
  // 21 columns on a terminal of 20: the cursor goes to the second row, two to the left it is at the
  // end of the first, and up from there.
  EXPECT_THAT(terminal.drawn, testing::HasSubstr("> 0123456789012345678\r\x1b[1C"));
  EXPECT_THAT(terminal.drawn, testing::HasSubstr("> 0123456789012345678\r\x1b[1A\x1b[19C"));
}

TEST(LineEditor, NewsAreSaidBetweenKeys) {
  Typed terminal({"a", "", "b\r"});
  repl::LineEditor editor(terminal);
  int said = 0;
  editor.has_news = [&] { return said == 0; };
  editor.say = [&] {
    EXPECT_FALSE(terminal.raw);
    ++said;
  };
  EXPECT_EQ(editor.read("> ", "| "), "ab");
  EXPECT_EQ(said, 1);
}

}  // namespace
}  // namespace piper::test
