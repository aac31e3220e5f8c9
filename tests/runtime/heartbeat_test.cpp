// Processes that are connected and say nothing: each end of a connection notices, within its limit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "runtime/processes/handshake.h"
#include "runtime/processes/silence.h"
#include "runtime/processes/sockets.h"
#include "tests/runtime/joined_ranks.h"

namespace piper::runtime {
namespace {

using testing::HasSubstr;
constexpr Heartbeats kQuick{.every = 0.1, .limit = 2};

/// One end of a connection, by hand.
class Peer {
 public:
  explicit Peer(int socket) : connection_(socket, kMaxBody) {}

  std::string wait_for(FrameKind wanted) {
    FrameKind kind{};
    std::string body;
    while (!connection_.closed()) {
      connection_.fill();
      while (connection_.receive(kind, body)) {
        if (kind == wanted) return body;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ADD_FAILURE() << "no " << name_of(wanted);
    return {};
  }
  void send(FrameKind kind, const std::string& body) { connection_.send(kind, body); }
  /// Reads until the other end closes the connection.
  void wait_for_end() {
    FrameKind kind{};
    std::string body;
    while (!connection_.closed()) {
      connection_.fill();
      while (connection_.receive(kind, body)) {}
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  Connection connection_;
};

/// A process that joins, and says nothing more.
std::unique_ptr<Peer> join_silently(const Launch& launch) {
  std::string reason;
  bool again = true;
  int socket = -1;
  while ((socket = connect_to(launch.host, launch.port, reason, again)) < 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  auto peer = std::make_unique<Peer>(socket);
  const ProcessEnd end("", launch);
  peer->send(FrameKind::open, encode(end.opening()));
  const auto answer = decode_answer(peer->wait_for(FrameKind::nonce));
  peer->send(FrameKind::hello, encode(*end.take_answer(*answer)));
  peer->wait_for(FrameKind::heard);
  return peer;
}

/// Rank 0 names it to all, and closes its connection.
TEST(Heartbeat, ASilentProcessIsNamed) {
  const std::uint16_t port = free_port();
  std::atomic<int> named{0};
  const auto run = [&](std::uint32_t rank) {
    Failure failure;
    auto group =
        ProcessGroup::join(of_rank(rank, 3, port), {.seconds = 20, .heartbeats = kQuick}, failure);
    ASSERT_TRUE(group) << failure.message;
    EXPECT_FALSE(group->get("a key that nobody sets"));
    failure = group->failure().value();
    EXPECT_EQ(failure.code, kProcessLost);
    EXPECT_THAT(failure.message, HasSubstr("rank 2 (process "));
    EXPECT_THAT(failure.message,
                HasSubstr("does not answer: nothing has come from it for 2 seconds"));
    EXPECT_THAT(failure.hint, HasSubstr("PIPER_SILENCE_SECONDS"));
    group.reset();
    ++named;
  };
  std::thread first(run, 0), second(run, 1);
  const auto silent = join_silently(of_rank(2, 3, port));
  silent->wait_for_end();
  first.join();
  second.join();
  EXPECT_EQ(named, 2);
}

TEST(Heartbeat, ASilentRankZeroIsNamed) {
  Listeners listeners;
  std::string reason;
  ASSERT_TRUE(listeners.open("127.0.0.1", 0, reason)) << reason;
  std::thread silent([&] {
    int accepted = -1;
    while ((accepted = accept(listeners.sockets()[0], nullptr, nullptr)) < 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    Peer peer(accepted);
    RankZeroEnd end;
    const auto answer = end.take_opening("", "", peer.wait_for(FrameKind::open));
    peer.send(FrameKind::nonce, encode(*answer));
    peer.wait_for(FrameKind::hello);
    peer.send(FrameKind::heard, encode(Heard{"process 7 on node7"}));
    peer.send(FrameKind::all_here, {});
    peer.wait_for_end();
  });
  Failure failure;
  {
    const auto group = ProcessGroup::join(of_rank(1, 2, listeners.port()),
                                          {.seconds = 20, .heartbeats = kQuick}, failure);
    ASSERT_TRUE(group) << failure.message;
    EXPECT_FALSE(group->get("a key"));
    failure = group->failure().value();
  }
  EXPECT_EQ(failure.code, kProcessLost);
  EXPECT_EQ(failure.message,
            "rank 0 (process 7 on node7) does not answer: nothing has come from it for 2 seconds");
  silent.join();
}

/// Before all have joined a silent process gives its rank back to another one.
TEST(Heartbeat, ASilentProcessGivesItsRankBack) {
  const std::uint16_t port = free_port();
  std::vector<Failure> notices;
  // Three processes: the silent one does not complete the run.
  const auto run = [&](std::uint32_t rank) {
    Failure failure;
    const auto group =
        ProcessGroup::join(of_rank(rank, 3, port),
                           {.seconds = 20,
                            .heartbeats = kQuick,
                            .on_notice = [&](const Failure& notice) { notices.push_back(notice); }},
                           failure);
    ASSERT_TRUE(group) << failure.message;
    EXPECT_FALSE(group->agree({}));
    group->leave();
  };
  std::thread first(run, 0);
  join_silently(of_rank(1, 3, port))->wait_for_end();
  std::thread second(run, 1), last(run, 2);
  for (std::thread* thread : {&first, &second, &last}) thread->join();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_THAT(notices[0].message,
              HasSubstr("joined and left before all had joined: nothing has come from it for"));
}

/// Without a limit, and below it, silence is no failure.
TEST(Heartbeat, NoLimitAndSlowProcesses) {
  for (const Heartbeats heartbeats : {Heartbeats{0.1, 0}, kQuick}) {
    with_ranks(
        2,
        [&](std::uint32_t rank, std::unique_ptr<ProcessGroup> group, const Failure& failure) {
          ASSERT_TRUE(group) << failure.message;
          EXPECT_FALSE(group->agree({}));
          // Both are busy for longer than the limit, with nothing to say to the other.
          std::this_thread::sleep_for(std::chrono::milliseconds(rank == 0 ? 2700 : 2400));
          EXPECT_FALSE(group->failure()) << group->failure()->message;
          EXPECT_EQ(group->any(false), false);
          group->leave();
        },
        {}, 20, {}, heartbeats);
  }
}

/// A stop of the whole job: the others did not run either.
TEST(Heartbeat, ATimeWithoutThisProcessIsNoSilence) {
  using std::chrono_literals::operator""ms;
  Silence silence;
  const auto later = Silence::Clock::now() + std::chrono::hours(1);
  EXPECT_FALSE(silence.lasts(1, later));
  EXPECT_FALSE(silence.lasts(1, later + 400ms));
  EXPECT_TRUE(silence.lasts(1, later + 800ms));
  EXPECT_FALSE(silence.lasts(0, later + 1200ms));
  silence.end();
  EXPECT_FALSE(silence.lasts(1));
}

/// The last positions of the others reach every process with a failure, the failed one first.
TEST(Heartbeat, CarriesThePositionsOfRanks) {
  std::atomic<int> agreed{0};
  with_ranks(
      3,
      [&](std::uint32_t rank, std::unique_ptr<ProcessGroup> group, const Failure& failure) {
        ASSERT_TRUE(group) << failure.message;
        std::atomic<int> asked{0};
        group->report_positions([&asked, rank] {
          ++asked;
          return std::vector{RankPosition{rank, Phase::training, 7, 20 + rank, 19}};
        });
        while (asked < 3) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        EXPECT_TRUE(group->last_states().empty());
        EXPECT_FALSE(group->agree({}));
        for (++agreed; agreed < 3 && !group->failed();)
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (rank == 2) group->fail({.code = kNonFinite, .message = "nan"});
        EXPECT_FALSE(group->get("a key that nobody sets"));
        const std::vector<ProcessState> states = group->last_states();
        ASSERT_EQ(states.size(), 3u);
        EXPECT_EQ(states[0].process, 2u);
        for (const ProcessState& state : states) {
          EXPECT_THAT(state.name, HasSubstr("process " + std::to_string(getpid()) + " on "));
          ASSERT_EQ(state.positions.size(), 1u);
          EXPECT_EQ(state.positions[0].rank, state.process);
          EXPECT_EQ(state.positions[0].started, 20 + state.process);
        }
        group->report_positions({});
      },
      {}, 20, {}, kQuick);
}

}  // namespace
}  // namespace piper::runtime
