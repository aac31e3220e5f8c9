#include "runtime/trace/positions.h"

#include <cstdio>
#include <cstring>

#include "runtime/failure.h"
#include "runtime/trace/stuck.h"

namespace piper::runtime {

namespace {

/// A record has as much of the hash as fits into it. One whose numbers do not fit the program is
/// damaged.
bool is_of(const PiperProgram* program, const PiperFlight& flight) {
  if (program == nullptr || flight.num_streams != program->num_streams) return false;
  if (flight.waiting != 0 && (flight.waiting_stream >= program->num_streams ||
                              program->streams[flight.waiting_stream].num_actions == 0))
    return false;
  char hash[sizeof flight.hash];
  std::snprintf(hash, sizeof hash, "%s", program->hash != nullptr ? program->hash : "");
  return std::strncmp(hash, flight.hash, sizeof hash) == 0;
}

/// The name of the action that is number `count`, from 1, of the compute stream.
std::string name_at(const PiperProgram& program, std::uint64_t count) {
  const PiperStream& table = program.streams[0];
  if (program.num_streams == 0 || table.num_actions == 0 || count == 0 ||
      table.action_of == nullptr)
    return {};
  return location_of(program, table.action_of[(count - 1) % table.num_actions]).action;
}

}  // namespace

std::optional<RankPosition> position_of(const PiperJobRank& rank, const PiperFlight& flight) {
  const PiperFlight copy = snapshot_of(flight);
  RankPosition at{.rank = rank.rank, .step = copy.step};
  if (is_of(rank.program, copy)) {
    at.phase = Phase::training;
  } else if (is_of(rank.evaluation, copy)) {
    at.phase = Phase::evaluation;
  } else {
    return std::nullopt;
  }
  at.started = copy.started[0];
  at.ended = copy.ended[0];
  return at;
}

PositionNames names_at(const PiperJobRank& rank, const RankPosition& at) {
  const PiperProgram* const program = in_phase(rank, at.phase).program;
  if (program == nullptr) return {};
  return {name_at(*program, at.ended),
          at.started > at.ended ? name_at(*program, at.started) : std::string()};
}

std::string position_text(const PiperJobRank& rank, const RankPosition& at) {
  const PositionNames names = names_at(rank, at);
  return (at.phase == Phase::training ? "step " : "held-out batch ") + std::to_string(at.step + 1) +
         (names.last.empty() ? ", no action had ended" : ", `" + names.last + "` ended last") +
         (names.running.empty() ? "" : ", `" + names.running + "` was running");
}

}  // namespace piper::runtime
