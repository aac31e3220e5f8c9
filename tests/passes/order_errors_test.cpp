// Orders and streams that are refused, with their messages.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/passes/order_program.h"

namespace piper::test {
namespace {

using directive::CommClass;
using Op = OrderedOp;

TEST(OrderErrors, TrimAlongNothing) {
  OrderProgram program;
  directive::Order order = program.order({{program.rank(0), program.gpipe(0)}});
  order.trims.push_back({program.context.symbol("slice"), 4, order.loc});
  program.build.add(order);
  expect_error(program, Code::trim_unknown_dimension,
               "`trim` names `slice`, but the batch is not split into `slice`");
}

TEST(OrderErrors, RankClaimedTwice) {
  OrderProgram program;
  program.build.add(program.order({{program.rank(0), program.gpipe(0)}}));
  program.build.add(program.order({{program.rank(0), program.gpipe(0)}}));
  EXPECT_EQ(expect_error(program, Code::rank_claimed_twice,
                         "the order of `cluster[pp: 0]` is given twice")
                .related.size(),
            1u);
}

TEST(OrderErrors, OtherDevices) {
  OrderProgram program;
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
  OrderProgram program;
  program.build.add(program.order({{program.build.devices({}), {}}}));
  expect_error(
      program, Code::order_claims_too_much,
      "the order of `cluster[]` covers devices with different work: `F stage[0] mb[0]` runs on `cluster[pp: 0]` alone");
}

TEST(OrderErrors, Repeated) {
  OrderProgram program;
  std::vector<Op> ops = program.gpipe(0);
  ops.push_back(program.op(Pass::F, 0, 1));
  program.build.add(program.order({{program.rank(0), ops}}));
  EXPECT_EQ(expect_error(program, Code::order_repeats_work,
                         "`F stage[0] mb[1]` stands twice in the order of `cluster[pp: 0]`")
                .related.size(),
            1u);
}

TEST(OrderErrors, Missing) {
  OrderProgram program(2, 4);
  std::vector<Op> ops = program.gpipe(0);
  std::erase_if(ops, [](const Op& op) { return op.pass == Pass::B && op.at[1].second != 1; });
  program.build.add(program.order({{program.rank(0), ops}}));
  expect_error(program, Code::order_lacks_work,
               "the order of `cluster[pp: 0]` lacks `B stage[0] mb[0]`, `B stage[0] mb[2..4]`");
}

TEST(OrderErrors, BackwardBeforeForward) {
  OrderProgram program;
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
  OrderProgram program;
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
  OrderProgram program;
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
  OrderProgram program(1, 1);
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
  OrderProgram gather;
  directive::Order order = gather.order({{gather.rank(1), gather.gpipe(1)}});
  order.ops[0].part = CommClass::gather;
  gather.build.add(order);
  EXPECT_FALSE(gather.compile());
  EXPECT_EQ(gather.sink.sorted()[0].code, Code::no_such_communication);

  OrderProgram send;
  order = send.order({{send.rank(1), send.gpipe(1)}});
  order.ops[0].part = CommClass::send;
  send.build.add(order);
  EXPECT_FALSE(send.compile());
  EXPECT_EQ(send.sink.sorted()[0].code, Code::no_such_communication);
  EXPECT_EQ(
      send.sink.sorted()[0].message,
      "`F stage[1] mb[0]` has no `.send` on `cluster[pp: 1]`: nothing of it is sent to other devices");
}

TEST(StreamErrors, WindowBelowTheMinimum) {
  OrderProgram program;
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
  OrderProgram program;
  program.stream("out", {program.part({}, CommClass::send)});
  program.stream("back", {program.part({}, CommClass::recv)});
  EXPECT_EQ(expect_error(
                program, Code::stream_conflict,
                "`F stage[1].recv mb[0]` is put on the stream `back`, but it is on `out` already")
                .related.size(),
            1u);
}

TEST(StreamErrors, OtherSettings) {
  OrderProgram program;
  program.stream("p2p", {program.part({}, CommClass::send)}, 2);
  program.stream("p2p", {program.part({}, CommClass::recv)}, 3);
  expect_error(program, Code::stream_conflict, "the stream `p2p` has other settings here");
}

TEST(StreamErrors, WorkOnAStream) {
  OrderProgram program;
  program.stream("early", {program.part({{"stage", 0}}, CommClass::none)});
  expect_error(program, Code::stream_refused,
               "`stage[0]` names work, but a stream carries communication");
}

TEST(StreamErrors, TheNameOfWork) {
  OrderProgram program;
  program.stream("compute", {program.part({}, CommClass::send)});
  expect_error(program, Code::stream_refused,
               "the stream `compute` is where chunks run, communication cannot be put on it");
}

TEST(StreamErrors, TooManyOnOneRank) {
  OrderProgram program(2, 70);
  for (std::uint32_t i = 0; i < 70; ++i)
    program.stream("s" + std::to_string(i),
                   {program.part({{"stage", 0}, {"mb", i}}, CommClass::send)});
  expect_error(program, Code::too_many_streams,
               "rank `pp0` has 73 streams, but there are at most 64", 70);
}

}  // namespace
}  // namespace piper::test
