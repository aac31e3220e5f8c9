#pragma once
// Lines of cells for a terminal or a plain text: each character has a colour, lines can be folded
// to a width.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace piper::pictures {

/// The destination of the text.
struct Screen {
  std::size_t columns = 0;  // lines are folded to it; 0: not folded
  bool colours = false;
};

class CellLine {
 public:
  static constexpr std::uint8_t kPlain = 0;

  std::size_t size() const { return text_.size(); }
  char back() const { return text_.back(); }
  void set_back(char c) { text_.back() = c; }
  /// Appends bytes with a background colour of the 256 of terminals; kPlain: none.
  void append(std::string_view text, std::uint8_t colour = kPlain);
  void append(std::size_t count, char c, std::uint8_t colour = kPlain) {
    append(std::string(count, c), colour);
  }
  /// The bytes [begin, end), without blanks at the end that have no colour.
  std::string print(std::size_t begin, std::size_t end, bool colours) const;

 private:
  std::string text_;
  std::vector<std::uint8_t> colours_;  // per byte
};

/// The columns at which rows of columns of one width are folded: columns that no cell crosses, if
/// one is near. `inside[c]`: a cell of some row that began before column c covers it.
std::vector<std::size_t> fold(const std::vector<bool>& inside, std::size_t width);

}  // namespace piper::pictures
