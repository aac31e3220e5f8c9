// Bytes of a terminal as keys; the text that is edited.

#include <gtest/gtest.h>

#include "frontend/repl/keys.h"
#include "frontend/repl/line_buffer.h"

namespace piper::test {
namespace {

using repl::Key;
using repl::KeyReader;
using repl::KeySort;

TEST(Keys, EachSequenceIsOneKeyInAnyPieces) {
  const std::pair<std::string, KeySort> cases[] = {
      {"a", KeySort::text},
      {"\xC3\xA9", KeySort::text},
      {"\r", KeySort::enter},
      {"\x7f", KeySort::backspace},
      {"\x1b[A", KeySort::up},
      {"\x1bOB", KeySort::down},
      {"\x1b[3~", KeySort::erase},
      {"\x1b[1;5C", KeySort::word_right},
      {"\x1b[99;99X", KeySort::unknown},
      {"\x03", KeySort::interrupt},
      {"\x04", KeySort::end_of_input},
      {"\x1b[200~a\r\nb\x1b[201~", KeySort::text},
      {"\xFF", KeySort::unknown},
  };
  for (const auto& [bytes, sort] : cases) {
    KeyReader whole;
    const std::vector<Key> keys = whole.read(bytes);
    ASSERT_EQ(keys.size(), 1u) << bytes;
    EXPECT_EQ(keys[0].sort, sort) << bytes;
    KeyReader pieces;
    std::vector<Key> gathered;
    for (const char c : bytes) {
      for (Key& key : pieces.read(std::string_view(&c, 1))) gathered.push_back(std::move(key));
    }
    ASSERT_EQ(gathered.size(), 1u) << bytes;
    EXPECT_EQ(gathered[0].text, keys[0].text);
  }
  KeyReader paste;
  EXPECT_EQ(paste.read("\x1b[200~a\r\nb\tc\x1b[31m\x1b[201~")[0].text, "a\nb    c[31m");
  KeyReader alone;
  EXPECT_TRUE(alone.read("\x1b").empty());
  EXPECT_EQ(alone.flush().size(), 1u);
  EXPECT_FALSE(alone.waits());
}

TEST(LineBuffer, CharactersAreWhole) {
  repl::LineBuffer buffer;
  // An a with an accent that combines, and a character of two columns.
  buffer.insert(
      "a\xCC\x81"
      "\xE4\xB8\xAD");
  EXPECT_EQ(repl::columns_of(buffer.text()), 3u);
  buffer.left();
  EXPECT_EQ(buffer.cursor(), 3u);
  buffer.left();
  EXPECT_EQ(buffer.cursor(), 0u);
  buffer.right();
  buffer.backspace();
  EXPECT_EQ(buffer.text(), "\xE4\xB8\xAD");
  buffer.erase();
  EXPECT_EQ(buffer.text(), "");
}

TEST(LineBuffer, LinesAreLeftAndFound) {
  repl::LineBuffer buffer;
  buffer.set("first line\nno\nthird");
  EXPECT_FALSE(buffer.down());
  EXPECT_TRUE(buffer.up());
  EXPECT_EQ(buffer.cursor(), 13u);
  buffer.home();
  EXPECT_TRUE(buffer.up());
  EXPECT_FALSE(buffer.up());
  buffer.kill_to_end();
  EXPECT_EQ(buffer.text(), "\nno\nthird");
  buffer.yank();
  EXPECT_EQ(buffer.text(), "first line\nno\nthird");
  buffer.kill_word();
  EXPECT_EQ(buffer.text(), "first \nno\nthird");
}

TEST(History, TheLineBeingTypedIsKept) {
  repl::History history;
  history.add("one");
  history.add("two");
  history.add("two");
  std::string shown = "thr";
  EXPECT_TRUE(history.back(shown));
  EXPECT_EQ(shown, "two");
  EXPECT_TRUE(history.back(shown));
  EXPECT_EQ(shown, "one");
  EXPECT_FALSE(history.back(shown));
  EXPECT_TRUE(history.forward(shown));
  EXPECT_TRUE(history.forward(shown));
  EXPECT_EQ(shown, "thr");
  EXPECT_FALSE(history.forward(shown));
}

}  // namespace
}  // namespace piper::test
