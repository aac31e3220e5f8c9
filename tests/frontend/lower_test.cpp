// Lowering: mistakes to caret expectations, models and strategies to goldens, examples and library
// through the passes, robustness.

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <sstream>

#include "frontend/sema/builtins.h"
#include "ir/tensor/graph_text.h"
#include "tests/diagnostics/findings.h"
#include "tests/frontend/lowered.h"
#include "tests/support/compile.h"
#include "tests/support/file_test.h"
#include "tests/support/golden.h"
#include "tests/support/random_cases.h"
#include "tests/support/random_models.h"

namespace piper {
namespace {

using test::Lowered;

/// The `-D name=value` of the first line that concern `function` (its parameters and the file's
/// params).
std::vector<lower::Override> overrides_of(const std::string& text, const sema::Program& program,
                                          const sema::Function* function) {
  std::vector<lower::Override> overrides;
  std::istringstream words(text.substr(0, text.find('\n')));
  std::string word;
  while (words >> word) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) continue;
    const std::string name = word.substr(0, equals);
    bool known = false;
    for (const sema::Param& param : program.params)
      known |= param.module.index() == 0 && param.syntax->name.name == name;
    for (std::size_t i = 0; function && i < function->syntax->params.size(); ++i)
      known |= function->syntax->params[i].name.name == name;
    if (known) overrides.push_back({name, word.substr(equals + 1)});
  }
  return overrides;
}

/// Lowers every train, schedule and machine of the entry file; their diagnostics go to the sink.
void lower_everything(Lowered& lowered, const std::string& text) {
  if (!lowered.program.ok) return;
  for (std::size_t i = 0; i < lowered.program.functions.size(); ++i) {
    const sema::Function& function = lowered.program.functions[i];
    if (function.module.index() != 0 || function.sort() != ast::FunctionSort::schedule) continue;
    const std::size_t before = lowered.sink.error_count();
    const bool fine =
        lowered.schedule(sema::FunctionId::at(i), overrides_of(text, lowered.program, &function));
    EXPECT_EQ(fine, lowered.sink.error_count() == before) << function.name();
  }
  for (std::size_t i = 0; i < lowered.program.trains.size(); ++i) {
    const std::size_t before = lowered.sink.error_count();
    const bool fine =
        lowered.train(sema::TrainId::at(i), overrides_of(text, lowered.program, nullptr));
    EXPECT_EQ(fine, lowered.sink.error_count() == before) << lowered.program.trains[i].name();
  }
  for (std::size_t i = 0; i < lowered.program.machines.size(); ++i) {
    const std::size_t before = lowered.sink.error_count();
    const auto machine = lower::lower_machine(lowered.program, sema::MachineId::at(i),
                                              overrides_of(text, lowered.program, nullptr),
                                              lowered.context, lowered.sink);
    EXPECT_EQ(machine.has_value(), lowered.sink.error_count() == before)
        << lowered.program.machines[i].name();
  }
}

const auto check_errors = [](const test::FileTest& test) {
  test::expect_findings(test, [&](const std::string& path, const std::string& source) {
    Lowered lowered(source, path);
    lower_everything(lowered, source);
    return test::findings(lowered.sink, lowered.file);
  });
};
/// Faults of several lines that evaluate well one by one.
PIPER_FILE_TEST(
    LineErrors, "tests/frontend/testdata/lower/lines", ".pipe", [](const test::FileTest& test) {
      test::expect_findings(test, [&](const std::string& path, const std::string& source) {
        Lowered lowered(source, path);
        for (std::size_t i = 0; lowered.program.ok && i < lowered.program.functions.size(); ++i) {
          if (!lowered.schedule(
                  sema::FunctionId::at(i),
                  overrides_of(source, lowered.program, &lowered.program.functions[i])))
            continue;
          passes::prepare(std::move(lowered.result->model), std::move(lowered.result->strategy),
                          lowered.sink);
        }
        return test::findings(lowered.sink, lowered.file);
      });
    });
PIPER_FILE_TEST(LowerErrors, "tests/frontend/testdata/lower/errors", ".pipe", check_errors);
PIPER_FILE_TEST(ModelErrors, "tests/frontend/testdata/models/errors", ".pipe", check_errors);

/// The model of every train of the file as tensor graph, with its directives.
PIPER_FILE_TEST(ModelGoldens, "tests/frontend/testdata/models/goldens", ".pipe",
                [](const test::FileTest& test) {
                  Lowered lowered(test.text, test.path);
                  ASSERT_TRUE(lowered.program.ok) << lowered.report();
                  std::string text;
                  for (std::size_t i = 0; i < lowered.program.trains.size(); ++i) {
                    ASSERT_TRUE(lowered.train(sema::TrainId::at(i))) << lowered.report();
                    EXPECT_TRUE(tensor::verify(lowered.result->model, lowered.sink))
                        << lowered.report();
                    text += "// train " + std::string(lowered.program.trains[i].name()) + "\n" +
                            tensor::print(lowered.result->model, LocationForm::none);
                  }
                  test::expect_golden(test.beside(".pir"), text);
                });

PIPER_FILE_TEST(StrategyGoldens, "tests/frontend/testdata/lower/goldens", ".pipe",
                [](const test::FileTest& test) {
                  Lowered lowered(test.text, test.path);
                  std::string text;
                  for (std::size_t i = 0;
                       lowered.program.ok && i < lowered.program.functions.size(); ++i) {
                    const sema::Function& function = lowered.program.functions[i];
                    if (function.sort() != ast::FunctionSort::schedule) continue;
                    const auto overrides = overrides_of(test.text, lowered.program, &function);
                    if (overrides.empty()) continue;
                    ASSERT_TRUE(lowered.schedule(sema::FunctionId::at(i), overrides))
                        << lowered.report();
                    text +=
                        "// schedule " + std::string(function.name()) + "\n" + lowered.strategy();
                  }
                  ASSERT_TRUE(lowered.sink.empty()) << lowered.report();
                  test::expect_golden(test.beside(".strategy"), text);
                });

/// Every train of an example is lowered and goes through the passes.
PIPER_FILE_TEST(Examples, "examples", ".pipe", [](const test::FileTest& test) {
  Lowered lowered(test.text, test.path);
  ASSERT_TRUE(lowered.program.ok) << lowered.report();
  ASSERT_FALSE(lowered.program.trains.empty() && lowered.program.functions.empty());
  for (std::size_t i = 0; i < lowered.program.trains.size(); ++i) {
    ASSERT_TRUE(lowered.train(sema::TrainId::at(i))) << lowered.report();
    EXPECT_TRUE(tensor::verify(lowered.result->model, lowered.sink)) << lowered.report();
    passes::Options options;
    options.verify_each = true;
    EXPECT_TRUE(
        test::compile(lowered.result->model, lowered.result->strategy, lowered.sink, options)
            .has_value());
    EXPECT_TRUE(lowered.sink.empty()) << lowered.report();
  }
});

// ---- values from the command line
// ----------------------------------------------------------------------------------

constexpr const char* kWithParams =
    "param corpus = \"corpus.txt\"\n"
    "param rate = 1e-3\n"
    "param half = 1\n"
    "param layers = half * 2\n"
    "param tight = true\n"
    "param bucket = 25MiB\n"
    "param sizes = [1]\n"
    "mesh pair(p: layers)\n"
    "model net(depth: int) {\n"
    "    input tokens: i64[batch, seq]\n"
    "    weight token[vocab: 256, dim: 4] = normal(0.1)\n"
    "    var x = lookup(token, tokens)\n"
    "    for l in 0..depth { x = tanh(x) }\n"
    "    loss square(x)\n"
    "}\n"
    "train small = net(depth: layers) on pair {\n"
    "    data: bytes(corpus, batch: 4, seq: 8)\n"
    "    optim: sgd(lr: if tight then rate else 1)\n"
    "    steps: sum(sizes)\n"
    "    replicate model over p with bucket: bucket\n"
    "}\n";

// ---- functions over tensors
// ----------------------------------------------------------------------------------------

/// The functions of builtins.def whose result is a tensor.
std::vector<const sema::Signature*> tensor_functions() {
  std::vector<const sema::Signature*> functions;
  for (const std::string_view name : sema::builtin_names(false)) {
    for (const sema::Signature* function : sema::find_builtins(name, false)) {
      if (function->result.is_tensor()) functions.push_back(function);
    }
  }
  return functions;
}

/// A call with the arguments that must stand, in a model that has `x`, `classes` and the dimension
/// `wide`.
std::string call_of(const sema::Signature& function) {
  std::string call = std::string(function.name) + "(";
  for (const sema::BuiltinParam& param : function.params) {
    if (param.optional) continue;
    const bool number = param.type.is_number() && !param.type.list;
    call += (call.ends_with("(") ? "" : ", ");
    call += param.type.is(sema::TypeKind::tensor) ? "x"
            : param.type.is_tensor()              ? "classes"
            : number ? param.type.is(sema::TypeKind::floating) ? "0.5" : "1"
                     : "0..1";
  }
  return call + (function.open ? ", wide: other)" : ")");
}

// A row of builtins.def gives operations, or an error in the call: without a case in model_ops.cpp
// it would fail silently.
TEST(LowerBuiltins, EveryFunctionOverTensorsIsLowered) {
  EXPECT_GT(tensor_functions().size(), 30u);
  for (const sema::Signature* function : tensor_functions()) {
    Lowered lowered(
        "mesh one(p: 1)\nmodel net(wide: int) {\n    input x: f32[batch, wide]\n    input classes: i64[batch]\n    let _y = " +
        call_of(*function) +
        "\n    loss square(x)\n}\ntrain t = net(wide: 4) on one {\n    data: synthetic(batch: 8, classes: 4)\n    optim: sgd(lr: 1)\n    steps: 1\n}\n");
    const bool fine = lowered.train("t");
    EXPECT_NE(fine, lowered.sink.has_errors()) << function->text << "\n" << lowered.report();
    if (function->params.size() > 1 || function->open) continue;
    EXPECT_TRUE(fine) << function->text << "\n" << lowered.report();
  }
}

// The laws meet a function only in models that are drawn.
TEST(LowerBuiltins, EveryFunctionOverTensorsIsInSomeRandomModel) {
  std::set<std::string> called;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    test::Random random(seed);
    const std::string text = test::random_model(random).text;
    for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
      for (end = begin;
           end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_');)
        ++end;
      if (end < text.size() && text[end] == '(') called.emplace(text, begin, end - begin);
    }
  }
  called.insert({"mean_squared", "sum"});  // a difference and a square; `dot` and `mean` add
  for (const sema::Signature* function : tensor_functions()) {
    EXPECT_TRUE(called.contains(std::string(function->name)))
        << function->text << ": tests/support/random_models.cpp does not write it";
  }
}

TEST(LowerOverrides, ReplaceParamsOfAnyType) {
  Lowered lowered(kWithParams, "folder/net.pipe");
  ASSERT_TRUE(lowered.train("small")) << lowered.report();
  EXPECT_EQ(lowered.result->strategy.settings.data->path, "folder/corpus.txt");
  EXPECT_EQ(lowered.result->strategy.settings.optimizer->lr.base, 1e-3);
  EXPECT_EQ(lowered.result->strategy.mesh.devices(), 2u);
  ASSERT_TRUE(lowered.train(
      "small", {{"corpus", "data/b.txt"}, {"half", "2"}, {"rate", "2.5e-1"}, {"bucket", "1.5KiB"}}))
      << lowered.report();
  EXPECT_EQ(lowered.result->strategy.settings.data->path, "data/b.txt");  // as the shell gave it
  EXPECT_EQ(lowered.result->strategy.settings.optimizer->lr.base, 0.25);
  EXPECT_EQ(lowered.result->strategy.mesh.devices(), 4u);
  EXPECT_EQ(std::get<directive::Replicate>(lowered.result->strategy.directives[0]).bucket_bytes,
            1536);
  EXPECT_EQ(lowered.result->strategy.settings.steps, 1u);
  ASSERT_TRUE(lowered.train("small", {{"sizes", "[1, 2 ,3]"}})) << lowered.report();
  EXPECT_EQ(lowered.result->strategy.settings.steps, 6u);
  ASSERT_TRUE(
      lowered.train("small", {{"tight", "false"}, {"rate", "3"}, {"half", "8"}, {"half", "1"}}))
      << lowered.report();
  EXPECT_EQ(lowered.result->strategy.settings.optimizer->lr.base, 1);
  EXPECT_EQ(lowered.result->strategy.mesh.devices(), 2u);  // the last one wins
}

TEST(LowerSettings, HowOftenATrainWritesAndEvaluates) {
  const std::string text =
      "param often = 10\n"
      "param newest = 3\n"
      "model net() { input x: tensor[batch, dim: 4]; weight w[dim] = ones; loss square(x * w) }\n"
      "mesh one(p: 2)\n"
      "train plain = net() on one { data: synthetic(batch: 4); optim: sgd(lr: 0.1); steps: 5 }\n"
      "train t = net() on one {\n"
      "    data: synthetic(batch: 4)\n"
      "    held_out: synthetic(batch: 4)\n"
      "    optim: sgd(lr: 0.1)\n"
      "    steps: 5\n"
      "    checkpoint: every(2 * often, keep: max(newest, p))\n"
      "    let seldom = every(steps: often)\n"
      "    evaluate: if often > 1 then seldom else every(1)\n"
      "}\n";
  Lowered lowered(text);
  const auto settings = [&]() -> const directive::Settings& {
    return lowered.result->strategy.settings;
  };
  ASSERT_TRUE(lowered.train("plain")) << lowered.report();
  EXPECT_FALSE(settings().checkpoint);
  EXPECT_FALSE(settings().evaluate);
  // Both are longer than the train, which is legal.
  ASSERT_TRUE(lowered.train("t")) << lowered.report();
  EXPECT_EQ(settings().checkpoint->steps, 20u);
  EXPECT_EQ(settings().checkpoint->keep, 3u);
  EXPECT_EQ(settings().evaluate->steps, 10u);
  EXPECT_EQ(settings().evaluate->keep, 0u);
  EXPECT_EQ(lowered.context.locations.primary(settings().evaluate->loc).begin,
            text.find("if often > 1"));
  ASSERT_TRUE(lowered.train("t", {{"often", "1"}, {"newest", "1"}})) << lowered.report();
  EXPECT_EQ(settings().checkpoint->steps, 2u);
  EXPECT_EQ(settings().checkpoint->keep, 2u);  // the size of the axis
  EXPECT_EQ(settings().evaluate->steps, 1u);
  EXPECT_FALSE(lowered.train("t", {{"often", "0"}}));
  EXPECT_EQ(lowered.codes(), std::vector<Code>(2, Code::setting_out_of_range)) << lowered.report();
}

TEST(LowerSettings, WeightsLieBesideTheProgram) {
  const std::string text =
      "param base = \"sub/../base.safetensors\"\n"
      "model net() { input x: tensor[batch, dim: 4]; weight w[dim]; loss square(x * w) }\n"
      "mesh one(p: 1)\n"
      "train plain = net() on one { data: synthetic(batch: 2); optim: sgd(lr: 0.1); steps: 5 }\n"
      "train t = net() on one {\n"
      "    data: synthetic(batch: 2)\n"
      "    optim: sgd(lr: 0.1)\n"
      "    steps: 5\n"
      "    init: weights(base)\n"
      "}\n"
      "train u = net() on one {\n"
      "    data: synthetic(batch: 2)\n"
      "    optim: sgd(lr: 0.1)\n"
      "    steps: 5\n"
      "    let file = weights(path: \"/a/model\", missing: init)\n"
      "    init: file\n"
      "}\n";
  Lowered lowered(text);
  const auto init = [&]() -> const std::optional<directive::InitialWeights>& {
    return lowered.result->strategy.settings.init;
  };
  ASSERT_TRUE(lowered.train("plain")) << lowered.report();
  EXPECT_FALSE(init());
  ASSERT_TRUE(lowered.train("t")) << lowered.report();
  EXPECT_EQ(init()->path.substr(init()->path.rfind('/') + 1), "base.safetensors");
  EXPECT_EQ(init()->path.find(".."), std::string::npos);
  EXPECT_FALSE(init()->keeps_missing);
  EXPECT_EQ(lowered.context.locations.primary(init()->path_loc).begin, text.find("base)"));
  ASSERT_TRUE(lowered.train("u")) << lowered.report();
  EXPECT_EQ(init()->path, "/a/model");
  EXPECT_TRUE(init()->keeps_missing);
  EXPECT_FALSE(init()->map);
  // From the command line it is relative to the current folder.
  ASSERT_TRUE(lowered.train("t", {{"base", "x/y"}})) << lowered.report();
  EXPECT_EQ(init()->path, "x/y");
}

TEST(LowerOverrides, ThatDoNotFitAreRefused) {
  for (const lower::Override& override :
       std::vector<lower::Override>{{"half", "two"},
                                    {"half", ""},
                                    {"half", "1.5"},
                                    {"half", "99999999999999999999"},
                                    {"rate", "inf"},
                                    {"rate", "1e-3x"},
                                    {"tight", "yes"},
                                    {"bucket", "25MB"},
                                    {"bucket", "1e300GiB"},
                                    {"sizes", "2"},
                                    {"sizes", "[1, a]"},
                                    {"sizes", "[1,]"},
                                    {"sizes", "[1"}}) {
    SCOPED_TRACE(override.name + "=" + override.value);
    Lowered lowered(kWithParams);
    EXPECT_FALSE(lowered.train("small", {override}));
    EXPECT_EQ(lowered.codes(), std::vector<Code>{Code::override_bad_value}) << lowered.report();
  }
  Lowered lowered(kWithParams);
  EXPECT_FALSE(lowered.train("small", {{"corpse", "a"}}));
  ASSERT_EQ(lowered.codes(), std::vector<Code>{Code::override_unknown}) << lowered.report();
  EXPECT_EQ(lowered.sink.sorted()[0].hint, "did you mean `corpus`?");
  Lowered other(kWithParams);
  EXPECT_FALSE(other.train("small", {{"nothing_like_it", "a"}}));
  ASSERT_EQ(other.codes(), std::vector<Code>{Code::override_unknown}) << other.report();
  EXPECT_EQ(other.sink.sorted()[0].hint,
            "known are `corpus`, `rate`, `half`, `layers`, `tight`, `bucket`, `sizes`");
}

TEST(LowerPrecision, CastsToF32AreIdentityInTheReferenceOfF64) {
  Lowered lowered(
      "model net() {\n"
      "    input x: f32[batch, dim: 4]\n"
      "    weight w[dim] = ones\n"
      "    loss square(twice(x) * w)\n"
      "}\n"
      "model twice(x: f32[batch, dim]) -> f32[batch, dim] { return 2 * x }\n"
      "mesh one(p: 1)\n"
      "train t = net() on one { data: synthetic(batch: 4); optim: sgd(lr: 0.1); steps: 1 }\n");
  for (const std::optional<tensor::DType> reference :
       {std::optional<tensor::DType>(), std::optional(tensor::DType::f64)}) {
    const auto result = lower::lower_train(lowered.program, lowered.program.find_train("t"), {},
                                           lowered.context, lowered.sink, reference);
    ASSERT_TRUE(result) << lowered.report();
    EXPECT_EQ(result->model.type(result->model.inputs[0].value).dtype,
              reference.value_or(tensor::DType::f32));
  }
}

TEST(LowerOverrides, AScheduleByItselfNeedsItsParameters) {
  Lowered lowered(Lowered::use("interleaved"));
  EXPECT_FALSE(lowered.schedule("interleaved", {{"p", "2"}}));
  ASSERT_EQ(lowered.codes(), std::vector<Code>{Code::parameter_missing}) << lowered.report();
  EXPECT_EQ(lowered.sink.sorted()[0].hint, "add `-D m=...`");
  Lowered unknown(Lowered::use("interleaved"));
  EXPECT_FALSE(unknown.schedule("interleaved", {{"p", "2"}, {"m", "4"}, {"w", "4"}}));
  EXPECT_EQ(unknown.codes(), std::vector<Code>{Code::override_unknown}) << unknown.report();
  Lowered empty(Lowered::use("gpipe"));
  EXPECT_FALSE(empty.schedule("gpipe", {{"p", "0"}, {"m", "4"}}));
  EXPECT_EQ(empty.codes(), std::vector<Code>{Code::bad_mesh}) << empty.report();
}

TEST(LowerOverrides, AsksOnlyForWhatTheCommandLineCanWrite) {
  const char* const text =
      "schedule on_all(r: selector, p: axis, m: int) { place r on p[0] }\n"
      "schedule on_some(p: axis, r: [selector] = [model]) { place r[0] on p[0] }\n"
      "schedule on_each(all: [axis]) { for p in all { place model on p[0] } }\n";
  for (const std::string schedule : {"on_all", "on_each"}) {
    Lowered lowered(text);
    EXPECT_FALSE(lowered.schedule(schedule, {}));
    ASSERT_EQ(lowered.codes(), std::vector<Code>{Code::parameter_missing}) << lowered.report();
    const Diagnostic found = lowered.sink.sorted()[0];
    EXPECT_EQ(found.message, "`" + schedule +
                                 "` cannot be shown by itself: `-D` cannot give its parameter `" +
                                 (schedule == "on_all" ? "r: selector`" : "all: [axis]`"));
    EXPECT_EQ(found.hint, "show a train or a schedule that calls `" + schedule + "`, or give `" +
                              (schedule == "on_all" ? "r" : "all") + "` a default");
  }
  for (const auto& [schedule, name, value, hint] :
       std::vector<std::tuple<std::string, std::string, std::string, std::string>>{
           {"on_all", "r", "model",
            "show a train or a schedule that calls `on_all`, or give `r` a default"},
           {"on_each", "all", "[2, 2]",
            "show a train or a schedule that calls `on_each`, or give `all` a default"},
           {"on_some", "r", "[model]", "leave `-D r=...` out: `r` has a value without it"}}) {
    SCOPED_TRACE(schedule);
    Lowered lowered(text);
    EXPECT_FALSE(lowered.schedule(schedule, {{name, value}}));
    ASSERT_FALSE(lowered.codes().empty());
    EXPECT_EQ(lowered.codes().front(), Code::override_bad_value) << lowered.report();
    EXPECT_EQ(lowered.sink.sorted()[0].hint, hint);
  }
}

// ---- robustness
// ----------------------------------------------------------------------------------------------------

/// A chain of functions with deep expressions ends in a diagnostic, not in a broken stack.
TEST(LowerRobust, CallsNestedTooDeep) {
  std::string text = "def f0(n: int) -> int { return n }\n";
  for (int i = 1; i <= 300; ++i) {
    text += "def f" + std::to_string(i) + "(n: int) -> int { return ";
    for (int k = 0; k < 12; ++k) text += "(1 + ";
    text += "f" + std::to_string(i - 1) + "(n)" + std::string(12, ')') + " }\n";
  }
  for (const auto& [last, fine] : {std::pair(100, true), std::pair(300, false)}) {
    Lowered lowered(text + "schedule s(p: axis) { require f" + std::to_string(last) +
                    "(1) > 0 }\n");
    ASSERT_TRUE(lowered.program.ok) << lowered.report();
    EXPECT_EQ(lowered.schedule("s", {{"p", "2"}}), fine);
    EXPECT_EQ(lowered.codes(), fine ? std::vector<Code>() : std::vector<Code>{Code::calls_too_deep})
        << lowered.report();
  }
}

TEST(LowerRobust, ValuesAreConvertedWhereTheyGo) {
  Lowered lowered(
      "def half(x: float = 7) -> float { return x / 2 }\n"
      "def whole(n: int) -> float { return n }\n"
      "schedule s(p: axis) {\n"
      "    let mixed = [1, 2.5]\n"
      "    let chosen = if p > 100 then 0.5 else 7\n"
      "    var growing = 0.5\n"
      "    growing = 7\n"
      "    let picked = [10, 20, 30, 40][[for i in 0..2: i + 1]]\n"
      "    let held = [stage[4], stage[5]]\n"
      "    require half() == 3.5 and half(9) == 4.5 and whole(7) / 2 == 3.5\n"
      "    require mixed[0] / 2 == 0.5 and chosen / 2 == 3.5 and growing / 2 == 3.5\n"
      "    require max(3, 2.5) / 2 == 1.5 and sum([1GiB, 5]) == 5 + 1GiB and 3GiB / 2GiB == 1.5\n"
      "    require len(picked) == 2 and picked[1] == 30 and -7 / 2 == 0 - 4 and -7 % 2 == 1\n"
      "    require max(9223372036854775806, 9223372036854775807) % 2 == 1\n"
      "    require sum(0..5 by 2) == 6 and len(reversed(0..9 by 4)) == 3 and ceil_div(7, 2) == 4\n"
      "    place held[1] on p[p - 1]\n"
      "}\n");
  ASSERT_TRUE(lowered.program.ok) << lowered.report();
  ASSERT_TRUE(lowered.schedule("s", {{"p", "2"}})) << lowered.report();
  EXPECT_EQ(lowered.strategy(), "place stage[5] on mesh[p: 1]\n");
}

TEST(LowerRobust, ASelectorInAListIsOneElement) {
  Lowered lowered(
      "schedule s(p: axis) {\n"
      "    require len([stage[0] mb[0..4]]) == 1 and len([stage[0] mb[0..4], stage[1, 2]]) == 2\n"
      "    require len([for i in 0..3: stage[i] mb[0..4]]) == 3 and len([[stage[0]], [stage[1] mb[0, 1]]]) == 2\n"
      "    order { rank r in p { cursor a = [stage[r] mb[0..4]]; require left(F a) == 4; repeat 4 { F a; B a } } }\n"
      "}\n");
  ASSERT_TRUE(lowered.program.ok) << lowered.report();
  EXPECT_TRUE(lowered.schedule("s", {{"p", "2"}})) << lowered.report();
}

TEST(LowerRobust, TooLongListsAreRefusedBeforeTheyExist) {
  for (const char* body :
       {"let x = sum(0..9000000000000000000); require x > 0",
        "let x = max(0..9000000000000000000); require x > 0",
        "let x = len(reversed(0..9000000000000000000)); require x > 0",
        "let x = len([0..9000000000000000000]); require x > 0",
        "let x = [for i in 0..9000000000000000000: i]; require len(x) > 0",
        "var x = 0; repeat 9000000000000000000 { x = x + 1 }; require x < 0",
        "var x = 0; for i in 0..9000000000000000000 { x = i }; require x < 0",
        "place stage[0..9000000000000000000] on p",
        "order { rank r in p[0..9000000000000000000] { F stage[r] } }",
        "order { rank r in p { cursor a = stage[r] mb[0..9000000000000000000]; F a } }",
        "order { rank r in p { repeat 9000000000000000000 { F stage[r] } } }"}) {
    Lowered lowered("schedule s(p: axis) { " + std::string(body) + " }\n");
    ASSERT_TRUE(lowered.program.ok) << lowered.report();
    EXPECT_FALSE(lowered.schedule("s", {{"p", "2"}}));
    ASSERT_EQ(lowered.codes(), std::vector<Code>{Code::evaluation_too_long}) << lowered.report();
    EXPECT_NE(lowered.sink.sorted()[0].message.find("9000000000000000000"), std::string::npos)
        << lowered.report();
  }
  // Its length is known without it, and so is each element.
  Lowered lowered(
      "schedule s(p: axis) { require len(0..9000000000000000000) == 9000000000000000000 and (5..9000000000000000000)[7] == 12 }\n");
  EXPECT_TRUE(lowered.schedule("s", {{"p", "2"}})) << lowered.report();
}

/// Damaged programs: lowering ends, and fails only with an error.
TEST(LowerFuzz, DamagedPrograms) {
  std::vector<std::string> texts;
  for (const char* folder :
       {"examples", "stdlib", "tests/frontend/testdata/lower", "tests/frontend/testdata/models"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.path().extension() == ".pipe")
        texts.push_back(test::read_text(entry.path()).value_or(""));
    }
  }
  std::sort(texts.begin(), texts.end());
  // Long loops are tested once; here they would cost the time of a thousand other programs.
  std::erase_if(texts,
                [](const std::string& text) { return text.find("100000") != std::string::npos; });
  ASSERT_GE(texts.size(), 20u);
  const auto segments = [](const std::string& text) {
    std::vector<std::string> list;
    for (std::size_t i = 0; i < text.size();) {
      std::size_t end = i + 1;
      const auto word = [&](std::size_t at) {
        return at < text.size() &&
               (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_');
      };
      if (word(i)) {
        while (word(end)) ++end;
      }
      list.push_back(text.substr(i, end - i));
      i = end;
    }
    return list;
  };
  int whole = 0;
  test::for_each_case(700, [&](test::Random& random) {
    std::vector<std::string> list = segments(random.pick(texts));
    std::vector<std::size_t> words;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (std::isalnum(static_cast<unsigned char>(list[i][0]))) words.push_back(i);
    }
    for (std::int64_t count = random.between(1, 3); count > 0; --count) {
      std::string& word = list[random.pick(words)];
      switch (random.below(6)) {
        case 0: word = std::to_string(random.between(0, 9)); break;
        case 1: word = "(" + word + " - 1)"; break;
        case 2:
          word = std::vector<std::string>{
              "+", "-", "*", "/", "%", "..", "by", "@", "&", "=="}[random.below(10)];
          break;
        case 3:
          word = std::vector<std::string>{"F",   "B",  "BI", "BW", "at 3:", "9223372036854775807",
                                          "0.5", "[]", "p",  "m",  "r"}[random.below(11)];
          break;
        default: word = list[random.pick(words)]; break;
      }
    }
    std::string text = "// -D p=2 -D m=4 -D v=2\n";
    for (const std::string& segment : list) text += segment;
    SCOPED_TRACE(text);
    Lowered lowered(text);
    ASSERT_EQ(lowered.program.ok, !lowered.sink.has_errors());
    whole += lowered.program.ok;
    lower_everything(lowered, text);
    render_text(lowered.sink.sorted(), lowered.context.locations.files());
  });
  EXPECT_GT(whole, 70) << "too few damaged programs reach lowering";
}

}  // namespace
}  // namespace piper
