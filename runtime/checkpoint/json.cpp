#include "runtime/checkpoint/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <system_error>
#include <utility>

namespace piper::runtime {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

unsigned byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

/// The number of bytes of the UTF-8 sequence at the start of a text that is not empty; 0 if there
/// is no valid one.
std::size_t utf8_sequence(std::string_view text) {
  const unsigned lead = byte_at(text, 0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte_at(text, i) & 0xC0) != 0x80) return 0;
  }
  const unsigned second = byte_at(text, 1);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool surrogate = lead == 0xED && second >= 0xA0;
  const bool beyond = lead == 0xF4 && second >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

void append_utf8(std::string& out, std::uint32_t point) {
  const auto add = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (point < 0x80) {
    add(point);
  } else if (point < 0x800) {
    add(0xC0 | point >> 6);
    add(0x80 | (point & 0x3F));
  } else if (point < 0x10000) {
    add(0xE0 | point >> 12);
    add(0x80 | (point >> 6 & 0x3F));
    add(0x80 | (point & 0x3F));
  } else {
    add(0xF0 | point >> 18);
    add(0x80 | (point >> 12 & 0x3F));
    add(0x80 | (point >> 6 & 0x3F));
    add(0x80 | (point & 0x3F));
  }
}

/// The character of an escape of two characters, by its second one; 0 if there is none.
char escaped_char(char c) {
  switch (c) {
    case '"':
    case '\\':
    case '/': return c;
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    default: return 0;
  }
}

template <typename Number>
bool read_number(std::string_view literal, Number& number) {
  const char* const end = literal.data() + literal.size();
  const auto [last, error] = std::from_chars(literal.data(), end, number);
  return error == std::errc() && last == end;
}

/// Recursive descent; `depth` bounds it.
class Parser {
 public:
  Parser(std::string_view text, std::string& error) : text_(text), error_(error) {}

  bool parse(JsonValue& out) {
    skip_blanks();
    if (!parse_value(out)) return false;
    skip_blanks();
    return at_ == text_.size() || fail_at("expected the end of the text", at_);
  }

 private:
  bool fail_at(std::string_view reason, std::size_t at) {
    error_ = std::string(reason) + " at byte " + std::to_string(at);
    return false;
  }

  bool next_is(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool next_is_digit() const { return at_ < text_.size() && is_digit(text_[at_]); }
  bool take(char c) {
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }
  void skip_digits() {
    while (next_is_digit()) ++at_;
  }
  void skip_blanks() {
    while (next_is(' ') || next_is('\t') || next_is('\n') || next_is('\r')) ++at_;
  }

  bool parse_value(JsonValue& out) {
    if (++num_values_ > kMaxJsonValues) return fail_at("too many values", at_);
    if (at_ == text_.size()) return fail_at("expected a value", at_);
    switch (text_[at_]) {
      case '{': return nested([&] { return parse_object(out.value.emplace<JsonValue::Object>()); });
      case '[': return nested([&] { return parse_array(out.value.emplace<JsonValue::Array>()); });
      case '"': return parse_string(out.value.emplace<std::string>());
      case 't': return parse_word("true", true, out);
      case 'f': return parse_word("false", false, out);
      case 'n': return parse_word("null", nullptr, out);
      default: return parse_number(out);
    }
  }

  /// Takes the opening bracket, and reads what follows it by `contents`.
  template <typename Contents>
  bool nested(Contents contents) {
    if (depth_ == kMaxJsonDepth)
      return fail_at("more than " + std::to_string(kMaxJsonDepth) + " nested arrays and objects",
                     at_);
    ++depth_;
    ++at_;
    skip_blanks();
    const bool parsed = contents();
    --depth_;
    return parsed;
  }

  bool parse_array(JsonValue::Array& out) {
    if (take(']')) return true;
    while (true) {
      skip_blanks();
      if (!parse_value(out.emplace_back())) return false;
      skip_blanks();
      if (take(']')) return true;
      if (!take(',')) return fail_at("expected `,` or `]`", at_);
    }
  }

  bool parse_object(JsonValue::Object& out) {
    if (take('}')) return true;
    std::vector<std::size_t> starts;  // of the names
    while (true) {
      skip_blanks();
      starts.push_back(at_);
      if (!parse_member(out.emplace_back())) return false;
      skip_blanks();
      if (take('}')) return check_names(out, starts);
      if (!take(',')) return fail_at("expected `,` or `}`", at_);
    }
  }

  bool parse_member(JsonMember& out) {
    if (!next_is('"')) return fail_at("expected a name in quotes", at_);
    if (!parse_string(out.name)) return false;
    skip_blanks();
    if (!take(':')) return fail_at("expected `:`", at_);
    skip_blanks();
    return parse_value(out.value);
  }

  /// By sorting: a hostile text may have millions of members.
  bool check_names(const JsonValue::Object& members, const std::vector<std::size_t>& starts) {
    std::vector<std::size_t> order(members.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const int sign = members[a].name.compare(members[b].name);
      return sign != 0 ? sign < 0 : a < b;
    });
    std::size_t first_repeated = members.size();
    for (std::size_t i = 1; i < order.size(); ++i) {
      if (members[order[i]].name == members[order[i - 1]].name)
        first_repeated = std::min(first_repeated, order[i]);
    }
    return first_repeated == members.size() ||
           fail_at("a name that the object has already", starts[first_repeated]);
  }

  template <typename Value>
  bool parse_word(std::string_view word, Value value, JsonValue& out) {
    if (!text_.substr(at_).starts_with(word))
      return fail_at("expected `" + std::string(word) + "`", at_);
    at_ += word.size();
    out.value = value;
    return true;
  }

  bool parse_string(std::string& out) {
    ++at_;  // the quote
    while (true) {
      const std::size_t start = at_;
      while (at_ < text_.size() && is_plain(text_[at_])) ++at_;
      out.append(text_.substr(start, at_ - start));
      if (at_ == text_.size()) return fail_at("expected `\"`", at_);
      if (take('"')) return true;
      if (byte_at(text_, at_) < 0x20)
        return fail_at("a control character that is not escaped", at_);
      if (!(next_is('\\') ? parse_escape(out) : parse_utf8(out))) return false;
    }
  }

  /// ASCII that stands for itself in a string.
  static bool is_plain(char c) {
    return c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 0x20 &&
           static_cast<unsigned char>(c) < 0x80;
  }

  bool parse_utf8(std::string& out) {
    const std::size_t length = utf8_sequence(text_.substr(at_));
    if (length == 0) return fail_at("a byte that is not UTF-8", at_);
    out.append(text_.substr(at_, length));
    at_ += length;
    return true;
  }

  bool parse_escape(std::string& out) {
    const std::size_t start = at_++;
    if (take('u')) return parse_code_point(start, out);
    const char c = at_ < text_.size() ? escaped_char(text_[at_]) : '\0';
    if (c == 0) return fail_at("an unknown escape", start);
    ++at_;
    out += c;
    return true;
  }

  /// Reads the digits after `\u`, and a second escape if they are half of a surrogate pair.
  bool parse_code_point(std::size_t start, std::string& out) {
    std::uint32_t point = 0;
    if (!parse_hex(point)) return false;
    if (point >= 0xD800 && point < 0xDC00 && text_.substr(at_).starts_with("\\u")) {
      at_ += 2;
      std::uint32_t low = 0;
      if (!parse_hex(low)) return false;
      if (low < 0xDC00 || low > 0xDFFF) return fail_at("half of a surrogate pair", start);
      point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
    }
    if (point >= 0xD800 && point <= 0xDFFF) return fail_at("half of a surrogate pair", start);
    append_utf8(out, point);
    return true;
  }

  bool parse_hex(std::uint32_t& out) {
    const std::string_view digits = text_.substr(at_, 4);
    const auto [last, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), out, 16);
    const auto count = static_cast<std::size_t>(last - digits.data());
    if (count != 4 || error != std::errc()) return fail_at("expected four hexadecimal digits", at_);
    at_ += count;
    return true;
  }

  bool parse_number(JsonValue& out) {
    const std::size_t start = at_;
    const bool negative = take('-');
    if (!next_is_digit()) return fail_at(negative ? "expected a digit" : "expected a value", at_);
    if (take('0') && next_is_digit()) return fail_at("a number with a leading zero", start);
    skip_digits();
    const std::size_t integer_end = at_;
    if (take('.') && !parse_digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      if (!parse_digits()) return false;
    }
    return set_number(text_.substr(start, at_ - start), at_ == integer_end, out) ||
           fail_at("a number beyond the range of double", start);
  }

  bool parse_digits() {
    if (!next_is_digit()) return fail_at("expected a digit", at_);
    skip_digits();
    return true;
  }

  static bool set_number(std::string_view literal, bool is_integer, JsonValue& out) {
    if (is_integer) {
      if (literal == "-0") literal = "0";
      if (literal[0] != '-' && read_number(literal, out.value.emplace<std::uint64_t>()))
        return true;
      if (literal[0] == '-' && read_number(literal, out.value.emplace<std::int64_t>())) return true;
    }
    return read_number(literal, out.value.emplace<double>());
  }

  std::string_view text_;
  std::string& error_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  std::size_t num_values_ = 0;
};

}  // namespace

std::optional<bool> JsonValue::as_bool() const {
  const bool* const number = std::get_if<bool>(&value);
  return number ? std::optional(*number) : std::nullopt;
}

std::optional<std::uint64_t> JsonValue::as_unsigned() const {
  const std::uint64_t* const number = std::get_if<std::uint64_t>(&value);
  return number ? std::optional(*number) : std::nullopt;
}

std::optional<std::int64_t> JsonValue::as_signed() const {
  if (const std::int64_t* const number = std::get_if<std::int64_t>(&value)) return *number;
  const std::optional<std::uint64_t> number = as_unsigned();
  if (!number || *number > std::uint64_t{std::numeric_limits<std::int64_t>::max()})
    return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

std::optional<double> JsonValue::as_double() const {
  if (const double* const number = std::get_if<double>(&value)) return *number;
  if (const std::int64_t* const number = std::get_if<std::int64_t>(&value))
    return static_cast<double>(*number);
  const std::optional<std::uint64_t> number = as_unsigned();
  return number ? std::optional(static_cast<double>(*number)) : std::nullopt;
}

const JsonValue* JsonValue::find(std::string_view name) const {
  const Object* const members = as_object();
  if (!members) return nullptr;
  const auto found = std::find_if(members->begin(), members->end(),
                                  [&](const JsonMember& member) { return member.name == name; });
  return found == members->end() ? nullptr : &found->value;
}

std::optional<JsonValue> parse_json(std::string_view text, std::string& error) {
  std::optional<JsonValue> out(std::in_place);
  if (!Parser(text, error).parse(*out)) out.reset();
  return out;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_sequence(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\u%04x",
                    static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += escaped;
    } else {
      out += c;
    }
  }
  out += '"';
}

void append_json_number(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char text[40];
  for (const int digits : {15, 16, 17}) {
    std::snprintf(text, sizeof(text), "%.*g", digits, value);
    if (std::strtod(text, nullptr) == value) break;
  }
  out += text;
}

}  // namespace piper::runtime
