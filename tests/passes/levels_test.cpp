// The way of sample programs down the levels, as text.
#include <gtest/gtest.h>

#include "ir/dag/parse.h"
#include "ir/dag/print.h"
#include "passes/pipeline.h"
#include "tests/support/golden.h"
#include "tests/support/sample_models.h"

namespace piper::test {
namespace {

std::string reports(const DiagnosticSink& sink, const Context& context) { return render_text(sink.sorted(), context.locations.files()); }

struct Levels {
  Context context;
  DiagnosticSink sink{context.locations};

  /// Compiles and compares the text after every pass with `tests/passes/testdata/levels/NAME.PASS.pir`.
  void expect(const std::string& name, tensor::Graph model, const directive::Strategy& strategy, bool forward_only = false) {
    passes::Options options;
    options.stop_at = dag::Level::communicating;
    options.forward_only = forward_only;
    options.verify_each = true;
    options.after = [&](std::string_view pass, const dag::Dag& dag) {
      const std::string text = dag::print(dag);
      expect_golden("tests/passes/testdata/levels/" + name + "." + std::string(pass) + ".pir", text);
      const std::optional<dag::Dag> again = dag::parse(text, context, sink);
      ASSERT_TRUE(again) << reports(sink, context);
      EXPECT_EQ(dag::print(*again), text);
    };
    const std::optional<dag::Dag> dag = passes::compile(model, strategy, sink, options);
    ASSERT_TRUE(dag) << reports(sink, context);
    EXPECT_TRUE(sink.empty()) << reports(sink, context);
    EXPECT_EQ(dag->level, dag::Level::communicating);
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

}  // namespace
}  // namespace piper::test
