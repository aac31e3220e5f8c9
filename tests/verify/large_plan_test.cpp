// A plan large enough that several threads make and check it: the same plan, and the same
// diagnostics, every time.

#include <gtest/gtest.h>

#include "frontend/lower/lower.h"
#include "frontend/sema/program.h"
#include "frontend/source/source_manager.h"
#include "ir/dag/print.h"
#include "ir/verify/verify.h"
#include "tests/support/compile.h"

namespace piper::test {
namespace {

std::optional<dag::Dag> plan_large(Context& context, DiagnosticSink& sink) {
  const source::RealFileSystem disk;
  const auto file = sema::open_library("std.schedules.one_f_one_b", context.locations.files());
  const sema::Program program = sema::analyse(*file, disk, context, sink);
  const std::vector<lower::Override> overrides{{"p", "8"}, {"m", "512"}};
  auto lowered = lower::lower_schedule(program, program.find_schedule("one_f_one_b"), overrides,
                                       context, sink);
  if (!lowered) return std::nullopt;
  return test::compile(lowered->model, lowered->strategy, sink, {});
}

std::string refusal(const dag::Dag& dag) {
  DiagnosticSink sink(dag.context->locations);
  EXPECT_FALSE(verify::verify(dag, sink));
  return render_text(sink.sorted(), dag.context->locations.files());
}

TEST(LargePlan, IsTheSameEveryTimeAndHolds) {
  std::string first;
  for (int round = 0; round < 2; ++round) {
    Context context;
    DiagnosticSink sink(context.locations);
    const std::optional<dag::Dag> dag = plan_large(context, sink);
    ASSERT_TRUE(dag) << render_text(sink.sorted(), context.locations.files());
    ASSERT_GT(dag->nodes.size(), 20000u);
    EXPECT_TRUE(verify::verify(*dag, sink))
        << render_text(sink.sorted(), context.locations.files());
    const std::string text = print(*dag);
    if (round == 0) first = text;
    EXPECT_TRUE(text == first);
  }
}

TEST(LargePlan, MistakesInSeveralRolesAreToldAlikeEveryTime) {
  Context context;
  DiagnosticSink sink(context.locations);
  std::optional<dag::Dag> dag = plan_large(context, sink);
  ASSERT_TRUE(dag);
  for (const std::size_t role : {1u, 4u, 6u}) {
    // The first action that waits within its step forgets it.
    for (dag::Action& action : dag->plan->roles[role].actions) {
      if (action.num_waits == 0 || dag->plan->roles[role].waits[action.first_wait].distance != 0)
        continue;
      action.num_waits = 0;
      break;
    }
  }
  const std::string told = refusal(*dag);
  for (const char* role : {"`p1`", "`p4`", "`p6`"})
    EXPECT_NE(told.find(role), std::string::npos) << role;
  for (int round = 0; round < 4; ++round) EXPECT_EQ(refusal(*dag), told);
}

}  // namespace
}  // namespace piper::test
