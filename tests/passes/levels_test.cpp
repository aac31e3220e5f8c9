// The way of sample programs down the levels, as text; and each pass by itself, from the text
// before it to the text behind it.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <ostream>
#include <set>

#include "ir/dag/parse.h"
#include "ir/dag/print.h"
#include "tests/support/compile.h"
#include "tests/support/golden.h"
#include "tests/support/sample_models.h"

namespace piper::test {
namespace {

/// A folder per pass: NAME.pir is an input text, NAME.expected.pir the result; `build`, whose input
/// is a model, has only the latter.
const std::filesystem::path kFolder = "tests/passes/testdata/passes";

std::filesystem::path text_of(std::string_view pass, std::string_view name,
                              std::string_view ending) {
  return kFolder / pass / (std::string(name) + std::string(ending));
}

std::string reports(const DiagnosticSink& sink, const Context& context) {
  return render_text(sink.sorted(), context.locations.files());
}

struct Levels {
  Context context;
  DiagnosticSink sink{context.locations};

  /// The text read, changed by a pass if one is named, and written.
  std::string again(const std::string& text, std::string_view pass) {
    std::vector<directive::Directive> directives;
    std::optional<dag::Dag> dag =
        dag::parse(context.locations.files().add("level.pir", text), context, sink, &directives);
    if (!dag) return reports(sink, context);
    const directive::Strategy written{.mesh = dag->mesh,
                                      .device_sets = dag->device_sets,
                                      .directives = directives,
                                      .settings = dag->settings};
    if (!pass.empty() && !passes::run_pass(pass, *dag, written, sink, {}))
      return reports(sink, context);
    return dag::print(*dag, directives);
  }
};

struct Sample {
  const char* name;
  std::uint32_t layers;
  std::vector<Index> mesh;
  std::function<void(StrategyBuilder& build)> say;
  std::set<std::string_view> kept;  // passes whose folders have the text in front of them
  bool forward_only = false;
};

/// A third microbatch's gather stands in the order, which places all others by itself.
void gathers_by_hand(StrategyBuilder& build) {
  build.line(1, 3).replicate({"dp"}, {}, {}, 3).rank({{"pp", 0}});
  for (const Pass pass : {Pass::F, Pass::B}) {
    for (const std::uint32_t mb : {0u, 1u, 2u}) {
      if (pass == Pass::F && mb == 2)
        build.op(pass, {{"stage", 0}, {"mb", mb}}, directive::CommClass::gather);
      build.op(pass, {{"stage", 0}, {"mb", mb}});
    }
  }
}

void offloading(StrategyBuilder& build, directive::Offload::What what) {
  build.line(1, 3).one_f_one_b(1, 3);
  build.add(directive::Offload{{build.selector({{"stage", 0}})}, 1, what, build.next_line()});
}

std::vector<Sample> samples() {
  const std::vector<Index> line = {{"pp", 2}}, one = {{"pp", 1}}, copies = {{"pp", 1}, {"dp", 2}};
  return {
      {"line",
       2,
       line,
       [](auto& build) { build.line(2, 2); },
       {"build", "split", "place", "communicate", "order", "plan"}},
      {"frozen",
       2,
       one,
       [](auto& build) {
         build.line(1, 2).add(
             directive::Freeze{{build.selector({{"layer", 0}})}, build.next_line()});
       },
       {"build"}},
      {"recomputed",
       2,
       one,
       [](auto& build) {
         build.line(1, 2).add(
             directive::Recompute{{build.selector({{"stage", 0}})}, build.next_line()});
       },
       {"split", "plan"}},
      {"copies",
       1,
       copies,
       [](auto& build) { build.line(1, 2).replicate({"dp"}).clip(1.0); },
       {"replicate", "communicate", "order", "plan"}},
      {"forward", 2, line, [](auto& build) { build.line(2, 2); }, {"drop_backward"}, true},
      {"halves", 2, line, [](auto& build) { build.line(2, 2).one_f_one_b(2, 2, true); }, {"order"}},
      {"blocks",
       1,
       copies,
       [](auto& build) { build.line(1, 2).replicate({"dp"}, {}, {}, 3).one_f_one_b(1, 2); },
       {"replicate", "communicate", "insert_collectives", "plan"}},
      {"reductions",
       1,
       copies,
       [](auto& build) { build.line(1, 2).replicate({"dp"}, {}, {}, 2).one_f_one_b(1, 2); },
       {"insert_collectives"}},
      {"gathers", 1, copies, gathers_by_hand, {"order", "insert_collectives"}},
      {"activations",
       1,
       one,
       [](auto& build) { offloading(build, directive::Offload::What::activations); },
       {"offload", "plan"}},
      {"optimizer",
       1,
       one,
       [](auto& build) { offloading(build, directive::Offload::What::optimizer); },
       {"offload"}},
  };
}

void PrintTo(const Sample& sample, std::ostream* os) { *os << sample.name; }

class SamplePrograms : public testing::TestWithParam<Sample> {};

TEST_P(SamplePrograms, EveryPassTakesTheTextBeforeIt) {
  const Sample& sample = GetParam();
  Levels levels;
  StrategyBuilder build(levels.context, sample.mesh);
  sample.say(build);
  const directive::Strategy strategy = build.strategy();
  passes::Options options;
  options.forward_only = sample.forward_only;
  options.verify_each = true;
  std::string before;
  options.after = [&](std::string_view pass, const dag::Dag& dag) {
    const std::string text = dag::print(dag, strategy.directives);
    const bool kept = sample.kept.contains(pass);
    EXPECT_TRUE(std::filesystem::is_directory(kFolder / pass) || updating())
        << "no folder of `" << pass << "`";
    EXPECT_EQ(levels.again(text, ""), text);
    if (pass == "build") {
      if (kept) expect_golden(text_of(pass, sample.name, ".expected.pir"), text);
    } else {
      if (kept) expect_golden(text_of(pass, sample.name, ".pir"), before);
      EXPECT_EQ(levels.again(before, pass), text) << pass;
    }
    before = text;
  };
  const std::optional<dag::Dag> dag =
      test::compile(products(levels.context, sample.layers, 12), strategy, levels.sink, options);
  ASSERT_TRUE(dag) << reports(levels.sink, levels.context);
  EXPECT_TRUE(levels.sink.empty()) << reports(levels.sink, levels.context);
  EXPECT_EQ(dag->level, dag::Level::planned);
}

INSTANTIATE_TEST_SUITE_P(Levels, SamplePrograms, testing::ValuesIn(samples()),
                         [](const auto& sample) { return sample.param.name; });

TEST(Levels, TextsOfEveryPass) {
  for (const auto& folder : std::filesystem::directory_iterator(kFolder)) {
    const std::string pass = folder.path().filename().string();
    std::set<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator(folder))
      names.insert(file.path().stem().string());
    EXPECT_FALSE(names.empty()) << pass;
    for (const std::string& name : names) {
      if (name.ends_with(".expected")) continue;
      Levels levels;
      const std::optional<std::string> text = read_text(text_of(pass, name, ".pir"));
      ASSERT_TRUE(text) << pass << ", " << name;
      expect_golden(text_of(pass, name, ".expected.pir"), levels.again(*text, pass));
    }
  }
}

/// Layouts in a text must come from lines that its directives still have.
TEST(Levels, LayoutsOfOtherLines) {
  Levels levels;
  StrategyBuilder build(levels.context, {{"pp", 2}, {"dp", 2}});
  const directive::Strategy strategy = build.line(2, 2).replicate({"dp"}).strategy();
  std::string placed;
  passes::Options options;
  options.stop_at = dag::Level::placed;
  options.after = [&](std::string_view pass, const dag::Dag& dag) {
    if (pass == "place") placed = dag::print(dag, {});
  };
  tensor::Graph model = mlp_chain(levels.context, {.layers = 2, .batch = 8, .dim = 2, .hidden = 3});
  ASSERT_TRUE(test::compile(model, strategy, levels.sink, options));
  EXPECT_NE(levels.again(placed, "replicate")
                .find("divide its samples over `dp`, and its lines over no axis"),
            std::string::npos);
}

}  // namespace
}  // namespace piper::test
