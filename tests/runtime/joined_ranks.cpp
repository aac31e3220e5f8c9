#include "tests/runtime/joined_ranks.h"

#include <thread>
#include <vector>

#include "runtime/processes/sockets.h"

namespace piper::runtime {

std::uint16_t free_port() {
  Listeners listeners;
  std::string reason;
  listeners.open("127.0.0.1", 0, reason);
  return listeners.port();
}

Launch of_rank(std::uint32_t rank, std::uint32_t world, std::uint16_t port) {
  return {.rank = rank, .world = world, .local_rank = rank, .host = "127.0.0.1", .port = port};
}

void with_ranks(std::uint32_t world,
                const std::function<void(std::uint32_t rank, std::unique_ptr<ProcessGroup> group,
                                         const Failure& failure)>& use,
                const std::function<void(std::uint32_t rank, Launch& launch)>& change,
                double seconds, const std::function<void(const Failure& notice)>& on_notice,
                const Heartbeats& heartbeats) {
  const std::uint16_t port = free_port();
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      Launch launch = of_rank(rank, world, port);
      if (change) change(rank, launch);
      Failure failure;
      auto group = ProcessGroup::join(
          launch, {.seconds = seconds, .heartbeats = heartbeats, .on_notice = on_notice}, failure);
      use(rank, std::move(group), failure);
    });
  }
  for (std::thread& each : threads) each.join();
}

}  // namespace piper::runtime
