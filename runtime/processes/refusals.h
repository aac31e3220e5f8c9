#pragma once
// The failures that the rendezvous finds, as messages. Internal to the rendezvous.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/failure.h"
#include "runtime/processes/guest.h"
#include "runtime/processes/launch.h"

namespace piper::runtime {

inline constexpr std::size_t kMaxNamed = 8;  // ranks and refused processes that a message names

/// The refusal of a wrong proof. Says nothing about the run, because its reader may be a stranger.
Failure unproven();
/// The reason why a process does not belong to this run; empty if it does.
std::optional<Failure> mismatch(const Launch& launch, const Guest& guest, const Hello& hello);
Failure two_with_one_rank(const Guest& first, const Guest& second);
Failure joins_late(const Launch& launch, const Guest& guest);
Failure broken_off(const Launch& launch, const Guest& guest, const std::string& cause);
/// `silent_seconds`: empty if its connection was closed.
Failure lost(const Launch& launch, const Guest& guest, std::optional<double> silent_seconds);
/// `here`: by rank, whether it has joined. `notes`: processes that were refused.
Failure not_come(const Launch& launch, double seconds, const std::vector<bool>& here,
                 const Listeners& listeners, std::vector<Note> notes);

/// `nothing has come from it for 10 seconds`, `0.5 seconds`.
std::string silence_text(double seconds);
/// The hint for a process that does not answer.
std::string silence_hint();

}  // namespace piper::runtime
