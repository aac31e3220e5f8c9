#pragma once
// Parts of the AST back in source form, on one line; `<error>` for text that did not parse.

#include <span>
#include <string>

#include "frontend/ast/module.h"

namespace piper::ast {

std::string source_text(const Identifier& name);
std::string source_text(std::span<const Identifier> names);
std::string source_text(std::span<const Binding> bindings);
std::string source_text(const Pair& pair);
std::string source_text(std::span<const Pair> pairs);
/// `[batch, width: dim / heads]`
std::string source_text(std::span<const Dim> dims);
std::string source_text(const TypeRef& type);
std::string source_text(std::span<const Param> params);
std::string source_text(std::span<const Target> targets);
/// `"model.layers.{l}.weight"`
std::string source_text(const FileName& name);
/// `block[l].attention.(q, k, v)[dim, heads, width = half: 2 pair]`
std::string path_text(const NamesLine& line);
/// `"h.{l}.attn.c_attn.weight"[dim, of heads width]`; the facts in braces; the ignored names.
std::string right_text(const NamesLine& line);

}  // namespace piper::ast
