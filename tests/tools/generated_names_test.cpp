// A program may use any names for its weights, regions, axes and itself: the generated code
// compiles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "tests/support/golden.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/transcript.h"

namespace piper::test {
namespace {

using testing::HasSubstr;
using Names = std::set<std::string>;

/// C++20: keywords, then alternative tokens.
const Names kWords = {
    "alignas",       "alignof",     "asm",       "auto",      "bool",         "break",
    "case",          "catch",       "char",      "char8_t",   "char16_t",     "char32_t",
    "class",         "concept",     "const",     "consteval", "constexpr",    "constinit",
    "const_cast",    "continue",    "co_await",  "co_return", "co_yield",     "decltype",
    "default",       "delete",      "do",        "double",    "dynamic_cast", "else",
    "enum",          "explicit",    "export",    "extern",    "false",        "float",
    "for",           "friend",      "goto",      "if",        "inline",       "int",
    "long",          "mutable",     "namespace", "new",       "noexcept",     "nullptr",
    "operator",      "private",     "protected", "public",    "register",     "reinterpret_cast",
    "requires",      "return",      "short",     "signed",    "sizeof",       "static",
    "static_assert", "static_cast", "struct",    "switch",    "template",     "this",
    "thread_local",  "throw",       "true",      "try",       "typedef",      "typeid",
    "typename",      "union",       "unsigned",  "using",     "virtual",      "void",
    "volatile",      "wchar_t",     "while",     "and",       "and_eq",       "bitand",
    "bitor",         "compl",       "not",       "not_eq",    "or",           "or_eq",
    "xor",           "xor_eq"};
/// Reserved words of the language cannot be names in a program.
const Names kOfTheLanguage = {
    "and",    "as",        "at",      "backward",  "by",       "cursor",  "def",       "else",
    "false",  "for",       "freeze",  "fuse",      "if",       "in",      "input",     "into",
    "let",    "loss",      "mesh",    "model",     "not",      "offload", "on",        "or",
    "order",  "over",      "param",   "partition", "place",    "rank",    "recompute", "region",
    "repeat", "replicate", "require", "return",    "schedule", "shard",   "split",     "stream",
    "then",   "train",     "true",    "tune",      "use",      "var",     "weight",    "with",
    "F",      "B",         "BI",      "BW"};

/// All names in a text, except those that begin with an underscore: generated names do not.
Names words_of(const std::string& text) {
  static const std::regex kName("\\b[A-Za-z][A-Za-z0-9_]*");
  return Names(std::sregex_token_iterator(text.begin(), text.end(), kName),
               std::sregex_token_iterator());
}

/// The macros and the declarations in the headers of generated programs, as the compiler sees them.
Names words_of_headers(const TemporaryFolder& folder) {
  const std::string source = folder.write(
      "headers.cpp", "#include \"runtime/abi.h\"\n#include \"runtime/kernel_math.h\"\n");
  Names names;
  for (const char* question : {"-dM", "-P"}) {
    const ProcessResult answer = run_process({"g++", "-std=c++20", "-I.", "-E", question, source});
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    names.merge(words_of(answer.out));
  }
  return names;
}

/// An attention, lookups and a masked loss, so that every kind of call, check and loop nest is
/// there; `names` are weights of one device.
std::string program(const Names& names, const std::string& mesh, const std::string& axis,
                    const std::string& train) {
  std::string weights, product;
  for (const std::string& name : names) {
    weights += (weights.empty() ? "" : ", ") + name + "[dim]";
    product += "    x = x * " + name + ";\n";
  }
  return "mesh " + mesh + "(" + axis +
         ": 1)\n"
         "model first_layer(tokens: i64[batch, seq], vocab: int, dim: int) -> tensor[batch, seq, dim] {\n"
         "    weight table[vocab, dim]\n"
         "    return lookup(table, tokens)\n"
         "}\n"
         "model last_layers(x: tensor[batch, seq, dim], targets: i64[batch, seq], vocab: int) -> tensor[batch, seq] {\n"
         "    weight q[dim, heads: 2, width: 4], k[dim, heads, width], v[dim, heads, width], joined[heads, width, dim], classes[dim, vocab]\n"
         "    let y = attend(x @ q, x @ k, x @ v) @ joined\n"
         "    return cross_entropy(rms_norm(y) @ classes, targets, ignore: 0)\n"
         "}\n"
         "model net(vocab: int, dim: int) {\n"
         "    input tokens: i64[batch, seq], targets: i64[batch, seq]\n"
         "    weight " +
         weights +
         " = ones\n"
         "    var x = first_layer(tokens, vocab, dim)\n" +
         product +
         "    loss last_layers(x, targets, vocab)\n"
         "}\n"
         "train " +
         train + " = net(vocab: 8, dim: 8) on " + mesh +
         " {\n"
         "    data: synthetic(batch: 2, seq: 4, classes: 8)\n"
         "    optim: sgd(lr: 0.1)\n"
         "    steps: 1\n"
         "    place model on " +
         axis +
         "\n"
         "}\n";
}

std::string generated(const TemporaryFolder& folder, const std::string& text,
                      const std::string& role) {
  const std::string out = (folder.path() / "built").string();
  const ToolResult built = run_tool({"build", "a.pipe", "-o", out}, {{"a.pipe", text}});
  EXPECT_EQ(built.exit_code, 0) << built.err;
  return read_text(out + "/" + role + ".cpp").value_or("");
}

void expect_trains(const std::string& text) {
  const ToolResult trained = run_tool({"train", "a.pipe"}, {{"a.pipe", text}});
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("generated code"));
}

TEST(GeneratedNames, AProgramMayUseEveryWord) {
  const TemporaryFolder folder;
  Names names = words_of_headers(folder);
  for (const char* one :
       {"int64_t", "UINT64_MAX", "PIPER_MATH", "PiperRank", "piper_exp", "inline"})
    EXPECT_TRUE(names.contains(one)) << one;
  names.merge(Names(kWords));
  const auto drop = [&] {
    for (const std::string& word : kOfTheLanguage) names.erase(word);
    for (const char* word : {"first_layer", "last_layers", "net", "vocab", "dim", "seq", "batch",
                             "tokens", "targets", "x"})
      names.erase(word);
  };
  drop();
  // The printers' own words: every word of a program with the usual names.
  const Names own = words_of(generated(folder, program({"gain"}, "one", "device", "small"), "one"));
  for (const char* one : {"check_range", "check_masked", "attend_1", "arena", "step", "model_F",
                          "model_F_at", "model_F_calls"})
    EXPECT_TRUE(own.contains(one)) << one;
  names.insert(own.begin(), own.end());
  drop();
  names.insert({"_Bool", "__x86_64__", "__linux__"});
  const std::string text = program(names, "namespace", "template", "class");
  expect_trains(text);
  EXPECT_THAT(generated(folder, text, "namespace"),
              HasSubstr("const float* const concept_ = (const float*)(arena + at->concept_);"));
}

// Regions become functions, and two of them may be one name where a dot becomes an underscore.
TEST(GeneratedNames, RegionsMayBeCalledAlike) {
  const std::string text =
      "mesh m(d: 1)\n"
      "model net(f: int) {\n"
      "    input x: tensor[batch, f]\n"
      "    weight w[f], v[f], u[f] = ones\n"
      "    var y = x\n"
      "    region static { \n        region inner { y = tanh(y * w) }\n        y = y + 1\n    }\n"
      "    region static0_inner { y = tanh(y * v) }\n"
      "    loss square(y * u)\n"
      "}\n"
      "train t = net(f: 4) on m {\n"
      "    data: synthetic(batch: 4)\n"
      "    optim: sgd(lr: 0.1)\n"
      "    steps: 1\n"
      "    place static on d\n"
      "    place static.inner on d\n"
      "    place static0_inner on d\n"
      "    place model on d\n"
      "}\n";
  expect_trains(text);
}

}  // namespace
}  // namespace piper::test
