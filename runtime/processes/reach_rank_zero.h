#pragma once
// Finds the address of rank 0 and connects to it. Internal to the group of processes.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/processes/process_group.h"
#include "runtime/processes/rendezvous.h"

namespace piper::runtime {

/// kTokenMissing if other machines can reach rank 0 and there is no token: then rank 0 could not
/// distinguish a stranger from a process of the run.
std::optional<Failure> missing_token(const Launch& launch, const GroupOptions& options);

/// The address where rank 0 listens. With an agent's store rank 0 has a port of its own, so if all
/// processes are on one machine this is the loopback address, which no other machine reaches.
std::string meeting_host(const Launch& launch);

/// The port of rank 0: that of the launch or, if an agent's store uses that one, a port that rank 0
/// publishes in the store. `rendezvous`: that of rank 0 in its own process, null in the others.
/// Empty with the reason in `failure`.
std::optional<std::uint16_t> find_port(const Launch& launch, const GroupOptions& options,
                                       const Rendezvous* rendezvous, Failure& failure);

/// A socket to rank 0, or -1: with the reason in `failure`, or with `stopped`.
int reach_rank_zero(const Launch& launch, const GroupOptions& options,
                    std::chrono::steady_clock::time_point until, Failure& failure, bool& stopped);

}  // namespace piper::runtime
