#pragma once
// JSON for the runtime, which has no LLVM: a strict reader, and writers of strings and numbers.
//
//   std::string error;
//   const std::optional<JsonValue> value = parse_json(R"({"step":300})", error);
//   if (!value) ...;  // error: "expected `:` at byte 8"
//   if (const JsonValue* step = value->find("step")) step->as_unsigned();  // 300

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace piper::runtime {

struct JsonMember;

/// A value of a JSON text. The accessors return nothing if the value has another type.
struct JsonValue {
  using Array = std::vector<JsonValue>;
  using Object = std::vector<JsonMember>;  // in the order of the text

  /// Null at first. A number is an integer if its literal has neither fraction nor exponent and
  /// fits: from 0 up it is std::uint64_t, below 0 std::int64_t. Any other number is double.
  std::variant<std::nullptr_t, bool, std::uint64_t, std::int64_t, double, std::string, Array,
               Object>
      value;

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(value); }
  std::optional<bool> as_bool() const;
  /// An integer from 0 to 2^64 - 1.
  std::optional<std::uint64_t> as_unsigned() const;
  /// An integer from -2^63 to 2^63 - 1.
  std::optional<std::int64_t> as_signed() const;
  /// Any number; an integer beyond 2^53 is rounded.
  std::optional<double> as_double() const;
  const std::string* as_string() const { return std::get_if<std::string>(&value); }
  const Array* as_array() const { return std::get_if<Array>(&value); }
  const Object* as_object() const { return std::get_if<Object>(&value); }

  /// The value of a member of an object; null if there is none, or if this is no object.
  const JsonValue* find(std::string_view name) const;
};

struct JsonMember {
  std::string name;
  JsonValue value;
};

/// The maximum number of arrays and objects that contain each other.
inline constexpr std::size_t kMaxJsonDepth = 64;
/// The maximum number of values of one text, which bounds the memory of the tree.
inline constexpr std::size_t kMaxJsonValues = std::size_t{1} << 24;

/// The value of a whole text of RFC 8259. Refuses in addition: a name that occurs twice in an
/// object, half of a surrogate pair, a number beyond the range of double, and more than the two
/// limits above. On failure `error` has the reason and the byte offset, counted from 0.
std::optional<JsonValue> parse_json(std::string_view text, std::string& error);

/// Whether a text is UTF-8: no surrogates, no overlong forms, nothing beyond U+10FFFF.
bool is_utf8(std::string_view text);

/// Appends a text of UTF-8 as a string with its quotes.
void append_json_string(std::string& out, std::string_view text);
/// Appends the shortest text that reads back as the same number; `null` if it is not finite.
void append_json_number(std::string& out, double value);

}  // namespace piper::runtime
