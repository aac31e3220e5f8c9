#include "frontend/lower/override_values.h"

#include <charconv>
#include <cmath>
#include <utility>

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

template <typename T>
bool both_are(const Value& a, const Value& b) {
  const T* const left = a.get<T>();
  const T* const right = b.get<T>();
  return left != nullptr && right != nullptr && *left == *right;
}

std::optional<std::int64_t> bytes_of(const Value& value) {
  const auto* const amount = value.get<ByteCount>();
  return amount != nullptr ? std::optional(amount->bytes) : std::nullopt;
}

/// The shortest text that reads back as the same number.
std::string shortest(double number) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, number).ptr);
}

std::string text_of(double number) {
  const std::string text = shortest(number);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

/// In the largest unit that divides it; every amount is an exact number of KiB.
std::string text_of(ByteCount amount) {
  constexpr std::pair<std::int64_t, const char*> kUnits[] = {{std::int64_t{1} << 30, "GiB"},
                                                             {std::int64_t{1} << 20, "MiB"}};
  for (const auto& [unit, name] : kUnits) {
    if (amount.bytes != 0 && amount.bytes % unit == 0)
      return std::to_string(amount.bytes / unit) + name;
  }
  return shortest(static_cast<double>(amount.bytes) / 1024) + "KiB";
}

std::string list_text(const Values& values, std::string (*text_of_one)(const Value&)) {
  std::string text = "[";
  for (const Value& one : values) text += (text.size() == 1 ? "" : ", ") + text_of_one(one);
  return text + "]";
}

}  // namespace

std::string override_text(const Value& value) {
  if (const auto* const list = value.shared<Values>()) return list_text(*list, override_text);
  if (const auto* const number = value.get<std::int64_t>()) return std::to_string(*number);
  if (const auto* const number = value.get<double>()) return text_of(*number);
  if (const auto* const truth = value.get<bool>()) return *truth ? "true" : "false";
  if (const auto* const bytes = value.get<ByteCount>()) return text_of(*bytes);
  const auto* const text = value.shared<std::string>();
  return text != nullptr ? *text : std::string();
}

std::string literal_text(const Value& value) {
  if (const auto* const list = value.shared<Values>()) return list_text(*list, literal_text);
  const std::string text = override_text(value);
  return value.shared<std::string>() != nullptr ? '"' + text + '"' : text;
}

bool is_same(const Value& a, const Value& b) {
  const auto* const left = a.shared<std::string>();
  const auto* const right = b.shared<std::string>();
  return both_are<std::int64_t>(a, b) || both_are<double>(a, b) || both_are<bool>(a, b) ||
         (bytes_of(a) && bytes_of(a) == bytes_of(b)) ||
         (left != nullptr && right != nullptr && *left == *right);
}

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
