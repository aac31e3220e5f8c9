// Orders and plans of random legal programs against checks by definition.
#include <gtest/gtest.h>

#include "ir/dag/parse.h"
#include "ir/dag/print.h"
#include "ir/verify/verify.h"
#include "tests/passes/plan_checks.h"
#include "tests/support/compile.h"
#include "tests/support/random_programs.h"

namespace piper::test {
namespace {

/// A random program and its compiled plan.
struct Drawn {
  Context context;
  DiagnosticSink sink{context.locations};
  RandomProgram program;

  explicit Drawn(Random& random) : program(random_program(context, random)) {}

  std::optional<dag::Dag> compile(bool forward_only = false) {
    tensor::Graph model = program.model;
    passes::Options options;
    options.forward_only = forward_only;
    options.workspace_bytes = [](const dag::Dag& dag, const dag::Node& node) {
      return runs_body(node.kind) ? static_cast<std::int64_t>(
                                        dag.bodies[node.body.index()].graph.nodes().size() % 3) *
                                        100
                                  : std::int64_t{64};
    };
    return test::compile(model, program.strategy, sink, options);
  }
  /// No error; warnings there may be, of work that is repeated.
  std::string reports() const {
    return render_text(sink.sorted(), context.locations.files()) + program.source;
  }
};

TEST(Plan, RandomProgramsHoldByDefinition) {
  for_each_case(150, [](Random& random) {
    Drawn program(random);
    const std::optional<dag::Dag> dag = program.compile();
    ASSERT_TRUE(dag) << program.reports();
    ASSERT_EQ(dag->level, dag::Level::planned);
    EXPECT_EQ(check_order(*dag), "");
    EXPECT_EQ(check_plan(*dag), "");
    EXPECT_TRUE(verify::verify(*dag, program.sink)) << program.reports();
    EXPECT_TRUE(verify::lint(*dag, program.sink)) << program.reports();
    // The text alone says as much.
    const std::string text = dag::print(*dag);
    Context context;
    DiagnosticSink sink(context.locations);
    const std::optional<dag::Dag> again = dag::parse(text, context, sink);
    ASSERT_TRUE(again) << render_text(sink.sorted(), context.locations.files());
    EXPECT_EQ(dag::print(*again), text);
    EXPECT_TRUE(verify::verify(*again, sink))
        << render_text(sink.sorted(), context.locations.files());
  });
}

TEST(Plan, ForwardOnlyProgramsHoldAndKeepTheState) {
  for_each_case(50, [](Random& random) {
    Drawn program(random);
    const std::optional<dag::Dag> train = program.compile();
    const std::optional<dag::Dag> forward = program.compile(true);
    ASSERT_TRUE(train && forward) << program.reports();
    EXPECT_EQ(check_order(*forward), "");
    EXPECT_EQ(check_plan(*forward), "");
    EXPECT_TRUE(verify::verify(*forward, program.sink)) << program.reports();
    for (const dag::Role& a : train->plan->roles) {
      for (const dag::Role& b : forward->plan->roles) {
        if (a.at != b.at) continue;
        std::size_t state = 0;
        while (state < a.buffers.size() && a.buffers[state].cls != dag::BufferClass::scalars) {
          ASSERT_LT(state, b.buffers.size());
          EXPECT_EQ(a.buffers[state].cls, b.buffers[state].cls);
          EXPECT_EQ(a.buffers[state].offset, b.buffers[state].offset);
          EXPECT_EQ(a.buffers[state].bytes, b.buffers[state].bytes);
          ++state;
        }
      }
    }
  });
}

}  // namespace
}  // namespace piper::test
