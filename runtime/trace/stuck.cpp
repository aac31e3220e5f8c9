#include "runtime/trace/stuck.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "runtime/transport/transport.h"

namespace piper::runtime {
namespace {

// A stream of a rank that has not moved; `rank` is a position in the list.
struct Spot {
  std::size_t rank = 0;
  std::uint32_t stream = 0;
  friend bool operator==(const Spot&, const Spot&) = default;
};

ActionLocation place_at(const StuckRank& rank, std::uint32_t stream, std::uint64_t count) {
  const PiperStream& table = rank.program->streams[stream];
  if (table.num_actions == 0 || count == 0)
    return {.action = "stream `" + std::string(table.name ? table.name : "") + "`"};
  const std::uint64_t position = (count - 1) % table.num_actions;
  const std::uint32_t action = table.comm        ? table.comm[position].action
                               : table.action_of ? table.action_of[position]
                                                 : rank.program->num_actions;
  return location_of(*rank.program, action);
}

class Story {
 public:
  explicit Story(const std::vector<StuckRank>& ranks) : ranks_(ranks) {}

  Failure explain() {
    Failure failure{.code = kStalled, .message = "nothing moves any more", .hint = {}};
    std::vector<Spot> chain;
    for (Spot spot = first(); std::find(chain.begin(), chain.end(), spot) == chain.end();) {
      chain.push_back(spot);
      const std::optional<Spot> next = follow(spot, failure.notes);
      if (!next) break;
      spot = *next;
    }
    const Spot last = chain.back();
    const StuckRank& rank = ranks_[last.rank];
    const std::uint64_t count = present(last);
    failure.rank = rank.rank;
    failure.place = place_at(rank, last.stream, count);
    const std::uint64_t actions = rank.program->streams[last.stream].num_actions;
    failure.step = actions ? (count - 1) / actions : 0;
    return failure;
  }

 private:
  // The action of a stream that is in flight, or the next one: counted from 1.
  std::uint64_t present(Spot spot) const {
    const PiperFlight& flight = ranks_[spot.rank].flight;
    return std::max<std::uint64_t>(flight.started[spot.stream], flight.ended[spot.stream] + 1);
  }
  bool running(Spot spot) const {
    const PiperFlight& flight = ranks_[spot.rank].flight;
    return flight.started[spot.stream] > flight.ended[spot.stream];
  }

  // The compute stream with the least progress, for which the others are likely to wait.
  Spot first() const {
    Spot best;
    for (std::size_t r = 1; r < ranks_.size(); ++r) {
      if (ranks_[r].flight.step < ranks_[best.rank].flight.step) best.rank = r;
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (ranks_[r].flight.waiting && ranks_[r].flight.step == ranks_[best.rank].flight.step)
        return {r, 0};
    }
    return best;
  }

  std::string who(Spot spot) const {
    return "rank " + std::to_string(ranks_[spot.rank].rank) + ": `" +
           place_at(ranks_[spot.rank], spot.stream, present(spot)).action + "`";
  }

  void note(std::vector<Note>& notes, Spot spot, const std::string& text) const {
    notes.push_back(
        {who(spot) + ' ' + text, place_at(ranks_[spot.rank], spot.stream, present(spot))});
  }

  // The stream for which the present action of `spot` waits; adds a note. Empty if it waits for
  // none.
  std::optional<Spot> follow(Spot spot, std::vector<Note>& notes) const {
    const StuckRank& rank = ranks_[spot.rank];
    if (spot.stream == 0) {
      if (!rank.flight.waiting) {
        note(notes, spot, running(spot) ? "is running" : "has not begun");
        return std::nullopt;
      }
      const std::uint32_t stream = rank.flight.waiting_stream;
      const std::uint64_t target = rank.flight.waiting_target;
      if (rank.flight.ended[stream] < target) return wait_on(spot, stream, target, notes);
      // The record of a process that was stopped.
      note(notes, spot,
           "did not go on after the end of `" + place_at(rank, stream, target).action + "`");
      return std::nullopt;
    }
    const PiperStream& table = rank.program->streams[spot.stream];
    const std::uint64_t count = present(spot);
    const PiperCommAction& action = table.comm[(count - 1) % table.num_actions];
    if (running(spot)) return peer_of(spot, action, notes);
    const std::uint64_t step = (count - 1) / table.num_actions;
    for (std::uint32_t i = 0; i < action.num_waits; ++i) {
      const PiperWait& wait = rank.program->waits[action.first_wait + i];
      if (step < wait.distance) continue;
      const std::uint64_t target =
          (step - wait.distance) * rank.program->streams[wait.stream].num_actions + wait.position +
          1;
      if (rank.flight.ended[wait.stream] < target) return wait_on(spot, wait.stream, target, notes);
    }
    note(notes, spot, "waits for the step to begin");
    return Spot{spot.rank, 0};
  }

  std::optional<Spot> wait_on(Spot spot, std::uint32_t stream, std::uint64_t target,
                              std::vector<Note>& notes) const {
    note(notes, spot,
         "waits for the end of `" + place_at(ranks_[spot.rank], stream, target).action + "`");
    return Spot{spot.rank, stream};
  }

  // A started communication waits for the first member whose count on this communicator is behind.
  std::optional<Spot> peer_of(Spot spot, const PiperCommAction& action,
                              std::vector<Note>& notes) const {
    const StuckRank& rank = ranks_[spot.rank];
    const PiperCommunicator& communicator = rank.communicators[action.communicator];
    for (std::uint32_t m = 0; m < communicator.num_members; ++m) {
      if (m == communicator.self) continue;
      const auto peer = std::find_if(ranks_.begin(), ranks_.end(), [&](const StuckRank& r) {
        return r.rank == communicator.members[m];
      });
      if (peer == ranks_.end()) {
        note(notes, spot,
             "waits for rank `" + std::to_string(communicator.members[m]) +
                 "`, which left no record");
        return std::nullopt;
      }
      const std::optional<Spot> there = user_of(static_cast<std::size_t>(peer - ranks_.begin()),
                                                communicator.id, action.identity);
      if (!there) continue;
      note(notes, spot,
           "waits for rank `" + std::to_string(peer->rank) + "` to start its `" +
               std::string(comm_op_name(peer_op(*there))) + "`");
      return there;
    }
    note(notes, spot, "is matched with its peers and does not end");
    return std::nullopt;
  }

  std::uint32_t peer_op(Spot spot) const {
    const PiperStream& table = ranks_[spot.rank].program->streams[spot.stream];
    return table.comm[(present(spot) - 1) % table.num_actions].op;
  }

  // The stream of a rank that uses a communicator, unless the operation with this identity is in
  // flight there.
  std::optional<Spot> user_of(std::size_t r, std::uint32_t communicator,
                              std::uint32_t identity) const {
    const StuckRank& rank = ranks_[r];
    for (std::uint32_t s = 1; s < rank.program->num_streams; ++s) {
      const PiperStream& table = rank.program->streams[s];
      const bool uses = std::any_of(
          table.comm, table.comm + table.num_actions, [&](const PiperCommAction& action) {
            return rank.communicators[action.communicator].id == communicator;
          });
      if (!uses) continue;
      const Spot spot{r, s};
      const PiperCommAction& present_action = table.comm[(present(spot) - 1) % table.num_actions];
      if (running(spot) && rank.communicators[present_action.communicator].id == communicator &&
          present_action.identity == identity) {
        return std::nullopt;
      }
      return spot;
    }
    return std::nullopt;
  }

  const std::vector<StuckRank>& ranks_;
};

}  // namespace

// Copies word by word, because other threads go on writing: each word is one they wrote.
__attribute__((no_sanitize("thread"))) PiperFlight snapshot_of(const PiperFlight& flight) {
  constexpr std::size_t kWords = sizeof(PiperFlight) / sizeof(std::uint64_t);
  static_assert(sizeof(PiperFlight) % sizeof(std::uint64_t) == 0);
  const volatile std::uint64_t* from = reinterpret_cast<const volatile std::uint64_t*>(&flight);
  std::uint64_t words[kWords];
  for (std::size_t i = 0; i < kWords; ++i) words[i] = from[i];
  PiperFlight copy;
  std::memcpy(&copy, words, sizeof(copy));
  return copy;
}

Failure explain_stall(const std::vector<StuckRank>& ranks) { return Story(ranks).explain(); }

}  // namespace piper::runtime
