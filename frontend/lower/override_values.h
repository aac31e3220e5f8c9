#pragma once
// Values of `-D name=value`.
//
//   parse_override("25MiB", {TypeKind::bytes})   ->   26214400 bytes

#include <optional>
#include <string>
#include <string_view>

#include "frontend/lower/evaluate/value.h"
#include "frontend/sema/type.h"

namespace piper::lower {

/// Reads the value of an override as the type that its place has; nothing when it is none.
std::optional<Value> parse_override(const std::string& text, sema::Type type);

/// A value that `-D` can give, in the form that it reads.
std::string override_text(const Value& value);
/// The same in the form of the language: texts have quotes.
std::string literal_text(const Value& value);
/// Whether both are the same value of one type that `-D` can give.
bool is_same(const Value& a, const Value& b);

/// An example of a value as the command line takes it.
std::string_view override_example(sema::Type type);

/// Whether the command line can write values of the type at all.
bool has_overrides(sema::Type type);

}  // namespace piper::lower
