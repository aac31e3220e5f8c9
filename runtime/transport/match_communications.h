#pragma once
// Matches communications: the k-th communication on a communicator at each of its members is one
// matched communication. Done for all ranks of a job before the first step, with both ends
// compared.
//
// Guarantee: the members run the same communication, in sizes and types too, or there is a failure.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/failure.h"
#include "runtime/phase.h"
#include "runtime/transport/transport.h"

namespace piper::runtime {

struct CommMember {
  std::size_t rank = 0;  // its position among the ranks of the job
  std::uint32_t stream = 0, action = 0;
  Operation operation;  // without arena
};

struct MatchedComms {
  // Members in the order of the communicator.
  std::vector<std::vector<CommMember>> list;
  // By rank, stream, position: the matched communication.
  std::vector<std::vector<std::vector<std::uint32_t>>> at;
};

std::optional<Failure> match_communications(std::span<const PiperJobRank> ranks, Phase phase,
                                            MatchedComms& matched);

}  // namespace piper::runtime
