#pragma once
// The lines of a text of graphs or DAGs, analysed for repetitions.
//
//   %block.1.add = add(%block.0.add, %x) : f32[dim: 8] @F region stage[0].block[1]
//
// has the shape `% = add(%, %) : f32[dim: 8] @F region stage[#].block[#]`, the indices `stage` 0
// and `block` 1, and uses the values of two lines before it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace piper::views {

/// A number that distinguishes things of one kind, with the word before it: 3 and `block` of
/// `block.3`, `block[3]` and `block3`, `mb` of `[mb: 3]`; or with the sign before it where that
/// follows a number: `:` of `mb3:4`. A number that measures (`normal(0.7)`, `[2, 4]`) is not an
/// index.
struct Index {
  std::string_view of;
  std::int64_t value = 0;
  std::size_t begin = 0, end = 0;  // the digits
};

/// The indices of a name, from left to right.
std::vector<Index> indices(std::string_view text);

/// The text with every index gone, so that names of one form are equal: `%block..add` of
/// `%block.3.add`.
std::string without_indices(std::string_view text);

class FoldedLines {
 public:
  /// A value that a line before defines, in the same braces.
  struct Use {
    std::string_view name;
    std::uint32_t back = 0;   // lines
    std::uint32_t place = 0;  // of the names that the line defines
  };

  explicit FoldedLines(std::string_view text);

  std::size_t size() const { return lines_.size(); }
  std::string_view text(std::size_t line) const { return lines_[line].text; }
  std::size_t indent(std::size_t line) const;
  /// Equal for lines that differ only in indices and names of values.
  std::uint32_t shape(std::size_t line) const { return lines_[line].shape; }
  /// The next line of the same shape; the number of lines if there is none.
  std::size_t next(std::size_t line) const { return lines_[line].next; }
  /// The next line with less indentation, likewise: a run ends before it.
  std::size_t end(std::size_t line) const { return lines_[line].end; }
  /// The values that a line uses; lines of one shape have equally many.
  std::span<const Use> uses(std::size_t line) const;
  /// The indices of a line, likewise, without those in names of defined values.
  std::span<const Index> numbers(std::size_t line) const;

 private:
  struct Line {
    std::string_view text;
    std::uint32_t shape = 0, first_use = 0, first_number = 0, next = 0, end = 0;
  };
  struct Definition {
    std::size_t line = 0;
    std::uint32_t place = 0;
  };

  void read(std::size_t number);
  void define(std::size_t number, std::size_t end);
  std::size_t part(std::size_t number, std::size_t i);
  std::size_t exact(std::string_view text, std::size_t i, std::size_t end);
  std::size_t digits(std::string_view text, std::size_t i);

  std::vector<Line> lines_;
  std::vector<Use> uses_;
  std::vector<Index> numbers_;
  std::unordered_map<std::string_view, Definition> defined_;
  std::unordered_map<std::string, std::uint32_t> shapes_;
  std::string shape_;
};

}  // namespace piper::views
