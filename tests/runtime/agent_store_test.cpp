// torchrun's store: LibTorch's own server, as an agent has it, and the plugin as its client.
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <thread>

#include "runtime/processes/agent_store.h"

namespace piper::runtime {
namespace {

TEST(AgentStore, ProcessesMeetWhereTheStoreSays) {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  const auto agent = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  std::optional<std::string> met[2];
  std::vector<std::thread> processes;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    processes.emplace_back([&, rank] {
      Launch launch{.rank = rank,
                    .world = 2,
                    .local_rank = rank,
                    .host = "127.0.0.1",
                    .port = agent->getPort(),
                    .run = "job/1",
                    .agent_store = true};
      Failure failure;
      const GroupOptions of_group{.seconds = 20, .agent_store = open_agent_store({}, 20, failure)};
      ASSERT_TRUE(of_group.agent_store.set) << failure.message;
      const auto group = ProcessGroup::join(launch, of_group, failure);
      ASSERT_TRUE(group) << failure.message;
      group->set(std::to_string(rank), "said by " + std::to_string(rank));
      met[rank] = group->get(std::to_string(1 - rank));
      group->leave();
    });
  }
  for (std::thread& each : processes) each.join();
  EXPECT_EQ(met[0], "said by 1");
  EXPECT_EQ(met[1], "said by 0");
  // The keys of a run are its own: they contain the run and its attempt.
  EXPECT_TRUE(agent->check({"piper/job/1/address"}));
}

TEST(AgentStore, NobodyThere) {
  Failure failure;
  const AgentStore store = open_agent_store({}, 1, failure);
  ASSERT_TRUE(store.set) << failure.message;
  const auto told = store.set({.host = "127.0.0.1", .port = 9}, "key", "value");
  ASSERT_TRUE(told);
  EXPECT_EQ(told->code, kProcessesApart);
  EXPECT_NE(told->message.find("torchrun's store at `127.0.0.1:9` does not answer"),
            std::string::npos)
      << told->message;
  Options elsewhere;
  elsewhere.plugin_folder = "/dev/null";
  EXPECT_FALSE(open_agent_store(elsewhere, 1, failure).set);
  EXPECT_EQ(failure.code, kPluginUnavailable);
}

}  // namespace
}  // namespace piper::runtime
