#include "frontend/lower/override_values.h"

#include <charconv>
#include <cmath>

#include "frontend/ast/expr.h"

namespace piper::lower {

namespace {

/// `[1, 2]`: the elements between commas, each as a value by itself would be written.
std::optional<Value> parse_list_override(std::string_view text, sema::Type element) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return std::nullopt;
  text = text.substr(1, text.size() - 2);
  Values values;
  if (text.find_first_not_of(' ') == std::string_view::npos) return share(std::move(values));
  for (std::size_t begin = 0, end = 0; begin <= text.size(); begin = end + 1) {
    end = std::min(text.find(',', begin), text.size());
    std::string_view part = text.substr(begin, end - begin);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    std::optional<Value> value = parse_override(std::string(part), element);
    if (!value) return std::nullopt;
    values.push_back(std::move(*value));
  }
  return share(std::move(values));
}

}  // namespace

std::string_view override_example(sema::Type type) {
  switch (type.kind) {
    case sema::TypeKind::floating: return type.list ? "[0.1, 2e-3]" : "2e-3";
    case sema::TypeKind::bytes: return type.list ? "[1MiB, 25MiB]" : "25MiB";
    case sema::TypeKind::boolean: return type.list ? "[true, false]" : "true";
    case sema::TypeKind::string: return type.list ? "[a.txt, b.txt]" : "a.txt";
    default: return type.list ? "[1, 2]" : "8";
  }
}

bool has_overrides(sema::Type type) {
  switch (type.kind) {
    case sema::TypeKind::integer:
    case sema::TypeKind::floating:
    case sema::TypeKind::bytes:
    case sema::TypeKind::boolean:
    case sema::TypeKind::string: return true;
    // An axis of the mesh is named after its parameter.
    case sema::TypeKind::axis: return !type.list;
    default: return false;
  }
}

std::optional<Value> parse_override(const std::string& text, sema::Type type) {
  if (type.list) return parse_list_override(text, type.element());
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  switch (type.kind) {
    case sema::TypeKind::integer:
    case sema::TypeKind::axis: {
      std::int64_t value = 0;
      const auto [rest, error] = std::from_chars(begin, end, value);
      return error == std::errc() && rest == end ? std::optional(Value(value)) : std::nullopt;
    }
    case sema::TypeKind::floating: {
      double value = 0;
      const auto [rest, error] = std::from_chars(begin, end, value);
      return error == std::errc() && rest == end && std::isfinite(value)
                 ? std::optional(Value(value))
                 : std::nullopt;
    }
    case sema::TypeKind::bytes: {
      double value = 0;
      const auto [rest, error] = std::from_chars(begin, end, value);
      if (error != std::errc()) return std::nullopt;
      const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
      const double factor = unit.empty() ? 1 : ast::unit_bytes(ast::unit_of(unit));
      const auto bytes = rounded_to_int(value * factor);
      const bool whole = bytes && std::floor(value * factor) == value * factor;
      return factor > 0 && whole ? std::optional(Value(ByteCount{*bytes})) : std::nullopt;
    }
    case sema::TypeKind::boolean:
      if (text == "true" || text == "false") return Value(text == "true");
      return std::nullopt;
    case sema::TypeKind::string: return share(text);
    default: return std::nullopt;
  }
}

}  // namespace piper::lower
