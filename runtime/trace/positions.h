#pragma once
// The position of a rank in its program, from its flight record: small enough for a heartbeat.
//
//   const std::optional<RankPosition> at = position_of(job.ranks[3], flight);
//   position_text(job.ranks[3], *at);   // "step 12, `F.stage1.mb3` ended last, `B.stage1.mb0` was running"

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/abi.h"
#include "runtime/phase.h"

namespace piper::runtime {

struct RankPosition {
  std::uint32_t rank = 0;
  Phase phase = Phase::training;
  std::uint64_t step = 0;                // of training, or of the evaluation; counted from 0
  std::uint64_t started = 0, ended = 0;  // actions of the compute stream, since the run began
};

/// Empty if the record is of neither program of the rank, or damaged. Other threads may be writing the record.
std::optional<RankPosition> position_of(const PiperJobRank& rank, const PiperFlight& flight);
/// The last action of the compute stream that has ended, and the one that was running; empty if
/// there was none.
struct PositionNames {
  std::string last = {}, running = {};
};
PositionNames names_at(const PiperJobRank& rank, const RankPosition& at);
/// A position whose numbers do not fit the program gives a text without names of actions.
std::string position_text(const PiperJobRank& rank, const RankPosition& at);

}  // namespace piper::runtime
