// Damaged JSON: the reader takes the same texts as Python's `json`, with the same values.
//
// Python takes more by itself: names that occur twice, `NaN`, infinities, halves of surrogate pairs,
// and numbers and depths beyond our limits. The script below refuses these, too.

#include <gtest/gtest.h>

#include <bit>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "runtime/checkpoint/json.h"
#include "tests/support/damage.h"
#include "tests/support/fetched.h"
#include "tests/support/process.h"
#include "tests/support/random_cases.h"
#include "tests/support/temporary_folder.h"

namespace piper::runtime {
namespace {

// Reads texts, each behind its length, and prints a line for each: its value, or `refused`.
constexpr const char* kScript = R"(
import json, struct, sys

def unique(pairs):
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError
    return dict(pairs)

def integer(text):
    value = int(text)
    float(value)
    return value

def real(text):
    value = float(text)
    is_zero = not set(text.lower().split('e')[0]) & set('123456789')
    if value in (float('inf'), float('-inf')) or (value == 0 and not is_zero):
        raise ValueError
    return value

def constant(text):
    raise ValueError

def shown(value, depth):
    if isinstance(value, (list, dict)) and depth == 64:
        raise ValueError
    if isinstance(value, int) and not isinstance(value, bool) and not -2**63 <= value < 2**64:
        value = float(value)
    if isinstance(value, float):
        return 'd' + struct.pack('>d', value).hex()
    if isinstance(value, str):
        return 's' + value.encode().hex()
    if isinstance(value, list):
        return '[' + ''.join(shown(element, depth + 1) + ',' for element in value) + ']'
    if isinstance(value, dict):
        return '{' + ''.join(shown(name, 0) + ':' + shown(element, depth + 1) + ',' for name, element in value.items()) + '}'
    return str(value)

data = open(sys.argv[1], 'rb').read()
position = 0
while position < len(data):
    length = int.from_bytes(data[position:position + 4], 'little')
    text = data[position + 4:position + 4 + length]
    position += 4 + length
    try:
        print(shown(json.loads(text.decode(), object_pairs_hook=unique, parse_int=integer, parse_float=real, parse_constant=constant), 0))
    except (ValueError, OverflowError, RecursionError):
        print('refused')
)";

void append_hex(std::string& out, std::string_view bytes) {
  for (const char c : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x",
                  static_cast<unsigned>(static_cast<unsigned char>(c)));
    out += digits;
  }
}

/// As the script shows a value.
std::string shown(const JsonValue& value) {
  if (value.is_null()) return "None";
  if (const auto truth = value.as_bool()) return *truth ? "True" : "False";
  if (const auto number = value.as_unsigned()) return std::to_string(*number);
  if (const auto number = value.as_signed()) return std::to_string(*number);
  std::string out;
  if (const auto number = value.as_double()) {
    char digits[20];
    std::snprintf(digits, sizeof(digits), "d%016llx",
                  static_cast<unsigned long long>(std::bit_cast<std::uint64_t>(*number)));
    out = digits;
  } else if (const std::string* const text = value.as_string()) {
    out = 's';
    append_hex(out, *text);
  } else if (const JsonValue::Array* const array = value.as_array()) {
    out = '[';
    for (const JsonValue& element : *array) out += shown(element) + ',';
    out += ']';
  } else {
    out = '{';
    for (const JsonMember& member : *value.as_object()) {
      out += 's';
      append_hex(out, member.name);
      out += ':' + shown(member.value) + ',';
    }
    out += '}';
  }
  return out;
}

std::string shown(const std::string& text) {
  std::string error;
  const std::optional<JsonValue> value = parse_json(text, error);
  EXPECT_EQ(value.has_value(), error.empty()) << error;
  return value ? shown(*value) : "refused";
}

const std::vector<std::string> kWords = {"\"a\"",
                                         "\"\\u00e9\"",
                                         "\"\\ud83d\\ude00\"",
                                         "\"\\ud83d\"",
                                         "\"\\udc00x\"",
                                         "NaN",
                                         "-Infinity",
                                         "null",
                                         "true",
                                         "-0",
                                         "-0.0",
                                         "1e5",
                                         "00",
                                         "1.",
                                         "-",
                                         "[",
                                         "]",
                                         "{",
                                         "}",
                                         ":",
                                         ",",
                                         "\"",
                                         "\\",
                                         "\n",
                                         "\xC3\xA9",
                                         "\xED\xA0\x80",
                                         "\xFF",
                                         "\t",
                                         "1E-400",
                                         "5e-324",
                                         "1e309",
                                         "\"\\n\\/\"",
                                         "\"\x01\"",
                                         "-9223372036854775809"};

std::string random_scalar(test::Random& random) {
  switch (random.below(4)) {
    case 0: return std::to_string(random.between(-1000, 1000));
    case 1: return std::to_string(random.next());
    case 2: return std::to_string(random.unit()) + "e" + std::to_string(random.between(-330, 320));
    default: return random.pick<std::string>({"null", "true", "false", "\"\"", "\"x\\ty\"", "0"});
  }
}

std::string random_json(test::Random& random, int depth) {
  if (depth == 0 || random.chance(0.3)) return random_scalar(random);
  const bool object = random.chance(0.6);
  std::string out(1, object ? '{' : '[');
  for (std::uint64_t i = 0, count = random.below(5); i < count; ++i) {
    out += i > 0 ? ", " : "";
    if (object) out += "\"n" + std::to_string(random.below(20)) + "\": ";
    out += random_json(random, depth - 1);
  }
  return out + (object ? '}' : ']');
}

constexpr const char* kHeader =
    R"({"__metadata__":{"format":"pt"},"gpt.wte":{"dtype":"F32","shape":[256,64],"data_offsets":[0,65536]},)"
    R"("gpt.bias":{"dtype":"BF16","shape":[],"data_offsets":[65536,65538]}}  )";

std::string random_text(test::Random& random) {
  std::string text = random.chance(0.3) ? kHeader : random_json(random, 4);
  if (random.chance(0.02)) {
    const auto depth = static_cast<std::size_t>(random.between(60, 68));
    text = std::string(depth, '[') + text + std::string(depth, ']');
  }
  if (random.chance(0.7)) text = test::damaged(text, random, {.edits = 3, .words = kWords});
  if (random.chance(0.2) && !text.empty())
    text[random.below(text.size())] = static_cast<char>(random.below(256));
  return text;
}

TEST(JsonFuzz, PythonTakesTheSameTexts) {
  std::vector<std::string> texts;
  std::string batch;
  test::for_each_case(4000, [&](test::Random& random) {
    const std::string& text = texts.emplace_back(random_text(random));
    for (int i = 0; i < 4; ++i) batch += static_cast<char>(text.size() >> (8 * i) & 0xFF);
    batch += text;
  });
  const test::TemporaryFolder folder;
  const test::ProcessResult python =
      test::run_process({"python3", "-I", "-c", kScript, folder.write("texts", batch)});
  if (python.exit_code == 127) PIPER_NOT_FETCHED("there is no `python3`");
  ASSERT_EQ(python.exit_code, 0) << python.err;
  std::istringstream lines(python.out);
  std::size_t num_taken = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    num_taken += line != "refused";
    ASSERT_EQ(shown(texts[i]), line)
        << "case " << i << ", --seed=" << test::case_options().seed + i << "\n"
        << texts[i];
  }
  if (test::case_options().count > 0) return;
  EXPECT_GT(num_taken, texts.size() / 5);
  EXPECT_LT(num_taken, texts.size() * 4 / 5);
}

}  // namespace
}  // namespace piper::runtime
