#include "tests/cuda/forked.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "runtime/processes/sockets.h"
#include "tests/support/golden.h"

namespace piper::test {

std::vector<Ended> run_forked(std::uint32_t count,
                              const std::function<Ended(std::uint32_t rank)>& body,
                              std::chrono::seconds limit) {
  const TemporaryFolder folder;
  const auto file = [&](const char* what, std::uint32_t rank) {
    return (folder.path() / (std::string(what) + std::to_string(rank))).string();
  };
  std::vector<pid_t> children;
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      const Ended ended = body(rank);
      std::ofstream(file("out", rank)) << ended.out;
      std::ofstream(file("err", rank)) << ended.err;
      _exit(ended.code);
    }
    children.push_back(child);
  }
  const auto until = std::chrono::steady_clock::now() + limit;
  std::vector<Ended> all(count);
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    int status = 0;
    while (waitpid(children[rank], &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() >= until) {
        ADD_FAILURE() << "rank " << rank << " has not ended";
        kill(children[rank], SIGKILL);
        waitpid(children[rank], &status, 0);
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    all[rank] = {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status),
                 read_text(file("out", rank)).value_or(""),
                 read_text(file("err", rank)).value_or("")};
  }
  return all;
}

std::uint16_t free_port() {
  runtime::Listeners listeners;
  std::string reason;
  listeners.open("127.0.0.1", 0, reason);
  return listeners.port();
}

std::map<std::string, std::string> launched(std::uint32_t rank, std::uint32_t world,
                                            std::uint16_t port) {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(world)},
          {"LOCAL_RANK", std::to_string(rank)},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(port)}};
}

}  // namespace piper::test
