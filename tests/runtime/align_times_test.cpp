// Times of processes as times from one start: recorded times that were moved apart come together
// again, as far as communications say.

#include "runtime/trace/align_times.h"

#include <gtest/gtest.h>

#include <deque>

namespace piper::test {
namespace {

using runtime::MatchedComms;
using runtime::RecordedAction;
using runtime::RecordedRank;

/// Meetings and when their members were in them; a rank's communications are all on one queue.
struct Recorded {
  MatchedComms matched;
  std::vector<RecordedRank> ranks;
  std::deque<PiperCommAction> actions;
  std::deque<PiperMessagePart> parts;

  explicit Recorded(std::size_t count) : ranks(count) {
    matched.at.resize(count, std::vector<std::vector<std::uint32_t>>(1));
  }

  struct Member {
    std::size_t rank;
    PiperCommOp op;
    std::uint64_t begin, end;
    bool gives = true;
  };
  void meet(const std::vector<Member>& members) {
    auto& comm = matched.list.emplace_back();
    for (const Member& each : members) {
      PiperMessagePart part{};
      part.elements = 4;
      part.in = each.gives && each.op != PIPER_RECV ? 0 : PIPER_NO_OFFSET;
      parts.push_back(part);
      PiperCommAction action{};
      action.op = each.op;
      action.num_parts = 1;
      actions.push_back(action);
      runtime::CommMember member;
      member.rank = each.rank;
      member.operation.action = &actions.back();
      member.operation.parts = &parts.back();
      comm.push_back(member);
      std::vector<std::uint32_t>& at = matched.at[each.rank][0];
      RecordedAction recorded;
      recorded.position = static_cast<std::uint32_t>(at.size());
      recorded.begin_ns = each.begin;
      recorded.end_ns = each.end;
      ranks[each.rank].actions.push_back(recorded);
      at.push_back(static_cast<std::uint32_t>(matched.list.size() - 1));
    }
  }
  void send(std::size_t from, std::uint64_t begin, std::uint64_t end, std::size_t to,
            std::uint64_t waits, std::uint64_t received) {
    meet({{from, PIPER_SEND, begin, end}, {to, PIPER_RECV, waits, received}});
  }

  /// The start of each rank behind that of the first one that begins, where its own process counted
  /// from `moved` later.
  std::vector<std::uint64_t> aligned(const std::vector<std::uint64_t>& moved) {
    std::vector<std::uint64_t> before;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      for (RecordedAction& action : ranks[rank].actions) {
        action.begin_ns -= moved[rank];
        action.end_ns -= moved[rank];
      }
      before.push_back(ranks[rank].actions.empty() ? 0 : ranks[rank].actions[0].begin_ns);
    }
    runtime::align_times(matched, ranks);
    std::vector<std::uint64_t> starts;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      starts.push_back(
          ranks[rank].actions.empty() ? 0 : ranks[rank].actions[0].begin_ns - before[rank]);
    return starts;
  }
};

/// Each waits once for the other, and a message takes 10: the starts are known to that.
TEST(AlignTimes, MessagesBothWaysSayWhenEachBegan) {
  for (const auto& moved : {std::vector<std::uint64_t>{0, 400}, {400, 0}, {100, 100}}) {
    Recorded run(2);
    run.send(0, 500, 510, 1, 400, 510);
    run.send(1, 900, 910, 0, 600, 910);
    const auto starts = run.aligned(moved);
    const std::uint64_t least = std::min(moved[0], moved[1]);
    EXPECT_EQ(starts, (std::vector<std::uint64_t>{moved[0] - least, moved[1] - least}));
  }
}

/// A third rank is known over the second, and a message that is received long after it was sent
/// says little.
TEST(AlignTimes, RanksThatDoNotMeetAreKnownOverOthers) {
  Recorded run(3);
  run.send(0, 1000, 1010, 1, 900, 1010);
  run.send(1, 1020, 1030, 2, 900, 1030);
  run.send(2, 1500, 1510, 1, 1400, 1510);
  run.send(1, 1600, 1610, 0, 1500, 1610);
  run.send(0, 1700, 1710, 1, 9000, 9010);
  EXPECT_EQ(run.aligned({0, 300, 800}), (std::vector<std::uint64_t>{0, 300, 800}));
}

/// A sum to which all contribute ends on all members together, whichever waits.
TEST(AlignTimes, SumsEndTogether) {
  Recorded run(3);
  run.meet({{0, PIPER_ALL_REDUCE, 900, 5020},
            {1, PIPER_ALL_REDUCE, 5000, 5020},
            {2, PIPER_ALL_REDUCE, 1000, 5020}});
  EXPECT_EQ(run.aligned({0, 700, 200}), (std::vector<std::uint64_t>{0, 700, 200}));
  // A member that adds nothing may arrive when the others have ended; here it arrives first.
  Recorded one_way(2);
  one_way.meet({{0, PIPER_ALL_REDUCE, 1000, 1010}, {1, PIPER_ALL_REDUCE, 500, 1010, false}});
  EXPECT_EQ(one_way.aligned({0, 400}), (std::vector<std::uint64_t>{0, 390}));
}

/// Ends that cannot coincide are ignored: the bounds from received messages are wide, and the
/// middle between them is taken.
TEST(AlignTimes, EndsThatContradictEachOtherAreNotTaken) {
  Recorded run(2);
  run.meet({{0, PIPER_ALL_REDUCE, 1000, 1500}, {1, PIPER_ALL_REDUCE, 1000, 1100}});
  run.meet({{0, PIPER_ALL_REDUCE, 2000, 2100}, {1, PIPER_ALL_REDUCE, 2000, 2500}});
  EXPECT_EQ(run.aligned({0, 200}), (std::vector<std::uint64_t>{0, 200}));
}

/// A single bound is taken as it is; a rank without communications begins with the first.
TEST(AlignTimes, MessagesOneWay) {
  Recorded run(3);
  run.send(0, 500, 510, 1, 400, 540);
  run.meet({{2, PIPER_OFFLOAD, 700, 710}});
  EXPECT_EQ(run.aligned({0, 300, 0}), (std::vector<std::uint64_t>{0, 260, 0}));
}

}  // namespace
}  // namespace piper::test
