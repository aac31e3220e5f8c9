#include "frontend/lower/names/parameter_paths.h"

#include <charconv>

namespace piper::lower {

ParameterPath parameter_path(std::string_view name) {
  ParameterPath path;
  for (;;) {
    const std::size_t dot = name.find('.');
    if (dot == std::string_view::npos) break;
    const std::string_view behind = name.substr(dot + 1);
    const std::size_t end = behind.find('.');
    if (end == std::string_view::npos) break;
    ParameterPath::Part& part = path.parts.emplace_back();
    part.name = name.substr(0, dot);
    std::from_chars(behind.data(), behind.data() + end, part.position);
    name = behind.substr(end + 1);
  }
  path.last = name;
  return path;
}

std::string path_text(const ParameterPath& path) {
  std::string text;
  for (const ParameterPath::Part& part : path.parts) {
    text += part.name;
    if (part.position > 0) text += "[" + std::to_string(part.position) + "]";
    text += ".";
  }
  return text + std::string(path.last);
}

std::string pattern_of(const ParameterPath& path) {
  std::string text;
  for (const ParameterPath::Part& part : path.parts) text += std::string(part.name) + ".";
  return text + std::string(path.last);
}

std::optional<PathMatch> match(const ast::NamesLine& line, const ParameterPath& path) {
  if (line.parts.size() != path.parts.size()) return std::nullopt;
  PathMatch found;
  for (std::size_t i = 0; i < line.parts.size(); ++i) {
    const ast::NamesPart& part = line.parts[i];
    const ParameterPath::Part& given = path.parts[i];
    if (part.name.name != given.name) return std::nullopt;
    if (!part.index.missing()) {
      found.indices.push_back(given.position);
    } else if (given.position != part.position) {
      return std::nullopt;
    }
  }
  for (found.parameter = 0; found.parameter < line.last.size(); ++found.parameter) {
    if (line.last[found.parameter].name == path.last) return found;
  }
  return std::nullopt;
}

}  // namespace piper::lower
