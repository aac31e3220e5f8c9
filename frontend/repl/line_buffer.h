#pragma once
// The text that is being edited, and the lines before it.
//
// Guarantees: the text is UTF-8, and the cursor is between characters; marks that combine with a
// character go with it.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace piper::repl {

class LineBuffer {
 public:
  const std::string& text() const { return text_; }
  std::size_t cursor() const { return cursor_; }  // a byte

  void insert(std::string_view text);
  void set(std::string text);
  std::string take();
  /// The bytes [begin, cursor) become the text.
  void replace_before_cursor(std::size_t begin, std::string_view text);

  void left();
  void right();
  void word_left();
  void word_right();
  void home();  // of the line
  void end();
  /// To the line above or below, at the same column; false where there is none.
  bool up();
  bool down();

  void backspace();
  void erase();
  void kill_to_end();
  void kill_to_begin();
  void kill_word();
  void yank() { insert(killed_); }

 private:
  std::size_t before(std::size_t at) const;
  std::size_t behind(std::size_t at) const;
  std::size_t line_begin(std::size_t at) const;
  std::size_t line_end(std::size_t at) const;
  void kill(std::size_t begin, std::size_t end);
  void go_to_column(std::size_t begin, std::size_t column);

  std::string text_;
  std::size_t cursor_ = 0;
  std::string killed_;
};

/// Entries that were typed before, the newest last; the one being typed comes after them.
class History {
 public:
  void add(std::string entry);
  /// From the shown entry to the one before or after it; `shown` is kept if it is the one being
  /// typed. False at the ends.
  bool back(std::string& shown);
  bool forward(std::string& shown);
  void rewind() { at_ = entries_.size(); }

 private:
  std::vector<std::string> entries_;
  std::size_t at_ = 0;
  std::string typed_;
};

/// Columns on a terminal; combining marks have none.
std::size_t columns_of(std::string_view text);
/// Bytes of the first character with the marks that combine with it.
std::size_t character_length(std::string_view text);

}  // namespace piper::repl
