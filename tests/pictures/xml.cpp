#include "tests/pictures/xml.h"

namespace piper::test {
namespace {

bool entities_are_known(std::string_view text) {
  for (std::size_t at = text.find('&'); at != std::string_view::npos; at = text.find('&', at + 1)) {
    bool known = false;
    for (const std::string_view entity : {"&lt;", "&gt;", "&amp;", "&quot;", "&#39;"})
      known = known || text.substr(at).starts_with(entity);
    if (!known) return false;
  }
  return true;
}

}  // namespace

std::optional<std::vector<XmlElement>> read_xml(std::string_view text, std::string& error) {
  std::vector<XmlElement> elements;
  std::vector<std::string> open;
  const auto fail = [&](const std::string& what) {
    error = what;
    return std::nullopt;
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = std::min(text.find('<', at), text.size());
    const std::string_view words = text.substr(at, begin - at);
    if (!entities_are_known(words)) return fail("a lonely `&`: " + std::string(words));
    for (const char c : words) {
      if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t')
        return fail("a control character");
    }
    if (open.empty() && words.find_first_not_of(" \n\t") != std::string_view::npos)
      return fail("text outside of all elements");
    if (begin == text.size()) break;
    const std::size_t end = text.find('>', begin);
    if (end == std::string_view::npos) return fail("a tag does not end");
    std::string_view tag = text.substr(begin + 1, end - begin - 1);
    at = end + 1;
    if (tag.starts_with("/")) {
      if (open.empty() || open.back() != tag.substr(1))
        return fail("`" + std::string(tag) + "` closes nothing");
      open.pop_back();
      continue;
    }
    const bool closed = tag.ends_with("/");
    if (closed) tag.remove_suffix(1);
    XmlElement element;
    std::size_t name = tag.find(' ');
    element.name = tag.substr(0, name);
    while (name != std::string_view::npos && name + 1 < tag.size()) {
      const std::size_t equals = tag.find('=', name), quote = equals + 1;
      if (equals == std::string_view::npos || quote >= tag.size() || tag[quote] != '"')
        return fail("an attribute without quotes in `" + std::string(tag) + "`");
      const std::size_t close = tag.find('"', quote + 1);
      if (close == std::string_view::npos)
        return fail("an attribute does not end in `" + std::string(tag) + "`");
      const std::string_view value = tag.substr(quote + 1, close - quote - 1);
      if (!entities_are_known(value)) return fail("a lonely `&` in `" + std::string(tag) + "`");
      if (!element.attributes.emplace(tag.substr(name + 1, equals - name - 1), value).second)
        return fail("an attribute twice in `" + std::string(tag) + "`");
      name = close + 1 < tag.size() ? close + 1 : std::string_view::npos;
    }
    if (open.empty() && !elements.empty()) return fail("a second root");
    if (!closed) open.push_back(element.name);
    elements.push_back(std::move(element));
  }
  if (!open.empty()) return fail("`" + open.back() + "` is not closed");
  return elements;
}

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size()))
    ++found;
  return found;
}

}  // namespace piper::test
