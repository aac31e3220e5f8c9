#pragma once
// Changes of a `.pir` text of any level that leave what is no program of the language, or a header that says something else than its bodies and nodes do.
//
// Settings are left out, taken out of their range and made to differ from the inputs; bounds are turned round; element types, masks, regions, axes of buckets and of pairs,
// divided samples and the values that ports carry, and what kind of port they say to be, are changed; operands are written twice, and sums of squares add in another order.

#include <string>
#include <string_view>
#include <vector>

namespace piper::test {

struct TextChange {
  std::string what;  // with the line
  std::string text;  // the whole text
};

/// `text` as `print` writes it: a statement, node or action per line.
std::vector<TextChange> text_changes(std::string_view text);

}  // namespace piper::test
