#pragma once
// Processes that a test forks, one per rank.

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "tests/cuda/host_machine.h"

namespace piper::test {

/// Runs `body` in `count` processes at once; results are passed in files. A process that is killed
/// has code -SIGNAL, one that takes too long -SIGKILL and fails the test.
std::vector<Ended> run_forked(std::uint32_t count,
                              const std::function<Ended(std::uint32_t rank)>& body,
                              std::chrono::seconds limit = std::chrono::seconds(120));

/// A free port.
std::uint16_t free_port();

/// The variables that a launcher sets for a rank.
std::map<std::string, std::string> launched(std::uint32_t rank, std::uint32_t world,
                                            std::uint16_t port);

}  // namespace piper::test
