// Orders, streams and requirements: their meaning, and refusals with their messages.
#include <gtest/gtest.h>

#include "passes/order/orders_table.h"
#include "passes/plan/requirements.h"
#include "passes/simulate/operations.h"
#include "tests/passes/ordered_ops.h"
#include "tests/support/compile.h"
#include "tests/support/sample_models.h"

namespace piper::test {
namespace {

using directive::CommClass;
using Op = OrderedOp;

/// Two stages on two ranks and two microbatches by default; each test adds an order.
struct Program {
  Context context;
  DiagnosticSink sink{context.locations};
  std::uint32_t stages, microbatches;
  StrategyBuilder build;

  explicit Program(std::uint32_t stages = 2, std::uint32_t microbatches = 2)
      : stages(stages), microbatches(microbatches), build(context, {{"pp", stages}}) {
    build.line(stages, microbatches);
  }

  Op op(Pass pass, std::uint32_t stage, std::uint32_t mb, int group = -1) {
    return {pass, {{context.symbol("stage"), stage}, {context.symbol("mb"), mb}}, group};
  }
  DeviceSetId rank(std::uint32_t r) { return build.devices({{"pp", r}}); }
  directive::Order order(const std::vector<std::pair<DeviceSetId, std::vector<Op>>>& ranks) {
    return make_order(context, ranks);
  }
  /// All forwards, then all backwards.
  std::vector<Op> gpipe(std::uint32_t stage) {
    std::vector<Op> ops;
    for (const Pass pass : {Pass::F, Pass::B}) {
      for (std::uint32_t i = 0; i < microbatches; ++i) ops.push_back(op(pass, stage, i));
    }
    return ops;
  }
  /// GPipe on rank 0; on rank 1 the second forward overlaps the first backward.
  directive::Order overlapped() {
    return order(
        {{rank(0), gpipe(0)},
         {rank(1),
          {op(Pass::F, 1, 0), op(Pass::F, 1, 1, 1), op(Pass::B, 1, 0, 1), op(Pass::B, 1, 1)}}});
  }
  directive::Selector part(std::vector<Index> coordinates, CommClass part) {
    directive::Selector selector = build.selector(std::move(coordinates));
    selector.part = part;
    selector.loc = build.next_line();
    return selector;
  }
  void stream(std::string_view name, std::vector<directive::Selector> targets,
              std::optional<std::uint32_t> window = {}) {
    build.add(directive::Stream{context.symbol(name), std::move(targets), window,
                                directive::Priority::normal, build.next_line()});
  }

  std::optional<dag::Dag> compile(std::int64_t batch = 8) {
    tensor::Graph model =
        mlp_chain(context, {.layers = std::max(2u, stages), .batch = batch, .dim = 2, .hidden = 3});
    passes::Options options;
    options.verify_each = true;
    return test::compile(model, build.strategy(), sink, options);
  }
  std::string reports() { return render_text(sink.sorted(), context.locations.files()); }
  /// The chunks of one rank in their order: `F0.1 B1.1` is F of stage 0 and B of stage 1,
  /// microbatch 1; those of an overlap group in brackets.
  std::string sequence(const dag::Dag& dag, std::uint32_t r) {
    std::string text;
    std::uint32_t group = dag::Dag::kNoGroup;
    const DeviceSet set{{static_cast<std::int32_t>(r)}};
    for (const dag::NodeId id : dag.order) {
      const dag::Node& node = dag.node(id);
      if (!runs_body(node.kind) || !dag.device_sets[node.devices].contains(set)) continue;
      const std::uint32_t now = dag.group.empty() ? dag::Dag::kNoGroup : dag.group[id.index()];
      if (now != group && group != dag::Dag::kNoGroup) text += "]";
      if (!text.empty()) text += " ";
      if (now != group && now != dag::Dag::kNoGroup) text += "[";
      group = now;
      text += std::string(pass_name(node.pass)) +
              std::to_string(*dag.regions.coordinate(dag.chunks[node.chunk.index()].region,
                                                     context.symbol("stage"))) +
              "." + std::to_string(node.instance.at[0]);
    }
    return group == dag::Dag::kNoGroup ? text : text + "]";
  }
};

/// Compiles, and expects exactly one error with this code and message.
Diagnostic expect_error(Program& program, Code code, std::string_view message,
                        std::int64_t batch = 8) {
  EXPECT_FALSE(program.compile(batch));
  const std::vector<Diagnostic> found = program.sink.sorted();
  EXPECT_EQ(found.size(), 1u) << program.reports();
  if (found.empty()) return {};
  EXPECT_EQ(found[0].code, code) << program.reports();
  EXPECT_EQ(found[0].message, message);
  EXPECT_TRUE(found[0].range.valid() || code == Code::too_many_streams);
  // The hint of a measure names the values tried; the passes by themselves try none.
  EXPECT_EQ(found[0].hint.empty(), code == Code::measure_out_of_bounds);
  return found[0];
}

// ---- the meaning of an order
// -----------------------------------------------------------------------------------------------

TEST(Order, IsWhatEachRankRuns) {
  Program program;
  program.build.add(
      program.order({{program.rank(0), program.gpipe(0)}, {program.rank(1), program.gpipe(1)}}));
  const auto dag = program.compile();
  ASSERT_TRUE(dag) << program.reports();
  EXPECT_EQ(program.sequence(*dag, 0), "F0.0 F0.1 B0.0 B0.1");
  EXPECT_EQ(program.sequence(*dag, 1), "F1.0 F1.1 B1.0 B1.1");
  EXPECT_EQ(dag->claims.size(), 2u);
}

TEST(Order, DefaultPrefersReadyBackwards) {
  Program program(2, 4);
  const auto dag = program.compile();
  ASSERT_TRUE(dag) << program.reports();
  EXPECT_EQ(program.sequence(*dag, 0), "F0.0 F0.1 F0.2 F0.3 B0.0 B0.1 B0.2 B0.3");
  EXPECT_EQ(program.sequence(*dag, 1), "F1.0 B1.0 F1.1 B1.1 F1.2 B1.2 F1.3 B1.3");
  EXPECT_TRUE(dag->claims.empty());
}

TEST(Order, RanksWithoutOneGetTheDefaultAroundTheOthers) {
  Program program;
  program.build.add(program.order({{program.rank(1),
                                    {program.op(Pass::F, 1, 1), program.op(Pass::B, 1, 1),
                                     program.op(Pass::F, 1, 0), program.op(Pass::B, 1, 0)}}}));
  const auto dag = program.compile();
  ASSERT_TRUE(dag) << program.reports();
  EXPECT_EQ(program.sequence(*dag, 0), "F0.0 F0.1 B0.1 B0.0");
  EXPECT_EQ(program.sequence(*dag, 1), "F1.1 B1.1 F1.0 B1.0");
}

TEST(Order, GroupsAreFilledReadyFirst) {
  Program program;
  program.build.add(program.overlapped());
  const auto dag = program.compile();
  ASSERT_TRUE(dag) << program.reports();
  EXPECT_EQ(program.sequence(*dag, 1), "F1.0 [B1.0 F1.1] B1.1");
}

TEST(Order, TrimDropsWhatLiesBeyond) {
  Program program;
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
  Program program(1, 2);
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
  Program program;
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
  Program program;
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
// --------------------------------------------------------------------------------------------------------------

TEST(OrdersTable, HasRowsPlacementAndGroupsInTextOrder) {
  Program program;
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

// ---- refusals
// ----------------------------------------------------------------------------------------------------------------

TEST(OrderErrors, TrimAlongNothing) {
  Program program;
  directive::Order order = program.order({{program.rank(0), program.gpipe(0)}});
  order.trims.push_back({program.context.symbol("slice"), 4, order.loc});
  program.build.add(order);
  expect_error(program, Code::trim_unknown_dimension,
               "`trim` names `slice`, but the batch is not split into `slice`");
}

TEST(OrderErrors, RankClaimedTwice) {
  Program program;
  program.build.add(program.order({{program.rank(0), program.gpipe(0)}}));
  program.build.add(program.order({{program.rank(0), program.gpipe(0)}}));
  EXPECT_EQ(expect_error(program, Code::rank_claimed_twice,
                         "the order of `cluster[pp: 0]` is given twice")
                .related.size(),
            1u);
}

TEST(OrderErrors, OtherDevices) {
  Program program;
  std::vector<Op> ops = program.gpipe(0);
  ops.push_back(program.op(Pass::F, 1, 0));
  program.build.add(program.order({{program.rank(0), ops}}));
  const Diagnostic found = expect_error(
      program, Code::order_on_other_devices,
      "`F stage[1] mb[0]` stands in the order of `cluster[pp: 0]`, but it runs on `cluster[pp: 1]`");
  ASSERT_EQ(found.related.size(), 1u);
  EXPECT_EQ(found.related[0].message, "it is placed here");
}

TEST(OrderErrors, TooManyDevicesClaimed) {
  Program program;
  program.build.add(program.order({{program.build.devices({}), {}}}));
  expect_error(
      program, Code::order_claims_too_much,
      "the order of `cluster[]` covers devices with different work: `F stage[0] mb[0]` runs on `cluster[pp: 0]` alone");
}

TEST(OrderErrors, Repeated) {
  Program program;
  std::vector<Op> ops = program.gpipe(0);
  ops.push_back(program.op(Pass::F, 0, 1));
  program.build.add(program.order({{program.rank(0), ops}}));
  EXPECT_EQ(expect_error(program, Code::order_repeats_work,
                         "`F stage[0] mb[1]` stands twice in the order of `cluster[pp: 0]`")
                .related.size(),
            1u);
}

TEST(OrderErrors, Missing) {
  Program program(2, 4);
  std::vector<Op> ops = program.gpipe(0);
  std::erase_if(ops, [](const Op& op) { return op.pass == Pass::B && op.at[1].second != 1; });
  program.build.add(program.order({{program.rank(0), ops}}));
  expect_error(program, Code::order_lacks_work,
               "the order of `cluster[pp: 0]` lacks `B stage[0] mb[0]`, `B stage[0] mb[2..4]`");
}

TEST(OrderErrors, BackwardBeforeForward) {
  Program program;
  program.build.add(program.order({{program.rank(1),
                                    {program.op(Pass::F, 1, 1), program.op(Pass::B, 1, 0),
                                     program.op(Pass::B, 1, 1), program.op(Pass::F, 1, 0)}}}));
  const Diagnostic found = expect_error(
      program, Code::order_contradicts_data,
      "`B stage[1] mb[0]` waits for `F stage[1] mb[0]`, which the order of `pp[1]` puts after it");
  ASSERT_GE(found.related.size(), 1u);
  EXPECT_EQ(found.related[0].message, "`F stage[1] mb[0]` comes only here");
}

TEST(OrderErrors, CycleOverTwoRanks) {
  Program program;
  program.build.add(program.order({{program.rank(0),
                                    {program.op(Pass::F, 0, 0), program.op(Pass::B, 0, 0),
                                     program.op(Pass::F, 0, 1), program.op(Pass::B, 0, 1)}},
                                   {program.rank(1),
                                    {program.op(Pass::F, 1, 1), program.op(Pass::F, 1, 0),
                                     program.op(Pass::B, 1, 0), program.op(Pass::B, 1, 1)}}}));
  const Diagnostic found = expect_error(program, Code::order_contradicts_data,
                                        "`pp[0]` and `pp[1]` wait for each other");
  std::string story;
  for (const Related& related : found.related) story += related.message + "\n";
  EXPECT_EQ(story,
            "`pp[0]` is at `B stage[0] mb[0]` and waits for `B stage[1] mb[0]` of `pp[1]`\n"
            "`pp[1]` is at `F stage[1] mb[1]` and waits for `F stage[0] mb[1]` of `pp[0]`\n"
            "the grid up to there; in brackets what each rank is at:\n"
            "  pp[0]  F0   [B0]\n"
            "  pp[1]  [F1]\n");
  EXPECT_EQ(found.hint,
            "in the order of `pp[1]`, move `F stage[1] mb[1]` behind `B stage[1] mb[0]`");
}

TEST(OrderErrors, MessageAsTheRankNamesIt) {
  Program program;
  std::vector<Op> sender = program.gpipe(0), receiver = program.gpipe(1);
  sender.insert(sender.begin() + 1, program.op(Pass::F, 0, 0));
  receiver.insert(receiver.begin() + 1, program.op(Pass::F, 1, 0));
  directive::Order order = program.order({{program.rank(0), sender}, {program.rank(1), receiver}});
  order.ops[1].part = CommClass::send;
  directive::OrderOp& late = order.ops[sender.size() + 1];
  late.part = CommClass::recv;
  const SourceRange place = program.context.locations.range(late.loc);
  program.build.add(order);
  const Diagnostic found = expect_error(
      program, Code::order_contradicts_data,
      "`F stage[1] mb[0]` waits for `F stage[1].recv mb[0]`, which the order of `pp[1]` puts after it");
  ASSERT_GE(found.related.size(), 1u);
  EXPECT_EQ(found.related[0].message, "`F stage[1].recv mb[0]` comes only here");
  EXPECT_EQ(found.related[0].range, place);
}

TEST(OrderErrors, DependentMembers) {
  Program program(1, 1);
  program.build.add(program.order(
      {{program.rank(0), {program.op(Pass::F, 0, 0, 1), program.op(Pass::B, 0, 0, 1)}}}));
  EXPECT_EQ(
      expect_error(
          program, Code::group_members_dependent,
          "`F stage[0] mb[0]` and `B stage[0] mb[0]` overlap in one group, but `B stage[0] mb[0]` needs what `F stage[0] mb[0]` makes")
          .related.size(),
      2u);
}

TEST(OrderErrors, NamedCommunication) {
  Program gather;
  directive::Order order = gather.order({{gather.rank(1), gather.gpipe(1)}});
  order.ops[0].part = CommClass::gather;
  gather.build.add(order);
  EXPECT_FALSE(gather.compile());
  EXPECT_EQ(gather.sink.sorted()[0].code, Code::no_such_communication);

  Program send;
  order = send.order({{send.rank(1), send.gpipe(1)}});
  order.ops[0].part = CommClass::send;
  send.build.add(order);
  EXPECT_FALSE(send.compile());
  EXPECT_EQ(send.sink.sorted()[0].code, Code::no_such_communication);
  EXPECT_EQ(
      send.sink.sorted()[0].message,
      "`F stage[1] mb[0]` has no `.send` on `cluster[pp: 1]`: nothing of it is sent to other devices");
}

// ---- streams and windows
// -------------------------------------------------------------------------------------------------------

TEST(Streams, OnePerRouteUnlessNamed) {
  Program program;
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
    Program program(2, 4);
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

TEST(StreamErrors, WindowBelowTheMinimum) {
  Program program;
  program.stream("p2p", {program.part({}, CommClass::send), program.part({}, CommClass::recv)}, 1);
  program.build.add(program.order({{program.rank(0), program.gpipe(0)},
                                   {program.rank(1),
                                    {program.op(Pass::F, 1, 1), program.op(Pass::F, 1, 0),
                                     program.op(Pass::B, 1, 0), program.op(Pass::B, 1, 1)}}}));
  const Diagnostic found = expect_error(
      program, Code::window_below_minimum,
      "the stream `p2p` has a window of 1, but `F stage[1] mb[1]` reads `F stage[0].send mb[1]` while `F stage[0].send mb[0]`, sent directly before it, is still unread");
  EXPECT_EQ(found.hint, "the least window for this order is 2");
}

TEST(StreamErrors, TwoStreamsForOneMessage) {
  Program program;
  program.stream("out", {program.part({}, CommClass::send)});
  program.stream("back", {program.part({}, CommClass::recv)});
  EXPECT_EQ(expect_error(
                program, Code::stream_conflict,
                "`F stage[1].recv mb[0]` is put on the stream `back`, but it is on `out` already")
                .related.size(),
            1u);
}

TEST(StreamErrors, OtherSettings) {
  Program program;
  program.stream("p2p", {program.part({}, CommClass::send)}, 2);
  program.stream("p2p", {program.part({}, CommClass::recv)}, 3);
  expect_error(program, Code::stream_conflict, "the stream `p2p` has other settings here");
}

TEST(StreamErrors, WorkOnAStream) {
  Program program;
  program.stream("early", {program.part({{"stage", 0}}, CommClass::none)});
  expect_error(program, Code::stream_refused,
               "`stage[0]` names work, but a stream carries communication");
}

TEST(StreamErrors, TheNameOfWork) {
  Program program;
  program.stream("compute", {program.part({}, CommClass::send)});
  expect_error(program, Code::stream_refused,
               "the stream `compute` is where chunks run, communication cannot be put on it");
}

TEST(StreamErrors, TooManyOnOneRank) {
  Program program(2, 70);
  for (std::uint32_t i = 0; i < 70; ++i)
    program.stream("s" + std::to_string(i),
                   {program.part({{"stage", 0}, {"mb", i}}, CommClass::send)});
  expect_error(program, Code::too_many_streams,
               "rank `pp0` has 73 streams, but there are at most 64", 70);
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
// -------------------------------------------------------------------------------------------------------------

directive::Recompute recompute(Program& program, std::vector<Index> target) {
  return {{program.build.selector(std::move(target))}, program.build.next_line()};
}

TEST(Recompute, StandsDirectlyBeforeItsBackward) {
  for (const bool ordered : {false, true}) {
    Program program;
    if (ordered) program.build.one_f_one_b(2, 2);
    program.build.add(recompute(program, {{"stage", 1}}));
    const auto dag = program.compile();
    ASSERT_TRUE(dag) << program.reports();
    EXPECT_EQ(program.sequence(*dag, 1), "F1.0 R1.0 B1.0 F1.1 R1.1 B1.1");
  }
}

TEST(Recompute, StandsBeforeTheGroupOfItsBackward) {
  Program program;
  program.build.add(program.overlapped()).add(recompute(program, {{"stage", 1}}));
  const auto dag = program.compile();
  ASSERT_TRUE(dag) << program.reports();
  const std::string sequence = program.sequence(*dag, 1);
  EXPECT_TRUE(sequence == "F1.0 R1.0 [F1.1 B1.0] R1.1 B1.1" ||
              sequence == "F1.0 R1.0 [B1.0 F1.1] R1.1 B1.1")
      << sequence;
}

TEST(Recompute, StandsWhereAnOrderNamesIt) {
  Program program;
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
  Program program;
  program.build.add(program.order(
      {{program.rank(0), program.gpipe(0)},
       {program.rank(1),
        {program.op(Pass::F, 1, 0), program.op(Pass::R, 1, 0), program.op(Pass::F, 1, 1),
         program.op(Pass::B, 1, 0), program.op(Pass::B, 1, 1)}}}));
  expect_error(program, Code::not_recomputed,
               "`R stage[1] mb[0]` matches nothing: no `recompute` line names this work");
}

// ---- measures
// ------------------------------------------------------------------------------------------------------------------

TEST(Requirements, BubbleOfOneForwardOneBackward) {
  for (const std::uint32_t p : {1u, 2u, 4u}) {
    Program program(p, 8);
    program.build.one_f_one_b(p, 8);
    const auto dag = program.compile();
    ASSERT_TRUE(dag) << program.reports();
    EXPECT_NEAR(passes::bubble_span(*dag), (p - 1.0) / (8 + p - 1), 1e-12) << p;
  }
}

TEST(Requirements, TrafficCountsEverySend) {
  Program program;
  const auto dag = program.compile();
  ASSERT_TRUE(dag) << program.reports();
  // Per microbatch one activation and one gradient of f64[batch: 4, dim: 2]; the sums of squares of
  // both ranks go to the other one.
  std::int64_t sums = 0;
  for (const tensor::Type& type : dag->param_types) sums += type.elements() > 0 ? 8 : 0;
  EXPECT_EQ(passes::traffic(*dag), 2 * 2 * 4 * 2 * 8 + sums);
}

TEST(Requirements, AreReportedWithWhatWasFound) {
  Program bubble;
  bubble.build.add(directive::Require{directive::Measure::bubble, directive::Compare::less, 0.1,
                                      "too idle", bubble.build.next_line()});
  expect_error(bubble, Code::measure_out_of_bounds,
               "`bubble` is 0.3333, but < 0.1 is required: too idle");

  Program memory;
  memory.build.add(directive::Require{directive::Measure::peak_memory,
                                      directive::Compare::less_equal, 64, "",
                                      memory.build.next_line()});
  EXPECT_FALSE(memory.compile());
  EXPECT_EQ(memory.sink.sorted()[0].code, Code::measure_out_of_bounds);

  Program fine;
  fine.build.add(directive::Require{directive::Measure::peak_memory, directive::Compare::less, 1e9,
                                    "", fine.build.next_line()});
  EXPECT_TRUE(fine.compile()) << fine.reports();
}

}  // namespace
}  // namespace piper::test
