#pragma once
// The way to rank 0, before there is a connection. Internal to the group of processes.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/processes/process_group.h"
#include "runtime/processes/rendezvous.h"

namespace piper::runtime {

/// kTokenMissing if the processes meet where other machines reach them: without a token they could
/// not tell a stranger from one of them.
std::optional<Failure> missing_token(const Launch& launch, const GroupOptions& options);

/// The machine where the processes of a launch meet. With an agent's store at its address, rank 0
/// needs a port of its own anyway, and processes of one machine use one that only it reaches.
std::string meeting_host(const Launch& launch);

/// The port of rank 0: that of the launch or, if an agent's store uses it, the one that rank 0 has
/// published in the store. `rendezvous`: of this process if it is rank 0, else null. Empty with
/// the reason in `failure`.
std::optional<std::uint16_t> find_port(const Launch& launch, const GroupOptions& options,
                                       const Rendezvous* rendezvous, Failure& failure);

/// A socket to rank 0, or -1: with a failure, or without one when stopped.
int reach_rank_zero(const Launch& launch, const GroupOptions& options,
                    std::chrono::steady_clock::time_point until, Failure& failure, bool& stopped);

}  // namespace piper::runtime
