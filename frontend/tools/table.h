#pragma once
// Tables of text: columns as wide as their widest cell.

#include <cstddef>
#include <string>
#include <vector>

namespace piper::tools {

class Table {
 public:
  /// Columns before `right` and from `left` on are written to the left, those between to the right, as numbers are.
  explicit Table(std::size_t right, std::size_t left = 1000) : right_(right), left_(left) {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text() const;

 private:
  std::size_t right_, left_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace piper::tools
