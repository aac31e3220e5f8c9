// An axis is its size wherever a number is expected: in every parameter of every builtin, and in
// every place of the language that takes a number.

#include "frontend/sema/analyser.h"
#include "tests/frontend/lowered.h"

namespace piper {
namespace {

using sema::Builtin;
using sema::Signature;
using sema::Type;
using sema::TypeKind;
using test::Lowered;

constexpr Type kInt{TypeKind::integer};

std::vector<Type> all_types() {
  std::vector<Type> types;
  for (std::size_t kind = static_cast<std::size_t>(TypeKind::none);
       kind <= static_cast<std::size_t>(TypeKind::number); ++kind) {
    for (const bool list : {false, true}) types.push_back({static_cast<TypeKind>(kind), list});
  }
  return types;
}

bool takes_number(Type type) { return !type.is(TypeKind::any) && sema::converts(kInt, type); }
bool takes_numbers(Type type) {
  return type.list && sema::converts({TypeKind::integer, true}, type);
}

TEST(AxisIsANumber, ConvertsToWhateverAnIntConvertsTo) {
  for (const Type to : all_types()) {
    for (const bool list : {false, true}) {
      if (sema::converts({TypeKind::integer, list}, to)) {
        EXPECT_TRUE(sema::converts({TypeKind::axis, list}, to)) << type_name(to);
      }
    }
    const auto with_int = sema::common_type(kInt, to);
    if (with_int && to.is_number() && !to.is(TypeKind::axis)) {
      EXPECT_EQ(sema::common_type({TypeKind::axis}, to), with_int) << type_name(to);
    }
  }
}

/// The result of a train in which `n` is an axis of that size, or the number: its messages,
/// directives and settings.
std::string outcome(const std::string& body, bool axis, int size) {
  const auto unless_given = [&](const std::string& name, const std::string& value) {
    return body.find(name + ":") == std::string::npos ? "    " + name + ": " + value + "\n"
                                                      : std::string();
  };
  Lowered lowered(
      "mesh cluster(p: " + std::to_string(size) +
      ", q: 5)\n"
      "model net() { input x: tensor[batch, dim]; weight w[dim] = ones; loss square(x * w) }\n"
      "def whole(n: int) -> int { return n }\n"
      "def same(n: axis) -> int { return n }\n"
      "def real(n: float) -> float { return n / 2 }\n"
      "def room(n: bytes) -> bytes { return n / 2 }\n"
      "def reals(all: [float]) -> float { return all[0] / 2 }\n"
      "schedule cut(n: int) { split batch into mb: n }\n"
      "def walk(q: axis, n: int) -> order { rank r in q { F stage[r] mb[n] } }\n"
      "train t = net() on cluster {\n" +
      unless_given("data", "synthetic(batch: 4, dim: 2)") + unless_given("optim", "sgd(lr: 0.1)") +
      unless_given("steps", "1") + "    let n = " + (axis ? "p" : std::to_string(size)) + "\n    " +
      body + "\n}\n");
  // The line fits the language.
  EXPECT_TRUE(lowered.program.ok) << body << "\n" << lowered.report();
  const bool fine = lowered.train("t");
  std::string text;
  for (const Diagnostic& diagnostic : lowered.sink.sorted()) text += diagnostic.message + "\n";
  if (!fine) return text;
  llvm::raw_string_ostream os(text);
  directive::print(lowered.result->strategy.settings, os, lowered.context);
  os.flush();
  return text + lowered.strategy();
}

void expect_same(const std::string& body) {
  for (const int size : {1, 3}) {
    EXPECT_EQ(outcome(body, true, size), outcome(body, false, size)) << body;
  }
}

// ---- builtins
// ------------------------------------------------------------------------------------------------------

/// An argument other than the tested one.
std::string sample(Type type) {
  switch (type.kind) {
    case TypeKind::floating: return type.list ? "[0.5, 0.25]" : "0.5";
    case TypeKind::rate: return "0.1";
    case TypeKind::op: return "F stage[0] mb[0]";
    case TypeKind::string: return "\"corpus.txt\"";
    default: return type.list ? "[7, 2]" : "7";
  }
}

/// The forms of a number as an argument of that type.
std::vector<std::string> numbers(Type type) {
  if (takes_number(type)) return {"n"};
  if (takes_numbers(type)) return {"[n]", "[n, 2]", "[2, n]", "[0.5, n]"};
  return {};
}

/// A line of a train that shows the value of the call; empty where no line of a train takes one.
std::string line_that_shows(const Signature& row, const std::string& call) {
  if (row.is_method) return "order walk(q, 2)." + call;
  switch (row.result.kind) {
    case TypeKind::integer:
    case TypeKind::floating:
    case TypeKind::number: return "let shown = " + call + "; require shown == 12345";
    case TypeKind::any: return "let shown = sum(" + call + "); require shown == 12345";
    case TypeKind::data: return "data: " + call;
    case TypeKind::optimizer: return "optim: " + call;
    case TypeKind::rate: return "optim: sgd(lr: " + call + ")";
    case TypeKind::every: return "checkpoint: " + call;
    case TypeKind::order: return "order " + call;
    default: return {};
  }
}

/// The calls of `row` in which one argument is the number `n`.
std::vector<std::string> calls_with_number(const Signature& row) {
  std::vector<std::string> calls;
  const auto call = [&](std::size_t given, const std::string& value, const std::string& further) {
    std::string text;
    for (std::size_t i = 0; i < row.params.size(); ++i) {
      if (i != given && row.params[i].optional) continue;
      text += (text.empty() ? "" : ", ") + std::string(row.params[i].name) + ": " +
              (i == given ? value : sample(row.params[i].type));
    }
    if (!further.empty()) text += (text.empty() ? "" : ", ") + further;
    calls.push_back(std::string(row.name) + "(" + text + ")");
  };
  for (std::size_t i = 0; i < row.params.size(); ++i) {
    for (const std::string& value : numbers(row.params[i].type)) call(i, value, "");
  }
  if (row.variadic && takes_number(row.rest)) {
    for (const char* values :
         {"n", "n, 2", "2, n", "n, 0.5", "n, n", "1MiB, n", "[n]", "[n, 2]", "[0.5, n]"})
      call(row.params.size(), "", values);
  }
  if (row.open && takes_number(row.rest)) call(row.params.size(), "", "mb: n");
  return calls;
}

/// A model, and with it every function of tensors and every initial value, sees no axis.
bool stands_in_models(const Signature& row) {
  return row.result.is(TypeKind::initializer) ||
         (!row.params.empty() && row.params[0].type.is_tensor());
}

/// No line of a train shows a device or a link.
bool stands_in_machines(const Signature& row) {
  return row.result.is(TypeKind::device) || row.result.is(TypeKind::link);
}

TEST(AxisIsANumber, InEveryParameterOfEveryBuiltin) {
  std::size_t calls = 0;
#define BUILTIN(id, signature) Builtin::id,
#define UNAVAILABLE(name, instead)
  for (const Builtin id : {
#include "frontend/sema/builtins.def"
       }) {
#undef BUILTIN
#undef UNAVAILABLE
    const Signature& row = sema::signature(id);
    if (stands_in_models(row) || stands_in_machines(row)) continue;
    for (const std::string& call : calls_with_number(row)) {
      const std::string line = line_that_shows(row, call);
      ASSERT_FALSE(line.empty()) << "say in `line_that_shows` what shows the value of `" << row.text
                                 << "`";
      expect_same(line);
      ++calls;
    }
  }
  EXPECT_GT(calls, 50u);
  Lowered lowered("model net(n: axis) { input x: tensor[batch, dim]; loss square(n * x) }\n");
  EXPECT_EQ(lowered.codes(), std::vector<Code>{Code::misplaced_type}) << lowered.report();
}

// ---- the language
// --------------------------------------------------------------------------------------------------

TEST(AxisIsANumber, InEveryPlaceThatTakesOne) {
  for (const std::string expression : {"n",
                                       "-n",
                                       "n + 1",
                                       "1 + n",
                                       "n - 2",
                                       "n * 2",
                                       "n / 2",
                                       "n % 2",
                                       "n * 0.5",
                                       "0.5 / n",
                                       "n + n",
                                       "-n * n",
                                       "n - n / 2",
                                       "n * 1MiB",
                                       "1MiB / n",
                                       "1MiB + n",
                                       "n - 1MiB",
                                       "sum(0..n)",
                                       "sum(n..7)",
                                       "sum(0..7 by n)",
                                       "len([n])",
                                       "len([n, n])",
                                       "sum([n, n])",
                                       "sum([n, 2])",
                                       "sum([n, 0.5])",
                                       "sum([1MiB, n])",
                                       "max([n, n])",
                                       "sum([for i in 0..n: i])",
                                       "sum([for i in [n, n]: i])",
                                       "sum([for i in 0..4: n])",
                                       "[5, 6, 7, 8][n]",
                                       "sum([5, 6, 7, 8][[n, 0]])",
                                       "(0..9)[n]",
                                       "if n > 2 then 1 else 0",
                                       "if n == 3 then n else 7",
                                       "if n > 2 then 0.5 else n",
                                       "if true then n else 1MiB",
                                       "if n < 2 or n >= 3 then n else -n",
                                       "whole(n)",
                                       "same(p)",
                                       "real(n)",
                                       "room(n)",
                                       "reals([n])",
                                       "reals([n, 1])",
                                       "min(n, 2) + max(0, n)",
                                       "abs(-n)"}) {
    expect_same("let shown = " + expression + "; require shown == 12345");
  }
  for (const std::string line :
       {"var a = n; a = -a; require a == 12345",
        "var a = n; a = a + 1; require a == 12345",
        "var a = 2; a = n; require min(a, 7) == 12345",
        "var a = 0.5; a = n; let half = a / 2; require half == 12345",
        "var a = 1MiB; a = n; let half = a / 2; require half == 12345",
        "var a = [n, n]; a = [1, 2]; let shown = sum(a); require shown == 12345",
        "var a = []; a = [n]; let shown = sum(a); require shown == 12345",
        "var a = [0.5]; a = [n]; let half = a[0] / 2; require half == 12345",
        "let a, b = [n, 2]; let shown = min(a, b); require shown == 12345",
        "var a = 0; repeat n { a = a + 1 }; require a == 12345",
        "var a = 0; for i in 0..n { a = a + i }; require a == 12345",
        "var a = 0; for i in [n, n] { a = a + i }; require a == 12345",
        "require n > 7",
        "require n == 3 and 3 <= n",
        "require peak_memory < n",
        "require bubble < n",
        "split batch into mb: n",
        "split batch into mb: -n",
        "partition model into stage: n",
        "partition model into stage: 2 with sizes: [n, n]",
        "partition model into stage: 2 with sizes: [n, 2]",
        "place stage[n] mb[0..n, 5] on q[n]",
        "replicate model over q with bucket: n",
        "replicate model over q with bucket: n - 3",
        "replicate model over q with zero: n - 1",
        "stream s: model.send with window: n",
        "steps: n",
        "seed: n",
        "cut(n)",
        "order walk(q, n)",
        "order { rank r in q[n] { F stage[r] } }",
        "order { rank r in q[0..n] { at n: F stage[r] mb[n] } }"}) {
    expect_same(line);
  }
}

TEST(AxisIsANumber, InADefaultOfAScheduleThatIsShownByItself) {
  Lowered lowered(
      "schedule s(p: axis, n: int = p, x: float = p) { split batch into mb: max(n, 1) + floor(x / 2) }\n");
  ASSERT_TRUE(lowered.schedule("s", {{"p", "3"}})) << lowered.report();
  EXPECT_EQ(lowered.strategy(), "split batch into mb: 4\n");
}

}  // namespace
}  // namespace piper
