#pragma once
// Checks that a text is well-formed XML of the kind in images, and reads its elements.

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace piper::test {

struct XmlElement {
  std::string name;
  std::map<std::string, std::string> attributes;  // entities are not decoded
};

/// All elements in text order; empty, with the reason in `error`, if tags do not match, an
/// attribute has no quotes, or a character is not allowed.
std::optional<std::vector<XmlElement>> read_xml(std::string_view text, std::string& error);

/// The number of places where `part` stands in `text`; places do not overlap.
std::size_t count_of(std::string_view text, std::string_view part);

}  // namespace piper::test
