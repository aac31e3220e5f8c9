#pragma once
// Whether a text is well-formed XML of the kind that images are, and what is in it.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace piper::test {

struct XmlElement {
  std::string name;
  std::map<std::string, std::string> attributes;  // with entities as they stand
};

/// All elements in text order; nothing, and why in `error`, where tags do not match, an attribute has no quotes, or a character stands that may not.
std::optional<std::vector<XmlElement>> read_xml(std::string_view text, std::string& error);

}  // namespace piper::test
