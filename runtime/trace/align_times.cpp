#include "runtime/trace/align_times.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace piper::runtime {

namespace {

/// Signed nanoseconds.
using Nanoseconds = std::int64_t;
constexpr Nanoseconds kUnbounded = std::numeric_limits<Nanoseconds>::max();

/// The start of rank `second` is at most this much after that of rank `first`.
using Bounds = std::map<std::pair<std::size_t, std::size_t>, Nanoseconds>;

bool gives(const CommMember& member) {
  const PiperCommAction& action = *member.operation.action;
  for (std::uint32_t part = 0; part < action.num_parts; ++part) {
    const PiperMessagePart& each = member.operation.parts[part];
    if (each.elements > 0 && (each.flags & PIPER_ZERO_FILL) == 0 &&
        contributes(member.operation, part))
      return true;
  }
  return false;
}

/// A send may end before the receive.
bool receives(const CommMember& member) { return member.operation.action->op != PIPER_SEND; }

/// A member's communication as recorded.
struct Attendance {
  std::size_t rank = 0;
  bool gives = false, receives = false;
  Nanoseconds begin = 0, end = 0;
};

/// By matched communication.
std::vector<std::vector<Attendance>> attendances(const MatchedComms& matched,
                                                 const std::vector<RecordedRank>& recorded) {
  std::vector<std::vector<Attendance>> attended(matched.list.size());
  for (std::size_t rank = 0; rank < recorded.size(); ++rank) {
    for (const RecordedAction& action : recorded[rank].actions) {
      const auto& streams = matched.at[rank];
      if (action.stream >= streams.size() || action.position >= streams[action.stream].size())
        continue;
      const std::uint32_t comm = streams[action.stream][action.position];
      const auto& members = matched.list[comm];
      const auto member = std::find_if(members.begin(), members.end(),
                                       [&](const CommMember& each) { return each.rank == rank; });
      attended[comm].push_back({rank, gives(*member), receives(*member),
                                static_cast<Nanoseconds>(action.begin_ns),
                                static_cast<Nanoseconds>(action.end_ns)});
    }
  }
  return attended;
}

/// `together`: also by the ends of communications in which all give and receive.
Bounds bounds_of(const std::vector<std::vector<Attendance>>& attended, bool together) {
  Bounds bounds;
  for (const std::vector<Attendance>& comm : attended) {
    const bool by_ends =
        together && std::all_of(comm.begin(), comm.end(),
                                [](const Attendance& each) { return each.gives && each.receives; });
    Nanoseconds shortest = kUnbounded;
    for (const Attendance& each : comm) shortest = std::min(shortest, each.end - each.begin);
    for (const Attendance& from : comm) {
      if (!from.gives) continue;
      for (const Attendance& to : comm) {
        if (to.rank == from.rank || !to.receives) continue;
        // start of to + end of to >= start of from + begin of from
        const Nanoseconds most = to.end - (by_ends ? from.end - shortest : from.begin);
        const auto [known, fresh] = bounds.try_emplace({to.rank, from.rank}, most);
        if (!fresh) known->second = std::min(known->second, most);
      }
    }
  }
  return bounds;
}

/// The maximum delay of each rank's start after that of the first; with `turned` the maximum delay
/// of the first after each. False if bounds contradict each other.
bool farthest(const Bounds& bounds, std::size_t ranks, bool turned,
              std::vector<Nanoseconds>& most) {
  most.assign(ranks, kUnbounded);
  most[0] = 0;
  bool changed = true;
  for (std::size_t round = 0; changed && round <= ranks; ++round) {
    changed = false;
    for (const auto& [pair, bound] : bounds) {
      const auto [from, to] = turned ? std::pair(pair.second, pair.first) : pair;
      if (most[from] == kUnbounded || most[from] + bound >= most[to]) continue;
      most[to] = most[from] + bound;
      changed = true;
    }
  }
  return !changed;
}

}  // namespace

void align_times(const MatchedComms& matched, std::vector<RecordedRank>& recorded) {
  const std::vector<std::vector<Attendance>> attended = attendances(matched, recorded);
  std::vector<Nanoseconds> behind, before;
  for (const bool together : {true, false}) {
    const Bounds bounds = bounds_of(attended, together);
    const bool agree = farthest(bounds, recorded.size(), false, behind);
    if (farthest(bounds, recorded.size(), true, before) && agree) break;
  }
  std::vector<Nanoseconds> starts(recorded.size(), 0);
  for (std::size_t rank = 1; rank < recorded.size(); ++rank) {
    if (behind[rank] != kUnbounded && before[rank] != kUnbounded) {
      starts[rank] = (behind[rank] - before[rank]) / 2;
    } else if (behind[rank] != kUnbounded) {
      starts[rank] = behind[rank];
    } else if (before[rank] != kUnbounded) {
      starts[rank] = -before[rank];
    }
  }
  const Nanoseconds first = *std::min_element(starts.begin(), starts.end());
  for (std::size_t rank = 0; rank < recorded.size(); ++rank) {
    for (RecordedAction& action : recorded[rank].actions) {
      action.begin_ns += static_cast<std::uint64_t>(starts[rank] - first);
      action.end_ns += static_cast<std::uint64_t>(starts[rank] - first);
    }
  }
}

}  // namespace piper::runtime
