#pragma once
// The processes of a run as threads of this one: each has its own group, over sockets.

#include <cstdint>
#include <functional>
#include <memory>

#include "runtime/processes/process_group.h"

namespace piper::runtime {

std::uint16_t free_port();
Launch of_rank(std::uint32_t rank, std::uint32_t world, std::uint16_t port);

/// Runs each rank in its own thread; `use` gets its group, or null with the reason.
void with_ranks(std::uint32_t world,
                const std::function<void(std::uint32_t rank, std::unique_ptr<ProcessGroup> group,
                                         const Failure& failure)>& use,
                const std::function<void(std::uint32_t rank, Launch& launch)>& change = {},
                double seconds = 20,
                const std::function<void(const Failure& notice)>& on_notice = {},
                const Heartbeats& heartbeats = {});

}  // namespace piper::runtime
