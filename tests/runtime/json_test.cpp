#include "runtime/checkpoint/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace piper::runtime {
namespace {

/// One value of every kind; `i`, `u` and `d` tell the types of numbers apart.
std::string text_of(const JsonValue& value) {
  std::string out;
  if (value.is_null()) return "null";
  if (const auto truth = value.as_bool()) return *truth ? "true" : "false";
  if (const auto number = value.as_unsigned()) return "u" + std::to_string(*number);
  if (const auto number = value.as_signed()) return "i" + std::to_string(*number);
  if (const auto number = value.as_double()) {
    out = "d";
    append_json_number(out, *number);
  } else if (const std::string* text = value.as_string()) {
    append_json_string(out, *text);
  } else if (const JsonValue::Array* array = value.as_array()) {
    for (const JsonValue& element : *array) out += (out.empty() ? "[" : ",") + text_of(element);
    out += out.empty() ? "[]" : "]";
  } else {
    for (const JsonMember& member : *value.as_object()) {
      out += out.empty() ? "{" : ",";
      append_json_string(out, member.name);
      out += ':' + text_of(member.value);
    }
    out += out.empty() ? "{}" : "}";
  }
  return out;
}

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(Json, ValuesOfEveryKind) {
  struct Case {
    std::string text, value;
  };
  const Case cases[] = {
      {"null", "null"},
      {"true", "true"},
      {" \t\r\nfalse\n\r\t ", "false"},
      {"0", "u0"},
      {"-0", "u0"},
      {"-1", "i-1"},
      {"18446744073709551615", "u18446744073709551615"},
      {"18446744073709551616", "d1.8446744073709552e+19"},
      {"9223372036854775808", "u9223372036854775808"},
      {"-9223372036854775808", "i-9223372036854775808"},
      {"-9223372036854775809", "d-9.223372036854776e+18"},
      {"1.0", "d1"},
      {"1e2", "d100"},
      {"1E+2", "d100"},
      {"-2.5e-1", "d-0.25"},
      {"-0.0", "d-0"},
      {"0e0", "d0"},
      {"1.7976931348623157e308", "d1.7976931348623157e+308"},
      {"\"\"", "\"\""},
      {R"("a\"\\\/b")", R"("a\"\\/b")"},
      {R"("\b\f\n\r\t")", R"("\u0008\u000c\u000a\u000d\u0009")"},
      {R"("\u0041\u00e9\u20AC\ud83d\uDE00")", "\"A\u00e9\u20ac\U0001F600\""},
      {R"("\u0000")", R"("\u0000")"},
      {"\"\u00e9\u20ac\U0001F600\x7f\"", "\"\u00e9\u20ac\U0001F600\x7f\""},
      {"\"\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF\"",
       "\"\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF\""},
      {"[]", "[]"},
      {"[ ]", "[]"},
      {"[1, [2],{}]", "[u1,[u2],{}]"},
      {"{}", "{}"},
      {"{ }", "{}"},
      {R"( { "b" : 1 , "a" : { "b" : null } } )", R"({"b":u1,"a":{"b":null}})"},
      {R"({"":0})", R"({"":u0})"},
      {nested(kMaxJsonDepth), nested(kMaxJsonDepth)},
  };
  for (const Case& row : cases) {
    SCOPED_TRACE(row.text);
    std::string error;
    const std::optional<JsonValue> value = parse_json(row.text, error);
    ASSERT_TRUE(value) << error;
    EXPECT_EQ(text_of(*value), row.value);
    EXPECT_EQ(error, "");
  }
}

TEST(Json, RefusalsNameTheByte) {
  struct Case {
    std::string text, error;
  };
  const Case cases[] = {
      {"", "expected a value at byte 0"},
      {"  ", "expected a value at byte 2"},
      {"\xEF\xBB\xBF{}", "expected a value at byte 0"},
      {"nul", "expected `null` at byte 0"},
      {"[truth]", "expected `true` at byte 1"},
      {"nullx", "expected the end of the text at byte 4"},
      {"NaN", "expected a value at byte 0"},
      {"[Infinity]", "expected a value at byte 1"},
      {"-Infinity", "expected a digit at byte 1"},
      {"+1", "expected a value at byte 0"},
      {".5", "expected a value at byte 0"},
      {"-", "expected a digit at byte 1"},
      {"1.", "expected a digit at byte 2"},
      {"1.e5", "expected a digit at byte 2"},
      {"1e", "expected a digit at byte 2"},
      {"1e+", "expected a digit at byte 3"},
      {"[01]", "a number with a leading zero at byte 1"},
      {"-00", "a number with a leading zero at byte 0"},
      {"0x10", "expected the end of the text at byte 1"},
      {"[1e400]", "a number beyond the range of double at byte 1"},
      {"1 2", "expected the end of the text at byte 2"},
      {"{}{}", "expected the end of the text at byte 2"},
      {std::string("{}\0", 3), "expected the end of the text at byte 2"},
      {"'a'", "expected a value at byte 0"},
      {"\"a", "expected `\"` at byte 2"},
      {"\"\\", "an unknown escape at byte 1"},
      {"\"\\\"", "expected `\"` at byte 3"},
      {R"("\x41")", "an unknown escape at byte 1"},
      {R"("\U0041")", "an unknown escape at byte 1"},
      {std::string("\"\\\0\"", 4), "an unknown escape at byte 1"},
      {R"("\u00g0")", "expected four hexadecimal digits at byte 3"},
      {R"("\u-041")", "expected four hexadecimal digits at byte 3"},
      {R"("\u 041")", "expected four hexadecimal digits at byte 3"},
      {R"("\u004)", "expected four hexadecimal digits at byte 3"},
      {R"("\ud83d")", "half of a surrogate pair at byte 1"},
      {R"("a\ude00")", "half of a surrogate pair at byte 2"},
      {R"("\ud83d\u0041")", "half of a surrogate pair at byte 1"},
      {R"("\ud83d\ud83d\ude00")", "half of a surrogate pair at byte 1"},
      {"\"a\nb\"", "a control character that is not escaped at byte 2"},
      {std::string("\"\0\"", 3), "a control character that is not escaped at byte 1"},
      {"\"\x80\"", "a byte that is not UTF-8 at byte 1"},
      {"\"\xC0\x80\"", "a byte that is not UTF-8 at byte 1"},
      {"\"\xC3\"", "a byte that is not UTF-8 at byte 1"},
      {"\"\xE0\x9F\xBF\"", "a byte that is not UTF-8 at byte 1"},
      {"\"\xED\xA0\x80\"", "a byte that is not UTF-8 at byte 1"},
      {"\"\xF0\x8F\xBF\xBF\"", "a byte that is not UTF-8 at byte 1"},
      {"\"\xF4\x90\x80\x80\"", "a byte that is not UTF-8 at byte 1"},
      {"\"\xF5\x80\x80\x80\"", "a byte that is not UTF-8 at byte 1"},
      {"\"\xE2\x82", "a byte that is not UTF-8 at byte 1"},
      {"[", "expected a value at byte 1"},
      {"[1", "expected `,` or `]` at byte 2"},
      {"[1,]", "expected a value at byte 3"},
      {"[,1]", "expected a value at byte 1"},
      {"[1}", "expected `,` or `]` at byte 2"},
      {"]", "expected a value at byte 0"},
      {"{", "expected a name in quotes at byte 1"},
      {"{a:1}", "expected a name in quotes at byte 1"},
      {"{1:1}", "expected a name in quotes at byte 1"},
      {R"({"a"})", "expected `:` at byte 4"},
      {R"({"step" 300})", "expected `:` at byte 8"},
      {R"({"a":})", "expected a value at byte 5"},
      {R"({"a":1,})", "expected a name in quotes at byte 7"},
      {R"({"a":1])", "expected `,` or `}` at byte 6"},
      {"[1 // one\n]", "expected `,` or `]` at byte 3"},
      {R"({"a":1,"b":2, "a":3})", "a name that the object has already at byte 14"},
      {R"({"a":{},"\u0061":3})", "a name that the object has already at byte 8"},
      {R"({"c":1,"b":2,"b":3,"c":4})", "a name that the object has already at byte 13"},
      {nested(kMaxJsonDepth + 1), "more than 64 nested arrays and objects at byte 64"},
      {std::string(1'000'000, '['), "more than 64 nested arrays and objects at byte 64"},
  };
  for (const Case& row : cases) {
    SCOPED_TRACE(row.text.substr(0, 100));
    std::string error;
    EXPECT_FALSE(parse_json(row.text, error));
    EXPECT_EQ(error, row.error);
  }
}

TEST(Json, ManyMembersAreComparedFast) {
  std::string text = "{";
  for (int i = 0; i < 50'000; ++i) text += '"' + std::to_string(i) + "\":0,";
  std::string error;
  EXPECT_TRUE(parse_json(text + "\"50000\":0}", error)) << error;
  EXPECT_FALSE(parse_json(text + "\"77\":0}", error));
  EXPECT_EQ(error, "a name that the object has already at byte " + std::to_string(text.size()));
}

TEST(Json, AccessorsRefuseOtherTypes) {
  std::string error;
  const auto parsed = parse_json(R"({"a":1,"b":-1,"c":1.5,"d":"e","f":[]})", error);
  ASSERT_TRUE(parsed) << error;
  const JsonValue &a = *parsed->find("a"), &b = *parsed->find("b"), &c = *parsed->find("c");
  EXPECT_EQ(a.as_unsigned(), 1u);
  EXPECT_EQ(a.as_signed(), 1);
  EXPECT_EQ(a.as_double(), 1.0);
  EXPECT_EQ(a.as_bool(), std::nullopt);
  EXPECT_EQ(b.as_unsigned(), std::nullopt);
  EXPECT_EQ(b.as_signed(), -1);
  EXPECT_EQ(b.as_double(), -1.0);
  EXPECT_EQ(c.as_unsigned(), std::nullopt);
  EXPECT_EQ(c.as_signed(), std::nullopt);
  EXPECT_EQ(c.as_double(), 1.5);
  EXPECT_EQ(*parsed->find("d")->as_string(), "e");
  EXPECT_EQ(parsed->find("d")->as_array(), nullptr);
  EXPECT_EQ(parsed->find("d")->find("e"), nullptr);
  EXPECT_TRUE(parsed->find("f")->as_array()->empty());
  EXPECT_EQ(parsed->find("g"), nullptr);
  EXPECT_FALSE(parsed->is_null());
  EXPECT_EQ(JsonValue{std::uint64_t{1} << 63}.as_signed(), std::nullopt);
}

TEST(Json, WritersAreReadBack) {
  std::string every_char;
  for (char c = 0; c < 127; ++c) every_char += c;
  every_char += "\u00e9\u20ac\U0001F600";
  std::string text, error;
  append_json_string(text, every_char);
  const auto string = parse_json(text, error);
  ASSERT_TRUE(string) << error;
  EXPECT_EQ(*string->as_string(), every_char);
  for (const double number : {0.1, 1.0 / 3, 2.5, -1e-300, 5e-324, 1.7976931348623157e308}) {
    text.clear();
    append_json_number(text, number);
    const auto value = parse_json(text, error);
    ASSERT_TRUE(value) << text << ": " << error;
    EXPECT_EQ(value->as_double(), number);
  }
  for (const double number : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    text.clear();
    append_json_number(text, number);
    EXPECT_EQ(text, "null");
  }
}

TEST(Json, IsUtf8) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("a\u00e9\u20ac\U0001F600"));
  EXPECT_TRUE(is_utf8(std::string_view("\0", 1)));
  for (const char* const text : {"\xFF", "a\xC3", "\xED\xA0\x80", "\xC1\xBF", "\x80"})
    EXPECT_FALSE(is_utf8(text)) << text;
}

}  // namespace
}  // namespace piper::runtime
