#include "backend/kernel/names.h"

#include <algorithm>

namespace piper::backend {

namespace {

/// Keywords and alternative tokens of C++20, except those in `_t`, which are recognised by their
/// form.
constexpr std::string_view kWords[] = {
    "alignas",       "alignof",     "and",        "and_eq",    "asm",       "auto",
    "bitand",        "bitor",       "bool",       "break",     "case",      "catch",
    "char",          "class",       "co_await",   "co_return", "co_yield",  "compl",
    "concept",       "const",       "const_cast", "consteval", "constexpr", "constinit",
    "continue",      "decltype",    "default",    "delete",    "do",        "double",
    "dynamic_cast",  "else",        "enum",       "explicit",  "export",    "extern",
    "false",         "float",       "for",        "friend",    "goto",      "if",
    "inline",        "int",         "long",       "mutable",   "namespace", "new",
    "noexcept",      "not",         "not_eq",     "nullptr",   "operator",  "or",
    "or_eq",         "private",     "protected",  "public",    "register",  "reinterpret_cast",
    "requires",      "return",      "short",      "signed",    "sizeof",    "static",
    "static_assert", "static_cast", "struct",     "switch",    "template",  "this",
    "thread_local",  "throw",       "true",       "try",       "typedef",   "typeid",
    "typename",      "union",       "unsigned",   "using",     "virtual",   "void",
    "volatile",      "while",       "xor",        "xor_eq"};
static_assert(std::ranges::is_sorted(kWords));

/// Declarations of runtime/abi.h and runtime/kernel_math.h, and the macros of <stdint.h>.
constexpr std::string_view kHeaderPrefixes[] = {"piper", "Piper", "PIPER"};
constexpr std::string_view kHeaderSuffixes[] = {"_t", "_C", "_MAX", "_MIN", "_WIDTH"};
/// Loop nests, checks, streams and their tables, shapes of calls; a body's operands and calls, its
/// accumulate flags, the partial results of a row, and keys of random numbers.
// clang-format off
constexpr std::string_view kOwnPrefixes[] = {
    "fused_", "check_", "stream_", "actions_of_", "comm_of_",
#define CALL(name, KIND, operands, results, family) #name "_",
#include "runtime/calls.def"
#undef CALL
};
// clang-format on
constexpr std::string_view kOwnSuffixes[] = {"_at", "_calls", "_adds", "_lanes", "_draws"};

bool taken(std::string_view name) {
  const auto begins = [&](std::string_view prefix) { return name.starts_with(prefix); };
  const auto ends = [&](std::string_view suffix) { return name.ends_with(suffix); };
  return std::ranges::binary_search(kWords, name) || std::ranges::any_of(kHeaderPrefixes, begins) ||
         std::ranges::any_of(kHeaderSuffixes, ends) || std::ranges::any_of(kOwnPrefixes, begins) ||
         std::ranges::any_of(kOwnSuffixes, ends);
}

}  // namespace

std::string identifier(std::string_view text) {
  std::string name;
  for (const char c : text) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) {
      name += c;
    } else if (!name.empty() && name.back() != '_') {
      name += '_';
    }
  }
  if (!name.empty() && name.back() == '_') name.pop_back();
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) name = "v" + name;
  return taken(name) ? name + "_" : name;
}

std::string comment(std::string_view text) {
  std::string out(text);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c == '\n' || c == '\r' || c == '\\'; }, '/');
  return out;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (byte < 32 || byte > 126 || c == '?') {
      const char digits[] = {'\\', static_cast<char>('0' + (byte >> 6)),
                             static_cast<char>('0' + (byte >> 3 & 7)),
                             static_cast<char>('0' + (byte & 7))};
      out.append(digits, 4);
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string NameScope::add(std::string_view text) {
  std::string name = identifier(text);
  if (names_.insert(name).second) return name;
  int& number = numbers_.try_emplace(name, 1).first->second;
  do name = identifier(std::string(text) + "_" + std::to_string(++number));
  while (!names_.insert(name).second);
  return name;
}

}  // namespace piper::backend
