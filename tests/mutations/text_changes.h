#pragma once
// Changes of a `.pir` text of any level that leave an invalid program, or a header that disagrees
// with its bodies and nodes.
//
// Settings are dropped, moved out of their range and made to differ from the inputs; bounds are
// reversed; element types, masks, regions, axes of buckets and of pairs, divided samples, the
// values that ports carry and the kinds of ports are changed; operands are written twice, and sums
// of squares add in another order. Entries of the table of locations lose their number or an end.

#include <string>
#include <string_view>
#include <vector>

namespace piper::test {

struct TextChange {
  std::string what;  // with the line
  std::string text;  // the whole text
  // One of `text_rules()`; empty: the change follows from several lines.
  std::string rule = {};
};

/// `text` as `print` writes it: a statement, node or action per line.
std::vector<TextChange> text_changes(std::string_view text);
/// The rules of changes of single lines.
std::vector<std::string> text_rules();

}  // namespace piper::test
