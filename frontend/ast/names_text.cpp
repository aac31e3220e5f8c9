// Lines of `names` back to source form.

#include "frontend/ast/source_text.h"

namespace piper::ast {

namespace {

std::string dim_text(const NamesDim& dim) {
  std::string text = source_text(dim.name);
  if (!dim.factors.empty()) text += " =";
  for (const NamesFactor& factor : dim.factors) {
    text += " " + source_text(factor.name);
    if (factor.extent > 0) text += ": " + std::to_string(factor.extent);
  }
  return text;
}

std::string file_dim_text(const FileDim& dim) {
  std::string text;
  for (const Identifier& name : dim.names) text += (text.empty() ? "" : " ") + source_text(name);
  return text;
}

/// The texts of the elements, between commas.
template <typename List, typename Text>
std::string joined(const List& list, const Text& text) {
  std::string result;
  for (const auto& element : list) result += (result.empty() ? "" : ", ") + text(element);
  return result;
}

}  // namespace

std::string source_text(const FileName& name) {
  if (name.pieces.empty()) return "<error>";
  std::string text = "\"";
  for (const FileNamePiece& piece : name.pieces) {
    text += piece.text;
    if (!piece.hole.missing()) text += "{" + std::string(piece.hole.name) + "}";
  }
  return text + "\"";
}

std::string path_text(const NamesLine& line) {
  std::string text;
  for (const NamesPart& part : line.parts) {
    text += source_text(part.name);
    if (part.indexed)
      text +=
          "[" +
          (part.index.missing() ? std::to_string(part.position) : std::string(part.index.name)) +
          "]";
    text += ".";
  }
  text += line.is_tuple       ? "(" + source_text(line.last) + ")"
          : line.last.empty() ? "<error>"
                              : source_text(line.last.front());
  return line.dims.empty() ? text : text + "[" + joined(line.dims, dim_text) + "]";
}

std::string right_text(const NamesLine& line) {
  switch (line.kind) {
    case NamesLineKind::error: return "";
    case NamesLineKind::map:
      return source_text(line.file) + "[" + joined(line.file_dims, file_dim_text) + "]" +
             (line.optional ? " or none" : "");
    case NamesLineKind::config: return "{ " + source_text(line.facts) + " }";
    case NamesLineKind::ignore:
      return joined(line.ignored, [](const FileName& name) { return source_text(name); });
  }
  return "";
}

}  // namespace piper::ast
