#pragma once
// The transport between the ranks of several processes. Communicators within this process are
// those of the local transport; all others move over UCX.
//
// A member that starts an operation sends an offer to the others: the operation, its identity,
// sizes and types, and the parts to which it adds something. Data moves only to members whose offer
// has arrived, so an operation ends only when all members have started it: nothing is buffered
// beyond the operation in flight, and a hang that the proof of progress excludes is not hidden. In
// a pair the receiver alone sends one.
//
// Reductions: each member has its shard of every part (piper_shard), receives the terms of the
// others for it slice by slice, adds them in member order, and sends the sums back (all_reduce). So
// the bits are those of the local transport, and a member needs memory for two slices of each other
// member, whatever the sizes.
//
//   auto transport = open_process_transport(group, process_of_rank, failure);
//   make_cpu_device({.transport = std::move(transport)});

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/failure.h"
#include "runtime/processes/process_group.h"
#include "runtime/transport/transport.h"

namespace piper::runtime {

/// Exchanges the addresses of the workers through the group: called by all processes, which wait
/// for each other. `process_of_rank`: by rank of the run. Null with the reason in `failure`.
std::unique_ptr<Transport> open_process_transport(ProcessGroup& group,
                                                  std::vector<std::uint32_t> process_of_rank,
                                                  Failure& failure);

}  // namespace piper::runtime
