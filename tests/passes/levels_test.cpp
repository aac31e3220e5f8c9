// The way of sample programs down the levels, as text; and each pass by itself, from the text before it to the text behind it.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>

#include "ir/dag/parse.h"
#include "ir/dag/print.h"
#include "tests/support/compile.h"
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
    const directive::Strategy written{.mesh = dag->mesh, .device_sets = dag->device_sets, .directives = directives, .settings = dag->settings};
    if (!pass.empty() && !passes::run_pass(pass, *dag, written, sink, options)) return reports(sink, context);
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
    const std::optional<dag::Dag> dag = test::compile(model, strategy, sink, options);
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

/// The order with the gather for a forward in front of it, wherever a rank runs one of that microbatch.
void name_gathers(directive::Order& order, Symbol mb, std::uint32_t microbatch) {
  std::vector<std::uint32_t> children;
  for (directive::RankSteps& rank : order.ranks) {
    const std::span<const std::uint32_t> steps = std::span(order.children).subspan(rank.first_step, rank.num_steps);
    rank.first_step = static_cast<std::uint32_t>(children.size());
    for (const std::uint32_t step : steps) {
      directive::OrderOp op = order.ops[order.steps[step].first];
      const auto coordinates = std::span(order.coordinates).subspan(op.first_coordinate, op.num_coordinates);
      if (op.pass == Pass::F && std::any_of(coordinates.begin(), coordinates.end(), [&](const auto& c) { return c.name == mb && c.index == microbatch; })) {
        op.part = directive::Part::gather;
        order.steps.push_back({directive::OrderStep::Kind::op, static_cast<std::uint32_t>(order.ops.size()), 1, op.loc});
        order.ops.push_back(op);
        children.push_back(static_cast<std::uint32_t>(order.steps.size() - 1));
      }
      children.push_back(step);
    }
    rank.num_steps = static_cast<std::uint32_t>(children.size()) - rank.first_step;
  }
  order.children = std::move(children);
}

TEST(Levels, GathersThatAnOrderPlaces) {
  Levels levels;
  StrategyBuilder build(levels.context, {{"pp", 2}, {"dp", 2}});
  build.line(2, 3).replicate({"dp"}, {}, {}, 3);
  for (const std::uint32_t rank : {0u, 1u}) {
    build.rank({{"pp", rank}});
    for (const Pass pass : {Pass::F, Pass::B}) {
      for (const std::uint32_t mb : {0u, 1u, 2u}) build.op(pass, {{"stage", rank}, {"mb", mb}});
    }
  }
  directive::Strategy strategy = build.strategy();
  name_gathers(std::get<directive::Order>(strategy.directives.back()), levels.context.symbol("mb"), 2);
  levels.expect("gathers", mlp_chain(levels.context, {.layers = 2, .batch = 12, .dim = 2, .hidden = 3}), strategy, false, {"order", "rounds"});
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
  ASSERT_TRUE(test::compile(model, strategy, levels.sink, options));
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
