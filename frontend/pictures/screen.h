#pragma once
// Lines of cells for a terminal or a plain text: each character knows its colour, lines can be cut into pieces of a width.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace piper::pictures {

/// What the text goes to.
struct Screen {
  std::size_t columns = 0;  // lines are folded to it; 0: as long as they are
  bool colours = false;
};

class CellLine {
 public:
  static constexpr std::uint8_t kPlain = 0;

  std::size_t size() const { return text_.size(); }
  char back() const { return text_.back(); }
  void set_back(char c) { text_.back() = c; }
  /// Bytes in a colour of the 256 of terminals, as the ground of the text; kPlain: none.
  void append(std::string_view text, std::uint8_t colour = kPlain);
  void append(std::size_t count, char c, std::uint8_t colour = kPlain) { append(std::string(count, c), colour); }
  /// The bytes [begin, end), without blanks at the end that have no colour.
  std::string print(std::size_t begin, std::size_t end, bool colours) const;

 private:
  std::string text_;
  std::vector<std::uint8_t> colours_;  // per byte
};

/// Where rows of columns of one width are cut: at a column where no cell goes over the cut, if there is one near.
/// `inside[c]`: a cell of some row that began before column c covers it.
std::vector<std::size_t> fold(const std::vector<bool>& inside, std::size_t most);

}  // namespace piper::pictures
