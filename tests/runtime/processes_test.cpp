// Which process of a run this is, and how the processes of one meet, agree, fail and stop: here as
// threads.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "runtime/processes/process_group.h"
#include "runtime/processes/reach_rank_zero.h"
#include "runtime/processes/sockets.h"
#include "tests/runtime/joined_ranks.h"

namespace piper::runtime {
namespace {

Launch read(const Environment& environment) {
  const LaunchRead read = read_launch(environment);
  EXPECT_FALSE(read.failure) << read.failure->message;
  return read.launch.value_or(Launch());
}

TEST(ReadLaunch, ReadsTorchrun) {
  const Launch launch = read({{"RANK", "3"},
                              {"WORLD_SIZE", "8"},
                              {"LOCAL_RANK", "1"},
                              {"MASTER_ADDR", "node7"},
                              {"MASTER_PORT", "29400"},
                              {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                              {"TORCHELASTIC_RUN_ID", "mine"},
                              {"TORCHELASTIC_RESTART_COUNT", "2"},
                              {"SLURM_PROCID", "1"},
                              {"SLURM_STEP_NUM_TASKS", "4"}});
  EXPECT_EQ(launch.rank, 3u);
  EXPECT_EQ(launch.world, 8u);
  EXPECT_EQ(launch.local_rank, 1u);
  EXPECT_EQ(launch.host, "node7");
  EXPECT_EQ(launch.port, 29400);
  EXPECT_TRUE(launch.agent_store);
  EXPECT_FALSE(launch.one_machine);
  EXPECT_TRUE(launch.run.starts_with("mine/2/")) << launch.run;
}

/// torchrun has the name of its machine in MASTER_ADDR, also where it starts all processes.
TEST(ReadLaunch, ProcessesOfOneMachine) {
  Environment environment{{"RANK", "1"},
                          {"WORLD_SIZE", "4"},
                          {"LOCAL_RANK", "1"},
                          {"LOCAL_WORLD_SIZE", "4"},
                          {"MASTER_ADDR", "node7"},
                          {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
  EXPECT_EQ(meeting_host(read(environment)), "127.0.0.1");
  environment["LOCAL_WORLD_SIZE"] = "2";  // of two machines
  EXPECT_EQ(meeting_host(read(environment)), "node7");
  environment["LOCAL_WORLD_SIZE"] = "4";
  environment.erase("TORCHELASTIC_USE_AGENT_STORE");
  EXPECT_EQ(meeting_host(read(environment)), "node7");
}

TEST(ReadLaunch, ReadsMpirun) {
  Environment environment{{"OMPI_COMM_WORLD_RANK", "1"},
                          {"OMPI_COMM_WORLD_SIZE", "2"},
                          {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                          {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  EXPECT_EQ(read(environment).host, "127.0.0.1");
  EXPECT_EQ(read(environment).port, 29500);
  environment["OMPI_COMM_WORLD_LOCAL_SIZE"] = "1";  // two machines
  ASSERT_TRUE(read_launch(environment).failure);
  EXPECT_EQ(read_launch(environment).failure->message,
            "there are `2` processes, but `MASTER_ADDR` is not set");
  environment["MASTER_ADDR"] = "node1";
  EXPECT_EQ(read(environment).host, "node1");
  environment["OMPI_COMM_WORLD_SIZE"] = "1";
  EXPECT_FALSE(read_launch(environment).launch);
}

/// The mpirun of MVAPICH, and that of MPICH and Intel MPI.
TEST(ReadLaunch, ReadsOtherMpiruns) {
  const Environment mvapich{{"MV2_COMM_WORLD_RANK", "1"},
                            {"MV2_COMM_WORLD_SIZE", "2"},
                            {"MV2_COMM_WORLD_LOCAL_RANK", "1"},
                            {"MV2_COMM_WORLD_LOCAL_SIZE", "2"}};
  Environment hydra{
      {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};
  for (const Environment& each : {mvapich, hydra}) {
    const Launch launch = read(each);
    EXPECT_TRUE(launch.rank == 1 && launch.world == 2 && launch.local_rank == 1);
    EXPECT_EQ(launch.host, "127.0.0.1");
    EXPECT_EQ(launch.by, "mpirun");
  }
  // Within a job of Slurm, which has started one part of mpirun on each machine.
  for (const auto& [name, value] : Environment{{"SLURM_PROCID", "0"},
                                               {"SLURM_STEP_NUM_TASKS", "2"},
                                               {"SLURM_LOCALID", "0"},
                                               {"SLURM_STEP_NODELIST", "a,b"},
                                               {"SLURM_JOB_ID", "7"}})
    hydra[name] = value;
  EXPECT_EQ(read(hydra).rank, 1u);
  // Slurm uses PMI-2 and PMIx with its tasks, but numbers them on their machine itself.
  hydra.erase("MPI_LOCALRANKID");
  hydra["PMIX_RANK"] = "0";
  EXPECT_EQ(read(hydra).rank, 0u);
  EXPECT_EQ(read(hydra).by, "Slurm");
  EXPECT_FALSE(read_launch({{"PMIX_RANK", "1"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}).launch);
}

TEST(ReadLaunch, ReadsSlurm) {
  Environment environment{{"SLURM_PROCID", "5"},       {"SLURM_STEP_NUM_TASKS", "8"},
                          {"SLURM_LOCALID", "1"},      {"SLURM_STEP_NODELIST", "gpu[07-08]"},
                          {"SLURM_JOB_ID", "1234567"}, {"SLURM_STEP_ID", "0"}};
  const Launch launch = read(environment);
  EXPECT_EQ(launch.rank, 5u);
  EXPECT_EQ(launch.host, "gpu07");
  EXPECT_EQ(launch.port, 20000 + 1234567 % 12000);
  // The shell of a job is no process of several.
  environment["SLURM_STEP_NUM_TASKS"] = "1";
  EXPECT_FALSE(read_launch(environment).launch);
  environment.erase("SLURM_STEP_NUM_TASKS");
  EXPECT_FALSE(read_launch(environment).launch);
}

TEST(ReadLaunch, Alone) {
  EXPECT_FALSE(read_launch({}).launch);
  EXPECT_FALSE(read_launch({{"MASTER_ADDR", "node1"}, {"LOCAL_RANK", "0"}}).launch);
  const Launch one = read({{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  EXPECT_EQ(one.world, 1u);
  EXPECT_EQ(one.host, "127.0.0.1");
}

TEST(ReadLaunch, RefusesPortsAndNames) {
  Environment environment{
      {"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}, {"MASTER_ADDR", "node1"}};
  for (const char* const port : {"0", "65536", "http"}) {
    environment["MASTER_PORT"] = port;
    ASSERT_TRUE(read_launch(environment).failure) << port;
    EXPECT_EQ(read_launch(environment).failure->message,
              "the environment variable `MASTER_PORT` is `" + std::string(port) + "`");
  }
  environment.erase("MASTER_PORT");
  environment["PIPER_RUN"].assign(kMaxRunName, 'x');
  ASSERT_TRUE(read_launch(environment).failure);
  EXPECT_EQ(read_launch(environment).failure->hint,
            "`PIPER_RUN` and `TORCHELASTIC_RUN_ID` have a few hundred bytes at most");
}

TEST(ReadLaunch, FirstOfNodes) {
  for (const auto& [nodes, first] : {std::pair{"node7", "node7"},
                                     {"a,b", "a"},
                                     {"n[3-5,9]", "n3"},
                                     {"n[07,09],m", "n07"},
                                     {"n[4]", "n4"},
                                     {"", ""}})
    EXPECT_EQ(first_of_nodes(nodes), first);
}

TEST(ProcessGroup, SetsGetsAndAgrees) {
  with_ranks(3,
             [](std::uint32_t rank, std::unique_ptr<ProcessGroup> group, const Failure& failure) {
               ASSERT_TRUE(group) << failure.message;
               const std::string large(3 << 20, 'x');
               group->set("of " + std::to_string(rank), std::to_string(rank) + large);
               EXPECT_EQ(group->get("of " + std::to_string((rank + 1) % 3)),
                         std::to_string((rank + 1) % 3) + large);
               EXPECT_FALSE(group->agree({{"steps", "100"}, {"seed", "7"}}));
               // Another job of the run, with separate keys.
               group->set("of " + std::to_string(rank), "first");
               EXPECT_FALSE(group->agree({{"steps", "3"}, {"seed", "7"}}));
               if (rank == 1) group->set("of 1", "second");
               EXPECT_EQ(group->get("of 1"), "second");
               group->leave();
             });
}

TEST(ProcessGroup, FactsThatDifferAreToldToAll) {
  std::atomic<int> told{0};
  with_ranks(3,
             [&](std::uint32_t rank, std::unique_ptr<ProcessGroup> group, const Failure& failure) {
               ASSERT_TRUE(group) << failure.message;
               const auto differs = group->agree({{"steps", rank == 2 ? "5" : "6"}});
               ASSERT_TRUE(differs);
               EXPECT_EQ(differs->code, kProgramsDiffer);
               EXPECT_EQ(differs->message, "rank 2 has other steps than rank 0: `5` and `6`");
               ++told;
             });
  EXPECT_EQ(told, 3);
}

TEST(ProcessGroup, AFailureReachesAllWithItsPlace) {
  with_ranks(3,
             [&](std::uint32_t rank, std::unique_ptr<ProcessGroup> group, const Failure& failure) {
               ASSERT_TRUE(group) << failure.message;
               // A process still in `join` would learn of it there.
               const auto failed = group->agree({});
               EXPECT_TRUE(!failed || rank != 1);
               if (rank == 1)
                 group->fail({.code = kNonFinite,
                              .message = "the loss is nan",
                              .hint = "h",
                              .rank = 1,
                              .step = 4,
                              .place = {"F.stage1", "a.pipe", 3, 5, 3, 9},
                              .notes = {{"n", {}}}});
               EXPECT_FALSE(group->get("what nobody sets"));
               const Failure found = group->failure().value();
               EXPECT_EQ(describe(found), describe({.code = kNonFinite,
                                                    .message = "the loss is nan",
                                                    .hint = "h",
                                                    .rank = 1,
                                                    .step = 4,
                                                    .place = {"F.stage1", "a.pipe", 3, 5, 3, 9},
                                                    .notes = {{"n", {}}}}));
               EXPECT_EQ(found.hint, "h");
               EXPECT_EQ(found.notes.size(), 1u);
             });
}

TEST(ProcessGroup, SilentExitsAreNoticed) {
  for (const std::uint32_t gone : {0u, 1u}) {
    with_ranks(2, [&](std::uint32_t rank, std::unique_ptr<ProcessGroup> group, const Failure&) {
      ASSERT_TRUE(group);
      const auto failed = group->agree({});
      EXPECT_TRUE(!failed || rank != gone);
      if (rank == gone) return;
      EXPECT_FALSE(group->get("what nobody sets"));
      EXPECT_EQ(group->failure()->code, kProcessLost);
      EXPECT_NE(group->failure()->message.find("rank " + std::to_string(gone) + " (process "),
                std::string::npos)
          << group->failure()->message;
    });
  }
}

TEST(ProcessGroup, AllStopAtTheStepOfTheFarthest) {
  std::atomic<std::uint64_t> started[3] = {};
  with_ranks(3,
             [&](std::uint32_t rank, std::unique_ptr<ProcessGroup> group, const Failure& failure) {
               ASSERT_TRUE(group) << failure.message;
               for (;;) {
                 if (rank == 2 && started[2] == 10) group->request_stop();
                 const auto begin = group->begin_step();
                 if (begin == ProcessGroup::Begin::no) break;
                 if (begin == ProcessGroup::Begin::yes) ++started[rank];
                 std::this_thread::sleep_for(std::chrono::milliseconds(rank + 1));
               }
               group->leave();
             });
  EXPECT_GE(started[2], 10u);
  EXPECT_EQ(started[0], started[1]);
  EXPECT_EQ(started[0], started[2]);
}

TEST(ProcessGroup, ReportsReachRankZero) {
  with_ranks(2,
             [&](std::uint32_t rank, std::unique_ptr<ProcessGroup> group, const Failure& failure) {
               ASSERT_TRUE(group) << failure.message;
               if (rank == 1) group->send_report(41, "numbers");
               std::optional<std::string> found;
               while (rank == 0 && !(found = group->take_report(1, 41)) && !group->failed())
                 std::this_thread::sleep_for(std::chrono::milliseconds(1));
               if (rank == 0) {
                 EXPECT_EQ(found, "numbers");
               }
               group->leave();
             });
}

TEST(ProcessGroup, BytesReachRankZeroWholeAndInOrder) {
  const std::string large(20 << 20, 'y');
  with_ranks(3,
             [&](std::uint32_t rank, std::unique_ptr<ProcessGroup> group, const Failure& failure) {
               ASSERT_TRUE(group) << failure.message;
               const std::string own = std::to_string(rank);
               if (rank != 0) {
                 for (const std::string& each : {own + large, std::string(), own})
                   group->send_bytes(Channel::parameters, each);
               }
               for (const std::uint32_t from : {2u, 1u}) {
                 if (rank != 0) continue;
                 constexpr Channel kChannel = Channel::parameters;
                 EXPECT_TRUE(group->receive_bytes(kChannel, from, large.size() + 1) ==
                             std::to_string(from) + large);
                 EXPECT_EQ(group->receive_bytes(kChannel, from, 0), "");
                 EXPECT_EQ(group->receive_bytes(kChannel, from, 1), std::to_string(from));
               }
               EXPECT_EQ(group->any(false), false);
               EXPECT_EQ(group->any(rank == 2), true);
               EXPECT_EQ(group->any(rank == 0), true);
               EXPECT_EQ(group->any(false), false);
               group->leave();
             });
}

/// Heartbeats of rank 0 are under way to the others when these end.
TEST(ProcessGroup, BytesSentBeforeTheEndArrive) {
  const std::string bytes(std::size_t{8} << 20, 'x');
  const auto run = [&](std::uint32_t rank, std::unique_ptr<ProcessGroup> group, const Failure&) {
    ASSERT_TRUE(group);
    for (std::uint32_t from = 1; rank == 0 && from < 4; ++from) {
      EXPECT_TRUE(group->receive_bytes(Channel::parameters, from, bytes.size()) == bytes)
          << describe(group->failure().value_or(Failure()));
    }
    if (rank != 0) group->send_bytes(Channel::parameters, bytes);
    group->leave();
  };
  with_ranks(4, run, {}, 20, {}, {.every = 0.0005, .limit = 10});
}

/// A thread that writes a checkpoint sends its sums while others send what they have recorded.
TEST(ProcessGroup, ChannelsDoNotMix) {
  constexpr int kTexts = 40;
  const auto text = [](Channel channel, std::uint32_t rank, int number) {
    // Some are larger than a piece.
    return std::string(number % 20 == 0 ? 9 << 20 : number,
                       static_cast<char>('a' + 8 * static_cast<int>(channel) + rank)) +
           std::to_string(number);
  };
  constexpr Channel kAll[] = {Channel::recorded, Channel::parameters, Channel::checkpoint};
  with_ranks(3, [&](std::uint32_t rank, std::unique_ptr<ProcessGroup> group, const Failure&) {
    ASSERT_TRUE(group);
    const auto send = [&](Channel channel) {
      for (int number = 0; number < kTexts; ++number)
        group->send_bytes(channel, text(channel, rank, number));
    };
    const auto receive = [&](Channel channel) {
      for (int number = 0; number < kTexts; ++number) {
        for (const std::uint32_t from : {2u, 1u}) {
          const std::string expected = text(channel, from, number);
          EXPECT_TRUE(group->receive_bytes(channel, from, expected.size()) == expected)
              << static_cast<int>(channel) << ", " << from << ", " << number;
        }
      }
    };
    std::vector<std::thread> threads;
    for (const Channel channel : kAll)
      threads.emplace_back([&, channel] { rank == 0 ? receive(channel) : send(channel); });
    for (std::thread& thread : threads) thread.join();
    // In another order than that of the sender, by one thread.
    if (rank != 0) {
      for (const Channel channel : kAll) group->send_bytes(channel, text(channel, rank, 7));
    } else {
      for (const Channel channel : {Channel::checkpoint, Channel::recorded, Channel::parameters})
        EXPECT_EQ(group->receive_bytes(channel, 1, 100), text(channel, 1, 7));
    }
    EXPECT_EQ(group->any(false), false);
    group->leave();
  });
}

/// Rank 0 waits for bytes, the others for an answer of all.
TEST(ProcessGroup, NoProcessWaitsForADeadPeer) {
  for (const std::uint32_t gone : {0u, 2u}) {
    with_ranks(3, [&](std::uint32_t rank, std::unique_ptr<ProcessGroup> group, const Failure&) {
      ASSERT_TRUE(group);
      const auto failed = group->agree({});
      EXPECT_TRUE(!failed || rank != gone);
      if (rank == gone) return;
      if (rank == 0) {
        EXPECT_FALSE(group->receive_bytes(Channel::parameters, gone, 100));
      } else {
        EXPECT_FALSE(group->any(false));
      }
      EXPECT_EQ(group->failure()->code, kProcessLost);
    });
  }
}

/// A process that does not fit ends at once; rank 0 warns at once, and names it again when it gives
/// up.
TEST(ProcessGroup, AProcessThatDoesNotFitIsRefusedAndNamed) {
  const auto refused = [](const std::function<void(std::uint32_t, Launch&)>& change,
                          const std::string& text) {
    std::atomic<int> told{0}, notes{0}, notices{0};
    with_ranks(
        3,
        [&](std::uint32_t, std::unique_ptr<ProcessGroup> group, const Failure& failure) {
          EXPECT_FALSE(group);
          EXPECT_EQ(failure.code, kProcessesApart);
          told += failure.message.find(text) != std::string::npos;
          for (const Note& note : failure.notes) notes += note.text.find(text) != std::string::npos;
        },
        change, 1,
        [&](const Failure& notice) { notices += notice.message.find(text) != std::string::npos; });
    EXPECT_EQ(told, 1) << text;
    EXPECT_EQ(notes, 2) << text;
    EXPECT_EQ(notices, 1) << text;
  };
  refused([](std::uint32_t rank, Launch& launch) { launch.rank = rank == 2 ? 1 : rank; },
          "two processes are rank 1: process ");
  refused([](std::uint32_t rank, Launch& launch) { launch.world = rank == 1 ? 4 : 3; },
          "is one of 4 processes, rank 0 one of 3");
  refused([](std::uint32_t rank, Launch& launch) { launch.run = rank == 2 ? "other" : "job"; },
          "belongs to the run `other`, and rank 0 here to `job`");
}

TEST(ProcessGroup, MissingPeersAreNamed) {
  std::atomic<int> told{0};
  const auto started = std::chrono::steady_clock::now();
  with_ranks(
      4,
      [&](std::uint32_t rank, std::unique_ptr<ProcessGroup> group, const Failure& failure) {
        EXPECT_FALSE(group);
        told += rank < 2 && failure.message.starts_with(
                                "after `1` seconds ranks 2, 3 of `4` have not connected to port ");
      },
      [](std::uint32_t rank, Launch& launch) {
        if (rank >= 2) launch.port = 9;  // a port without a listener
      },
      1);
  EXPECT_EQ(told, 2);
  // That second is the whole wait: late processes get no extra time.
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(4));
}

TEST(ProcessGroup, RefusesWrongRendezvousAddresses) {
  Failure failure;
  Launch launch = of_rank(1, 2, 1);
  launch.host = "no-such-machine.invalid";
  EXPECT_FALSE(ProcessGroup::join(launch, {.seconds = 20}, failure));
  EXPECT_NE(failure.message.find("does not reach rank 0 at `no-such-machine.invalid:1`"),
            std::string::npos)
      << failure.message;
  // Another program listens on the port.
  Listeners listeners;
  std::string reason;
  ASSERT_TRUE(listeners.open("127.0.0.1", 0, reason)) << reason;
  std::thread stranger([&] {
    int made = -1;
    while ((made = accept(listeners.sockets()[0], nullptr, nullptr)) < 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_GT(write(made, "HTTP/1.1 400 Bad Request\r\n\r\n", 28), 0);
    close(made);
  });
  EXPECT_FALSE(ProcessGroup::join(of_rank(1, 2, listeners.port()), {.seconds = 20}, failure));
  EXPECT_NE(failure.message.find("is not rank 0 of this run"), std::string::npos)
      << failure.message;
  stranger.join();
  const auto refused = [&](const std::string& host, std::uint16_t port,
                           const std::string& message) {
    Launch first = of_rank(0, 2, port);
    first.host = host;
    EXPECT_FALSE(
        ProcessGroup::join(first, {.seconds = 20, .token = std::string(40, 't')}, failure));
    EXPECT_EQ(failure.message, "rank 0 cannot listen at `" + host + "` on port `" +
                                   std::to_string(port) + "`: " + message);
  };
  refused("127.0.0.1", listeners.port(), "another process has it");
  refused("192.0.2.1", free_port(), "that is no address of this machine");
}

/// Another address of the machine does not lead to rank 0.
TEST(ProcessGroup, RankZeroListensAtItsAddressAlone) {
  Listeners listeners;
  std::string reason;
  bool again = true;
  ASSERT_TRUE(listeners.open("127.0.0.1", 0, reason)) << reason;
  EXPECT_TRUE(listeners.loopback());
  const int reached = connect_to("127.0.0.1", listeners.port(), reason, again);
  EXPECT_GE(reached, 0) << reason;
  close(reached);
  EXPECT_LT(connect_to("127.0.0.2", listeners.port(), reason, again), 0);
  EXPECT_EQ(reason, "connection refused");
}

}  // namespace
}  // namespace piper::runtime
