#pragma once
// The two programs of a rank.

#include <cstdint>

#include "runtime/abi.h"

namespace piper::runtime {

/// Which of the two programs of a rank runs. Both share the state part of the arena.
enum class Phase : std::uint8_t { training, evaluation };

/// The tables of a rank in a phase, and nothing else of the rank; without a program if the phase
/// has none.
inline PiperRank in_phase(const PiperJobRank& rank, Phase phase) {
  PiperRank rank_state{};
  const bool training = phase == Phase::training;
  rank_state.program = training ? rank.program : rank.evaluation;
  rank_state.communicators = training ? rank.communicators : rank.evaluation_communicators;
  rank_state.intervals = training ? rank.intervals : rank.evaluation_intervals;
  rank_state.rank = rank.rank;
  return rank_state;
}

/// The `data` line of a phase.
inline const PiperSourceLocation& data_line(const PiperJob& job, Phase phase) {
  return (phase == Phase::training ? job.data : job.held_out).where.place;
}

}  // namespace piper::runtime
