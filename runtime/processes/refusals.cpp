#include "runtime/processes/refusals.h"

#include <cstdio>

#include "runtime/processes/peer_text.h"

namespace piper::runtime {

namespace {

Failure apart(std::string message, std::string hint) {
  return {.code = kProcessesApart, .message = std::move(message), .hint = std::move(hint)};
}

std::string shown(const Launch& launch, const Guest& guest) {
  return process_text(launch, guest.rank) + " (" + guest.process + ")";
}

}  // namespace

Failure unproven() {
  return apart("rank 0 did not accept the proof of this process: it has another token, or none",
               "all processes of a run need one token, in `PIPER_RUN_TOKEN` or "
               "`PIPER_RUN_TOKEN_FILE`");
}

std::optional<Failure> mismatch(const Launch& launch, const Guest& guest, const Hello& hello) {
  if (hello.run != launch.run) {
    return apart("`" + guest.process + "` belongs to the run `" + peer_text(hello.run) +
                     "`, and rank 0 here to `" + peer_text(launch.run) + "`",
                 "two runs share `MASTER_PORT`: give one of them another");
  }
  if (hello.world != launch.world) {
    return apart(shown(launch, guest) + " is one of " + std::to_string(hello.world) +
                     " processes, rank 0 one of " + std::to_string(launch.world),
                 "the number of processes is the same for all of a run");
  }
  if (hello.rank >= launch.world)
    return apart(shown(launch, guest) + " is beyond the " + std::to_string(launch.world) +
                     " processes of the run",
                 "ranks count from 0");
  return std::nullopt;
}

Failure two_with_one_rank(const Guest& first, const Guest& second) {
  return apart(
      "two processes are rank " + std::to_string(second.rank) + ": " + first.description() +
          " and " + second.description(),
      "each process of a run has a rank of its own; two runs at once on one machine need ports of their own");
}

Failure joins_late(const Launch& launch, const Guest& guest) {
  return apart(shown(launch, guest) + " joins a run that has begun",
               "a process that ended cannot join again: start the run anew");
}

Failure broken_off(const Launch& launch, const Guest& guest, const std::string& cause) {
  return {
      .code = kBadMessage,
      .message = process_text(launch, guest.rank) + " (" + guest.description() +
                 ") is not understood: " + cause,
      .hint =
          "all processes of a run need one `piper`; a program that is none of them may have come with that rank"};
}

std::string silence_text(double seconds) {
  char number[32];
  std::snprintf(number, sizeof number, "%g", seconds);
  return std::string("nothing has come from it for ") + number +
         (seconds == 1 ? " second" : " seconds");
}

std::string silence_hint() {
  return "it is stopped, its machine is down or overloaded, or the network to it is gone; PIPER_SILENCE_SECONDS sets the limit";
}

Failure lost(const Launch& launch, const Guest& guest, std::optional<double> silent_seconds) {
  if (silent_seconds)
    return {.code = kProcessLost,
            .message = shown(launch, guest) + " does not answer: " + silence_text(*silent_seconds),
            .hint = silence_hint()};
  return {.code = kProcessLost,
          .message = shown(launch, guest) + " is gone: its connection was closed",
          .hint = "its own output, or the log of its machine, says why"};
}

Failure not_come(const Launch& launch, double seconds, const std::vector<bool>& here,
                 const Listeners& listeners, std::vector<Note> notes) {
  std::string missing;
  std::size_t count = 0;
  for (std::uint32_t rank = 0; rank < launch.world; ++rank) {
    if (here[rank] || ++count > kMaxNamed) continue;
    missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
  }
  if (count > kMaxNamed) missing += " and " + std::to_string(count - kMaxNamed) + " more";
  const bool one_rank = launch.ranks == 0 || launch.ranks == launch.world;  // of each process
  const char* const word =
      count == 1 ? (one_rank ? "rank " : "process ") : (one_rank ? "ranks " : "processes ");
  Failure failure{
      .code = kProcessesApart,
      .message = "after `" + std::to_string(static_cast<long long>(seconds)) + "` seconds " + word +
                 missing + " of `" + std::to_string(launch.world) + "` " +
                 (count == 1 ? "has" : "have") + " not connected to port `" +
                 std::to_string(listeners.port()) + "`",
      .hint =
          "look at the output of the missing processes; PIPER_MEET_SECONDS sets how long all wait",
      .notes = std::move(notes)};
  if (listeners.loopback())
    failure.notes.push_back(
        {"rank 0 listens at `" + launch.host + "`, which only its own machine can reach", {}});
  return failure;
}

}  // namespace piper::runtime
