#pragma once
// The two programs of a rank.

#include <cstdint>

#include "runtime/abi.h"

namespace piper::runtime {

/// Which of the two programs of a rank runs. Both share the state part of the arena.
enum class Phase : std::uint8_t { training, evaluation };

/// The tables of a rank in a phase, and nothing else of the rank; without a program if the phase has none.
inline PiperRank in_phase(const PiperJobRank& rank, Phase phase) {
  PiperRank made{};
  const bool training = phase == Phase::training;
  made.program = training ? rank.program : rank.evaluation;
  made.communicators = training ? rank.communicators : rank.evaluation_communicators;
  made.intervals = training ? rank.intervals : rank.evaluation_intervals;
  made.rank = rank.rank;
  return made;
}

}  // namespace piper::runtime
