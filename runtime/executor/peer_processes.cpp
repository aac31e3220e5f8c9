#include "runtime/executor/peer_processes.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "runtime/executor/packed.h"
#include "runtime/executor/parameters.h"
#include "runtime/trace/align_times.h"
#include "runtime/trace/flight.h"
#include "runtime/transport/match_communications.h"

namespace piper::runtime {

namespace {

constexpr std::uint64_t kMaxTime = std::uint64_t{1} << 53;  // nanoseconds: a hundred days

constexpr std::size_t kMaxRanksNamed = 16;  // in a message

/// A rank with its process and its position, as far as they are known.
struct Seen {
  std::string process;
  std::optional<RankPosition> at;
};

bool is_later(const RankPosition& one, const RankPosition& other) {
  return std::pair(one.step, one.ended) > std::pair(other.step, other.ended);
}

}  // namespace

std::vector<RankPosition> PeerProcesses::own_positions(const Device& device) const {
  std::vector<RankPosition> positions;
  for (std::uint32_t r = 0; r < ranks_.count; ++r) {
    if (const auto at = position_of(whole_job_.ranks[ranks_.first + r], device.flight(r)))
      positions.push_back(*at);
  }
  return positions;
}

void PeerProcesses::watch(const Device& device) {
  watched_->device = &device;
  group_.report_positions([this, watched = watched_] {
    const std::lock_guard lock(watched->mutex);
    return watched->device != nullptr ? own_positions(*watched->device)
                                      : std::vector<RankPosition>();
  });
}

void PeerProcesses::stop_watching() {
  const std::lock_guard lock(watched_->mutex);
  watched_->device = nullptr;
}

std::vector<Note> PeerProcesses::last_actions(const Device& device) const {
  std::vector<std::uint32_t> order;  // of the ranks in the message
  std::map<std::uint32_t, Seen> seen;
  std::vector<ProcessState> states = group_.last_states();
  states.push_back({process(), this_process(), own_positions(device)});
  for (const ProcessState& state : states) {
    const ProcessRanks ranks = ranks_of(state.process, group_.launch().world, whole_job_.world);
    for (std::uint32_t rank = ranks.first; rank < ranks.first + ranks.count; ++rank) {
      if (!seen.contains(rank)) order.push_back(rank);
      seen[rank].process = state.name;
    }
    for (const RankPosition& at : state.positions) {
      if (!ranks.has(at.rank)) continue;
      Seen& rank = seen[at.rank];
      if (!rank.at || is_later(at, *rank.at)) rank.at = at;
    }
  }
  for (std::uint32_t rank = 0; rank < whole_job_.world; ++rank) {
    if (!seen.contains(rank)) order.push_back(rank);
  }
  std::vector<Note> notes;
  for (const std::uint32_t rank : order) {
    if (notes.size() == kMaxRanksNamed) {
      notes.push_back({"and " + std::to_string(order.size() - kMaxRanksNamed) + " more ranks", {}});
      break;
    }
    Seen& known = seen[rank];
    const PiperJobRank& tables = whole_job_.ranks[rank];
    const auto file =
        out_folder_.empty() ? std::nullopt : read_flight(flight_path(out_folder_, rank));
    const auto recorded = file ? position_of(tables, *file) : std::nullopt;
    if (recorded && (!known.at || is_later(*recorded, *known.at))) known.at = recorded;
    notes.push_back(
        {"rank " + std::to_string(rank) +
             (known.process.empty() ? "" : " (" + known.process + ")") + ": " +
             (known.at ? position_text(tables, *known.at) : "its last action is not known here"),
         {}});
  }
  return notes;
}

std::optional<Failure> PeerProcesses::agree(const Device& device, const Facts& facts) {
  if (auto differs = group_.agree(facts)) return differs;
  for (const Phase phase : {Phase::training, Phase::evaluation}) {
    if (in_phase(whole_job_.ranks[0], phase).program == nullptr) continue;
    if (auto failure = numbers_.agree(phase, device.reported(phase))) return failure;
  }
  return std::nullopt;
}

std::optional<Failure> PeerProcesses::collect(std::vector<RecordedRank>& recorded) {
  std::vector<RecordedRank> all = std::exchange(recorded, {});
  if (process() != 0) {
    for (const RecordedRank& rank : all) group_.send_bytes(Channel::recorded, packed(rank.actions));
    return std::nullopt;
  }
  for (const PiperJobRank& rank : ranks().subspan(ranks_.count)) {
    RecordedRank& made = all.emplace_back(RecordedRank{rank.rank, {}});
    if (!receive_recorded(rank, made.actions)) return group_.failure();
  }
  MatchedComms matched;
  if (auto failure = match_communications(ranks(), Phase::training, matched)) return failure;
  align_times(matched, all);
  recorded = std::move(all);
  return std::nullopt;
}

/// False after a failure of the run.
bool PeerProcesses::receive_recorded(const PiperJobRank& rank,
                                     std::vector<RecordedAction>& actions) {
  const PiperProgram& program = *rank.program;
  std::uint64_t most = 0;
  for (std::uint32_t s = 0; s < program.num_streams; ++s) most += program.streams[s].num_actions;
  const std::uint32_t from = process_of_rank_[rank.rank];
  const auto bytes = group_.receive_bytes(Channel::recorded, from, most * sizeof(RecordedAction));
  if (!bytes) return false;
  actions = unpacked<RecordedAction>(*bytes);
  const auto fits = [&](const RecordedAction& action) {
    return action.stream < program.num_streams &&
           action.position < program.streams[action.stream].num_actions &&
           action.begin_ns <= action.end_ns &&
           std::max({action.end_ns, action.product_ns, action.attention_ns, action.least_ns}) <=
               kMaxTime;
  };
  if (actions.size() * sizeof(RecordedAction) == bytes->size() &&
      std::all_of(actions.begin(), actions.end(), fits))
    return true;
  group_.fail_message(from, "times of actions that its program does not have");
  return false;
}

/// All processes go through the same pieces in the same order: the holder of a piece sends it, rank
/// 0 receives it, and the others skip it.
std::optional<ParameterValues> PeerProcesses::read_parameter(Device& device, std::string_view name,
                                                             ParamTensor part) {
  std::string bytes;
  const auto piece = [&](std::size_t of, bool on_host, std::uint64_t offset,
                         std::uint64_t count) -> const unsigned char* {
    const auto rank = static_cast<std::uint32_t>(of);
    if (ranks_.has(rank)) {
      const unsigned char* const bytes_here =
          device.read(rank - ranks_.first, on_host, offset, count);
      if (bytes_here == nullptr) group_.fail(*device.failure());
      if (bytes_here != nullptr && process() != 0)
        group_.send_bytes(Channel::parameters, {reinterpret_cast<const char*>(bytes_here), count});
      return bytes_here;
    }
    bytes.assign(count, 0);
    if (process() == 0) {
      auto found = group_.receive_bytes(Channel::parameters, process_of_rank_[rank], count);
      if (!found || found->size() != count) return nullptr;
      bytes = std::move(*found);
    }
    return reinterpret_cast<const unsigned char*>(bytes.data());
  };
  auto values = collect_parameter(ranks(), name, part, piece);
  return process() == 0 ? std::move(values) : std::nullopt;
}

}  // namespace piper::runtime
