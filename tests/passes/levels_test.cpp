// The way of sample programs down the levels, as text; and each pass by itself, from the text before it to the text behind it.
#include <gtest/gtest.h>

#include <set>

#include "ir/dag/parse.h"
#include "ir/dag/print.h"
#include "passes/order/evaluate_orders.h"
#include "passes/pipeline.h"
#include "tests/support/golden.h"
#include "tests/support/sample_models.h"

namespace piper::test {
namespace {

std::string reports(const DiagnosticSink& sink, const Context& context) { return render_text(sink.sorted(), context.locations.files()); }

struct Levels {
  Context context;
  DiagnosticSink sink{context.locations};

  /// The text read, changed by a pass if one is named, and written.
  std::string again(const std::string& text, std::string_view pass, const passes::Options& options) {
    std::vector<directive::Directive> directives;
    std::optional<dag::Dag> dag = dag::parse(context.locations.files().add("level.pir", text), context, sink, &directives);
    if (!dag) return reports(sink, context);
    const directive::Strategy written{.mesh = dag->mesh, .device_sets = dag->device_sets, .directives = directives, .settings = dag->settings, .missing = {}};
    const std::optional<directive::Strategy> evaluated = passes::evaluate_orders(written);
    if (!pass.empty() && !passes::run_pass(pass, *dag, evaluated ? *evaluated : written, sink, options)) return reports(sink, context);
    return dag::print(*dag, directives);
  }

  /// Compiles and compares the text after every pass with `tests/passes/testdata/levels/NAME.PASS.pir`; a pass that changes nothing has no such text. Read from its text, what the pass before
  /// left becomes the same. `kept`: passes whose texts are kept; none: all.
  void expect(const std::string& name, tensor::Graph model, const directive::Strategy& strategy, bool forward_only = false, const std::set<std::string_view>& kept = {}) {
    passes::Options options;
    options.forward_only = forward_only;
    options.verify_each = true;
    passes::Options of_pass;
    of_pass.forward_only = forward_only;
    std::string before;
    options.after = [&](std::string_view pass, const dag::Dag& dag) {
      const std::string text = dag::print(dag, strategy.directives);
      if (text == before) return;
      if (kept.empty() || kept.contains(pass)) expect_golden("tests/passes/testdata/levels/" + name + "." + std::string(pass) + ".pir", text);
      EXPECT_EQ(again(text, "", of_pass), text);
      EXPECT_EQ(before.empty() ? text : again(before, pass, of_pass), text) << pass;
      before = text;
    };
    const std::optional<dag::Dag> dag = passes::compile(model, strategy, sink, options);
    ASSERT_TRUE(dag) << reports(sink, context);
    EXPECT_TRUE(sink.empty()) << reports(sink, context);
    EXPECT_EQ(dag->level, dag::Level::planned);
  }
};

TEST(Levels, LineOfTwoStages) {
  Levels levels;
  StrategyBuilder build(levels.context, {{"pp", 2}});
  levels.expect("line", mlp_chain(levels.context, {.layers = 2, .batch = 4, .dim = 2, .hidden = 3}), build.line(2, 2).strategy());
}

TEST(Levels, ForwardOnly) {
  Levels levels;
  StrategyBuilder build(levels.context, {{"pp", 2}, {"dp", 2}});
  levels.expect("forward", mlp_chain(levels.context, {.layers = 2, .batch = 8, .dim = 2, .hidden = 3}), build.line(2, 2).replicate({"dp"}).strategy(), true);
}

TEST(Levels, ReplicasClippingHalves) {
  Levels levels;
  StrategyBuilder build(levels.context, {{"pp", 2}, {"dp", 2}});
  build.line(2, 2).replicate({"dp"}, 100).clip(1.0).one_f_one_b(2, 2, true);
  levels.expect("replicas", mlp_chain(levels.context, {.layers = 2, .batch = 8, .dim = 2, .hidden = 3}), build.strategy());
}

TEST(Levels, BlocksOfParameters) {
  Levels levels;
  StrategyBuilder build(levels.context, {{"pp", 2}, {"dp", 2}});
  build.line(2, 2).replicate({"dp"}, {}, {}, 3).one_f_one_b(2, 2);
  levels.expect("blocks", mlp_chain(levels.context, {.layers = 2, .batch = 8, .dim = 2, .hidden = 3}), build.strategy(), false, {"replicate", "order", "rounds"});
}

TEST(Levels, RoundsOfReductions) {
  Levels levels;
  StrategyBuilder build(levels.context, {{"pp", 2}, {"dp", 2}});
  build.line(2, 2).replicate({"dp"}, {}, {}, 2).one_f_one_b(2, 2);
  levels.expect("rounds", mlp_chain(levels.context, {.layers = 2, .batch = 8, .dim = 2, .hidden = 3}), build.strategy(), false, {"order", "rounds"});
}

/// What a text says of layouts comes from lines that its directives must still have.
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
  ASSERT_TRUE(passes::compile(model, strategy, levels.sink, options));
  EXPECT_NE(levels.again(placed, "replicate", {}).find("divide its samples over `dp`, and its lines over no axis"), std::string::npos);
}

TEST(Levels, Offloaded) {
  Levels levels;
  StrategyBuilder build(levels.context, {{"pp", 2}});
  build.line(2, 4).one_f_one_b(2, 4);
  build.add(directive::Offload{{build.selector({{"stage", 0}})}, 1, directive::Offload::What::activations, build.next_line()});
  levels.expect("offload", mlp_chain(levels.context, {.layers = 2, .batch = 8, .dim = 2, .hidden = 3}), build.strategy(), false, {"order", "offload"});
}

}  // namespace
}  // namespace piper::test
