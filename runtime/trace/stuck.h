#pragma once
// Explains a stall: follows, from the flight records of all ranks and their programs, which action
// waits for which. Works on a live run and on the files that a dead one left.
//
//   Failure failure = explain_stall(ranks);
//   // "nothing moved": rank 0, `B.stage0.mb0` (gpt.pipe:12) waits for `recv.B.stage0.mb0`; which waits for rank 1 to start `send...`; ...

#include <vector>

#include "runtime/abi.h"
#include "runtime/failure.h"

namespace piper::runtime {

struct StuckRank {
  const PiperProgram* program = nullptr;
  const PiperCommunicator* communicators = nullptr;
  std::uint32_t rank = 0;
  PiperFlight flight;
};

/// A copy of a record that other threads are writing.
PiperFlight snapshot_of(const PiperFlight& flight);

/// A failure with code kStalled: its location is the action that no other holds up, or one of a
/// cycle; one note per link of the chain. `step` counts from the start of the program.
Failure explain_stall(const std::vector<StuckRank>& ranks);

}  // namespace piper::runtime
