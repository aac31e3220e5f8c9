// Any change to a planned text is refused: on plans of library schedules and of sample programs.

#include "tests/mutations/mutations.h"

#include <gtest/gtest.h>

#include "backend/device_program/device_program.h"
#include "frontend/lower/lower.h"
#include "ir/dag/print.h"
#include "ir/verify/verify.h"
#include "tests/support/compile.h"
#include "tests/support/random_cases.h"
#include "tests/support/random_programs.h"
#include "tests/support/sample_models.h"

namespace piper::test {
namespace {

/// The planned text; empty, and the test fails, when the strategy does not compile.
std::string planned(Context& context, tensor::Graph model, const directive::Strategy& strategy) {
  DiagnosticSink sink(context.locations);
  passes::Options options;
  options.workspace_bytes = backend::workspace_bytes();
  const auto dag = test::compile(model, strategy, sink, options);
  EXPECT_TRUE(dag) << render_text(sink.sorted(), context.locations.files());
  return dag ? dag::print(*dag) : "";
}

std::string planned_schedule(const std::string& name, const std::vector<lower::Override>& values) {
  Context context;
  DiagnosticSink sink(context.locations);
  const source::MemoryFileSystem nothing;
  const auto file = sema::open_library("std.schedules." + name, context.locations.files());
  EXPECT_TRUE(file);
  if (!file) return "";
  const sema::Program program = sema::analyse(*file, nothing, context, sink);
  auto lowered = program.ok ? lower::lower_schedule(program, program.find_schedule(name), values,
                                                    context, sink)
                            : std::nullopt;
  EXPECT_TRUE(lowered) << render_text(sink.sorted(), context.locations.files());
  return lowered ? planned(context, std::move(lowered->model), lowered->strategy) : "";
}

void expect_all_refused(const std::string& text, std::size_t limit) {
  ASSERT_TRUE(is_legal(text));
  const MutationReport report = run_mutations(text, limit);
  EXPECT_GE(report.tried, limit / 2);
  for (const std::string& survivor : report.survivors) ADD_FAILURE() << "not refused: " << survivor;
}

TEST(LawMutations, OneFOneB) {
  expect_all_refused(planned_schedule("one_f_one_b", {{"p", "3"}, {"m", "4"}}), 250);
}
TEST(LawMutations, HalvesOnAV) {
  expect_all_refused(planned_schedule("zbv", {{"p", "2"}, {"m", "3"}}), 250);
}
TEST(LawMutations, OverlapGroupsOnAV) {
  expect_all_refused(planned_schedule("dual_pipe_v", {{"p", "2"}, {"m", "4"}}), 250);
}
TEST(LawMutations, TwoCopiesInOppositeDirections) {
  expect_all_refused(planned_schedule("dual_pipe", {{"p", "2"}, {"m", "4"}}), 250);
}

TEST(LawMutations, ReplicatedInBucketsWithTiedWeights) {
  Context context;
  StrategyBuilder build(context, {{"pp", 2}, {"dp", 2}});
  build.line(2, 2).one_f_one_b(2, 2, true).replicate({"dp"}, 256).clip(0.1);
  expect_all_refused(
      planned(
          context,
          small_gpt(
              context,
              {.layers = 2, .batch = 4, .seq = 3, .dim = 4, .tied = true, .auxiliary_loss = true}),
          build.strategy()),
      250);
}

TEST(LawMutations, ShardedOptimizerState) {
  Context context;
  StrategyBuilder build(context, {{"pp", 2}, {"dp", 2}, {"pod", 2}});
  build.line(2, 2)
      .one_f_one_b(2, 2, true)
      .replicate({"dp"}, 512, {}, 1)
      .replicate({"pod"}, 512)
      .clip(0.1);
  expect_all_refused(
      planned(context,
              small_gpt(context, {.layers = 2, .batch = 8, .seq = 3, .dim = 4, .tied = true}),
              build.strategy()),
      250);
}

TEST(LawMutations, RunAgainAndFrozen) {
  Context context;
  StrategyBuilder build(context, {{"pp", 2}, {"dp", 2}});
  build.line(2, 3).one_f_one_b(2, 3, true).replicate({"dp"}, 256).clip(0.1);
  directive::Selector some = build.selector({{"layer", 0}, {"mb", 1}});
  build
      .add(directive::Recompute{{build.selector({{"stage", 1}}), std::move(some)},
                                build.next_line()})
      .add(directive::Freeze{{build.selector({{"layer", 2}})}, build.next_line()});
  expect_all_refused(
      planned(context, mlp_chain(context, {.layers = 4, .batch = 12, .dim = 2, .hidden = 3}),
              build.strategy()),
      250);
}

TEST(LawMutations, FrozenAndSharded) {
  Context context;
  StrategyBuilder build(context, {{"pp", 2}, {"dp", 2}});
  build.line(2, 2).one_f_one_b(2, 2, true).replicate({"dp"}, 256, {}, 3);
  build.add(directive::Freeze{{build.selector({{"layer", 2}})}, build.next_line()});
  expect_all_refused(
      planned(context, mlp_chain(context, {.layers = 4, .batch = 8, .dim = 2, .hidden = 3}),
              build.strategy()),
      250);
}

TEST(LawMutations, GathersThatAnOrderPlaces) {
  Context context;
  const RandomProgram read = read_program(
      context,
      "use std.models.mlp\nmesh line(pp: 2, dp: 2)\ntrain t = mlp(layers: 4, features: 4, hidden: 4, classes: 2) on line {\n"
      "    data: synthetic(batch: 8, classes: 2)\n    optim: adamw(lr: 1e-2)\n    steps: 1\n    dtype: f64\n"
      "    partition model into stage: 2\n    for s in 0..2 { place stage[s] on pp[s] }\n    split batch into mb: 2\n    replicate model over dp with zero: 3\n"
      "    order { rank r in pp { F stage[r].gather; F stage[r] mb[0]; F stage[r] mb[1]; B stage[r].gather mb[0]; B stage[r] mb[0]; B stage[r] mb[1] } }\n}\n");
  expect_all_refused(planned(context, read.model, read.strategy), 250);
}

TEST(LawMutations, Offloaded) {
  Context context;
  StrategyBuilder build(context, {{"pp", 2}, {"dp", 2}});
  build.line(2, 4).one_f_one_b(2, 4, true).replicate({"dp"}, 256);
  build.add(directive::Offload{{build.selector({{"stage", 0}})},
                               1,
                               directive::Offload::What::activations,
                               build.next_line()});
  build.add(directive::Offload{
      {build.selector({{"stage", 1}})}, 1, directive::Offload::What::optimizer, build.next_line()});
  build.edit().settings.optimizer->kind = directive::Optimizer::Kind::adamw;
  expect_all_refused(
      planned(context, mlp_chain(context, {.layers = 4, .batch = 16, .dim = 2, .hidden = 3}),
              build.strategy()),
      250);
}

/// Without its workspace, with a smaller one or a larger one, where bodies are known.
void expect_workspaces_verified(dag::Dag& dag, int& changed) {
  const auto refused = [&] {
    DiagnosticSink sink(dag.context->locations);
    return !verify::verify_workspaces(dag, backend::workspace_bytes(), sink);
  };
  EXPECT_FALSE(refused());
  for (dag::Role& role : dag.plan->roles) {
    for (dag::Buffer& buffer : role.buffers) {
      if (buffer.cls != dag::BufferClass::workspace) continue;
      for (const std::int64_t by : {-buffer.bytes, std::int64_t{-1}, std::int64_t{64}}) {
        buffer.bytes += by;
        EXPECT_TRUE(refused()) << buffer.bytes;
        buffer.bytes -= by;
        ++changed;
      }
    }
    for (dag::Action& action : role.actions) {
      if (action.num_operands == 0 ||
          role.buffers[role.operands[action.first_operand + action.num_operands - 1].buffer.index()]
                  .cls != dag::BufferClass::workspace)
        continue;
      --action.num_operands;
      EXPECT_TRUE(refused()) << dag.name(action.node);
      ++action.num_operands;
      ++changed;
    }
  }
}

TEST(LawMutations, Workspaces) {
  int changed = 0;
  for_each_case(6, [&](Random& random) {
    Context context;
    RandomProgram drawn = random_program(context, random, {.max_devices = 4});
    SCOPED_TRACE(drawn.source);
    DiagnosticSink sink(context.locations);
    passes::Options options;
    options.workspace_bytes = backend::workspace_bytes();
    auto dag = test::compile(drawn.model, drawn.strategy, sink, options);
    ASSERT_TRUE(dag);
    expect_workspaces_verified(*dag, changed);
  });
  EXPECT_GT(changed, 0);
}

TEST(LawMutations, RandomPrograms) {
  for_each_case(12, [](Random& random) {
    Context context;
    RandomProgram drawn = random_program(context, random, {.max_devices = 6});
    SCOPED_TRACE(drawn.source);
    expect_all_refused(planned(context, std::move(drawn.model), drawn.strategy), 30);
  });
}

}  // namespace
}  // namespace piper::test
