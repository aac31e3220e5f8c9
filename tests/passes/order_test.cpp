// Orders, streams, recomputation and requirements: their meaning.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "passes/order/orders_table.h"
#include "passes/plan/requirements.h"
#include "passes/simulate/operations.h"
#include "tests/passes/order_program.h"
#include "tests/support/compile.h"

namespace piper::test {
namespace {

using directive::CommClass;
using Op = OrderedOp;

// ---- the meaning of an order

TEST(Order, IsWhatEachRankRuns) {
  OrderProgram program;
  program.build.add(
      program.order({{program.rank(0), program.gpipe(0)}, {program.rank(1), program.gpipe(1)}}));
  const auto dag = program.compile();
  ASSERT_TRUE(dag) << program.reports();
  EXPECT_EQ(program.sequence(*dag, 0), "F0.0 F0.1 B0.0 B0.1");
  EXPECT_EQ(program.sequence(*dag, 1), "F1.0 F1.1 B1.0 B1.1");
  EXPECT_EQ(dag->claims.size(), 2u);
}

TEST(Order, DefaultPrefersReadyBackwards) {
  OrderProgram program(2, 4);
  const auto dag = program.compile();
  ASSERT_TRUE(dag) << program.reports();
  EXPECT_EQ(program.sequence(*dag, 0), "F0.0 F0.1 F0.2 F0.3 B0.0 B0.1 B0.2 B0.3");
  EXPECT_EQ(program.sequence(*dag, 1), "F1.0 B1.0 F1.1 B1.1 F1.2 B1.2 F1.3 B1.3");
  EXPECT_TRUE(dag->claims.empty());
}

TEST(Order, RanksWithoutOneGetTheDefaultAroundTheOthers) {
  OrderProgram program;
  program.build.add(program.order({{program.rank(1),
                                    {program.op(Pass::F, 1, 1), program.op(Pass::B, 1, 1),
                                     program.op(Pass::F, 1, 0), program.op(Pass::B, 1, 0)}}}));
  const auto dag = program.compile();
  ASSERT_TRUE(dag) << program.reports();
  EXPECT_EQ(program.sequence(*dag, 0), "F0.0 F0.1 B0.1 B0.0");
  EXPECT_EQ(program.sequence(*dag, 1), "F1.1 B1.1 F1.0 B1.0");
}

TEST(Order, GroupsAreFilledReadyFirst) {
  OrderProgram program;
  program.build.add(program.overlapped());
  const auto dag = program.compile();
  ASSERT_TRUE(dag) << program.reports();
  EXPECT_EQ(program.sequence(*dag, 1), "F1.0 [B1.0 F1.1] B1.1");
}

TEST(Order, TrimDropsWhatLiesBeyond) {
  OrderProgram program;
  program.microbatches = 3;
  directive::Order order =
      program.order({{program.rank(0), program.gpipe(0)}, {program.rank(1), program.gpipe(1)}});
  order.trims.push_back({program.context.symbol("mb"), 2, order.loc});
  program.build.add(order);
  const auto dag = program.compile();
  ASSERT_TRUE(dag) << program.reports();
  EXPECT_EQ(program.sequence(*dag, 0), "F0.0 F0.1 B0.0 B0.1");
}

TEST(Order, TrimThatLeavesOneMemberLeavesNoGroup) {
  OrderProgram program(1, 2);
  directive::Order order =
      program.order({{program.rank(0),
                      {program.op(Pass::F, 0, 0), program.op(Pass::F, 0, 1),
                       program.op(Pass::B, 0, 0, 1), program.op(Pass::F, 0, 2, 1),
                       program.op(Pass::B, 0, 1, 2), program.op(Pass::F, 0, 3, 2)}}});
  order.trims.push_back({program.context.symbol("mb"), 2, order.loc});
  program.build.add(order);
  const auto dag = program.compile();
  ASSERT_TRUE(dag) << program.reports();
  EXPECT_EQ(program.sequence(*dag, 0), "F0.0 F0.1 B0.0 B0.1");
}

TEST(Order, NamedCommunicationWaitsForTheStepBeforeIt) {
  OrderProgram program;
  directive::Order order = program.order(
      {{program.rank(0),
        {program.op(Pass::F, 0, 0), program.op(Pass::F, 0, 1), program.op(Pass::F, 0, 0),
         program.op(Pass::B, 0, 0), program.op(Pass::B, 0, 1)}},
       {program.rank(1), program.gpipe(1)}});
  order.ops[2].part = CommClass::send;  // `F stage[0].send mb[0]` behind the second forward
  program.build.add(order);
  const auto dag = program.compile();
  ASSERT_TRUE(dag) << program.reports();
  std::string text;
  for (const dag::NodeId id : dag->order) {
    const dag::Node& node = dag->node(id);
    if (node.devices == program.rank(0) && node.pass == Pass::F &&
        (runs_body(node.kind) || is_send(node.kind)))
      text += dag->name(id) + " ";
  }
  EXPECT_EQ(text, "F.stage0.mb0 F.stage0.mb1 send.F.stage0.mb1.pp1 send.F.stage0.mb0.pp1 ");
}

TEST(Order, HeldOutProgramRunsItsForwards) {
  OrderProgram program;
  program.build.add(
      program.order({{program.rank(0), program.gpipe(0)}, {program.rank(1), program.gpipe(1)}}));
  tensor::Graph model =
      mlp_chain(program.context, {.layers = 2, .batch = 8, .dim = 2, .hidden = 3});
  passes::Options options;
  options.forward_only = true;
  const auto dag = test::compile(model, program.build.strategy(), program.sink, options);
  ASSERT_TRUE(dag) << program.reports();
  EXPECT_EQ(program.sequence(*dag, 0), "F0.0 F0.1");
}

// ---- as a table

TEST(OrdersTable, HasRowsPlacementAndGroupsInTextOrder) {
  OrderProgram program;
  program.build.add(program.overlapped());
  const directive::Strategy strategy = program.build.strategy();
  const auto dag = program.compile();
  ASSERT_TRUE(dag) << program.reports();
  EXPECT_EQ(program.context.text(dag->stages), "stage");
  const passes::OrdersTable table = passes::orders_table(*dag);
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.stages, 2u);
  EXPECT_EQ(table.microbatches, 2u);
  EXPECT_EQ(table.placement, (std::vector<std::vector<std::uint32_t>>{{0, 1}}));
  std::string text;
  for (const passes::OrdersTable::Op& op : table.rows[1].ops) {
    text += std::string(pass_name(op.pass)) + " " + op.region + " " + std::to_string(op.mb) +
            (op.group ? " in " + std::to_string(*op.group) : "") + "; ";
  }
  EXPECT_EQ(text, "F stage[1] 0; F stage[1] 1 in 0; B stage[1] 0 in 0; B stage[1] 1; ");
}

TEST(OrdersTable, CountsMicrobatchesOverCopies) {
  Context context;
  DiagnosticSink sink(context.locations);
  StrategyBuilder build(context, {{"pp", 2}});
  build.partition("stage", 2).split({{"copy", 2}, {"mb", 2}});
  for (std::uint32_t s = 0; s < 2; ++s) {
    build.place({{"stage", s}, {"copy", 0}}, {{"pp", s}})
        .place({{"stage", s}, {"copy", 1}}, {{"pp", 1 - s}});
  }
  tensor::Graph model = mlp_chain(context, {.layers = 2, .batch = 8, .dim = 2, .hidden = 3});
  const auto dag = test::compile(model, build.strategy(), sink, {});
  ASSERT_TRUE(dag) << render_text(sink.sorted(), context.locations.files());
  const passes::OrdersTable table = passes::orders_table(*dag);
  EXPECT_EQ(table.microbatches, 4u);
  EXPECT_EQ(table.placement, (std::vector<std::vector<std::uint32_t>>{{0, 1}, {1, 0}}));
  std::uint32_t most = 0;
  for (const passes::OrdersTable::Op& op : table.rows[0].ops) {
    EXPECT_EQ(op.mb / 2, op.copy);
    EXPECT_EQ(*op.stage, op.copy == 0 ? 0u : 1u);
    most = std::max(most, op.mb);
  }
  EXPECT_EQ(most, 3u);
}

TEST(OrdersTable, PlacementPerInstanceHasNone) {
  Context context;
  DiagnosticSink sink(context.locations);
  StrategyBuilder build(context, {{"pp", 2}});
  build.partition("stage", 1)
      .split({{"mb", 2}})
      .place({{"stage", 0}, {"mb", 0}}, {{"pp", 0}})
      .place({{"stage", 0}, {"mb", 1}}, {{"pp", 1}});
  tensor::Graph model = mlp_chain(context, {.layers = 2, .batch = 8, .dim = 2, .hidden = 3});
  const auto dag = test::compile(model, build.strategy(), sink, {});
  ASSERT_TRUE(dag) << render_text(sink.sorted(), context.locations.files());
  EXPECT_TRUE(passes::orders_table(*dag).placement.empty());
}

// ---- streams and windows

TEST(Streams, OnePerRouteUnlessNamed) {
  OrderProgram program;
  program.stream("grads", {program.part({{"stage", 1}}, CommClass::send)});
  const auto dag = program.compile();
  ASSERT_TRUE(dag) << program.reports();
  std::string names;
  for (const dag::Stream& stream : dag->streams)
    names += std::string(program.context.text(stream.name)) + " ";
  EXPECT_EQ(names, "compute grads act.pp0.to.pp1 gather.pp0 ");
}

TEST(Streams, WindowIsTheMinimumThatWorksButTwo) {
  for (const bool reversed : {false, true}) {
    OrderProgram program(2, 4);
    std::vector<Op> ops;
    for (std::uint32_t i = 0; i < 4; ++i)
      ops.push_back(program.op(Pass::F, 1, reversed ? 3 - i : i));
    for (std::uint32_t i = 0; i < 4; ++i) ops.push_back(program.op(Pass::B, 1, i));
    program.build.add(program.order({{program.rank(0), program.gpipe(0)}, {program.rank(1), ops}}));
    const auto dag = program.compile();
    ASSERT_TRUE(dag) << program.reports();
    std::uint32_t window = 0;
    for (const dag::Communicator& communicator : dag->plan->communicators) {
      if (communicator.kind == dag::Communicator::Kind::pair &&
          communicator.members[0] == program.rank(0))
        window = communicator.window;
    }
    EXPECT_EQ(window, reversed ? 4u : 2u);
  }
}

TEST(Streams, CrowdedRanksArePooled) {
  // Stage 0 of every microbatch sends to a separate rank.
  Context context;
  DiagnosticSink sink(context.locations);
  StrategyBuilder build(context, {{"pp", 100}});
  build.partition("stage", 2).split({{"mb", 99}}).place({{"stage", 0}}, {{"pp", 0}});
  for (std::uint32_t i = 0; i < 99; ++i) build.place({{"stage", 1}, {"mb", i}}, {{"pp", i + 1}});
  tensor::Graph model = mlp_chain(context, {.layers = 2, .batch = 99, .dim = 2, .hidden = 3});
  passes::Options options;
  options.verify_each = true;
  const auto dag = test::compile(model, build.strategy(), sink, options);
  ASSERT_TRUE(dag) << render_text(sink.sorted(), context.locations.files());
  EXPECT_LE(dag->streams.size(), 64u);
}

// ---- recomputation

directive::Recompute recompute(OrderProgram& program, std::vector<Index> target) {
  return {{program.build.selector(std::move(target))}, program.build.next_line()};
}

TEST(Recompute, StandsDirectlyBeforeItsBackward) {
  for (const bool ordered : {false, true}) {
    OrderProgram program;
    if (ordered) program.build.one_f_one_b(2, 2);
    program.build.add(recompute(program, {{"stage", 1}}));
    const auto dag = program.compile();
    ASSERT_TRUE(dag) << program.reports();
    EXPECT_EQ(program.sequence(*dag, 1), "F1.0 R1.0 B1.0 F1.1 R1.1 B1.1");
  }
}

TEST(Recompute, StandsBeforeTheGroupOfItsBackward) {
  OrderProgram program;
  program.build.add(program.overlapped()).add(recompute(program, {{"stage", 1}}));
  const auto dag = program.compile();
  ASSERT_TRUE(dag) << program.reports();
  const std::string sequence = program.sequence(*dag, 1);
  EXPECT_TRUE(sequence == "F1.0 R1.0 [F1.1 B1.0] R1.1 B1.1" ||
              sequence == "F1.0 R1.0 [B1.0 F1.1] R1.1 B1.1")
      << sequence;
}

TEST(Recompute, StandsWhereAnOrderNamesIt) {
  OrderProgram program;
  program.build.add(program.order(
      {{program.rank(0), program.gpipe(0)},
       {program.rank(1),
        {program.op(Pass::F, 1, 0), program.op(Pass::R, 1, 0), program.op(Pass::F, 1, 1),
         program.op(Pass::B, 1, 0), program.op(Pass::B, 1, 1)}}}));
  program.build.add(recompute(program, {{"stage", 1}}));
  const auto dag = program.compile();
  ASSERT_TRUE(dag) << program.reports();
  EXPECT_EQ(program.sequence(*dag, 1), "F1.0 R1.0 F1.1 B1.0 R1.1 B1.1");
}

TEST(Recompute, AnOrderNamesOnlyWhatRunsAgain) {
  OrderProgram program;
  program.build.add(program.order(
      {{program.rank(0), program.gpipe(0)},
       {program.rank(1),
        {program.op(Pass::F, 1, 0), program.op(Pass::R, 1, 0), program.op(Pass::F, 1, 1),
         program.op(Pass::B, 1, 0), program.op(Pass::B, 1, 1)}}}));
  expect_error(program, Code::not_recomputed,
               "`R stage[1] mb[0]` matches nothing: no `recompute` line names this work");
}

// ---- measures

TEST(Requirements, BubbleOfOneForwardOneBackward) {
  for (const std::uint32_t p : {1u, 2u, 4u}) {
    OrderProgram program(p, 8);
    program.build.one_f_one_b(p, 8);
    const auto dag = program.compile();
    ASSERT_TRUE(dag) << program.reports();
    EXPECT_NEAR(passes::bubble_span(*dag), (p - 1.0) / (8 + p - 1), 1e-12) << p;
  }
}

TEST(Requirements, TrafficCountsEverySend) {
  OrderProgram program;
  const auto dag = program.compile();
  ASSERT_TRUE(dag) << program.reports();
  // Per microbatch one activation and one gradient of f64[batch: 4, dim: 2]; the sums of squares of
  // both ranks go to the other one.
  std::int64_t sums = 0;
  for (const tensor::Type& type : dag->param_types) sums += type.elements() > 0 ? 8 : 0;
  EXPECT_EQ(passes::traffic(*dag), 2 * 2 * 4 * 2 * 8 + sums);
}

TEST(Requirements, AreReportedWithWhatWasFound) {
  OrderProgram bubble;
  bubble.build.add(directive::Require{directive::Measure::bubble, directive::Compare::less, 0.1,
                                      "too idle", bubble.build.next_line()});
  expect_error(bubble, Code::measure_out_of_bounds,
               "`bubble` is 0.3333, but < 0.1 is required: too idle");

  OrderProgram memory;
  memory.build.add(directive::Require{directive::Measure::peak_memory,
                                      directive::Compare::less_equal, 64, "",
                                      memory.build.next_line()});
  EXPECT_FALSE(memory.compile());
  EXPECT_EQ(memory.sink.sorted()[0].code, Code::measure_out_of_bounds);

  OrderProgram fine;
  fine.build.add(directive::Require{directive::Measure::peak_memory, directive::Compare::less, 1e9,
                                    "", fine.build.next_line()});
  EXPECT_TRUE(fine.compile()) << fine.reports();
}

}  // namespace
}  // namespace piper::test
