#include "ir/orders/search/bounds.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace piper::orders {

namespace {

using Track = SearchProblem::Track;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class BoundTables {
 public:
  BoundTables(const SearchProblem& problem, const KeptActivations& kept)
      : problem_(problem), kept_(kept) {
    for (std::uint32_t group = 0; group < problem.groups(); ++group) {
      std::vector<double>& hops = hops_.emplace_back(problem.parts(), 0.0);
      for (std::uint32_t part = 1; part < problem.parts(); ++part) {
        const std::uint32_t track = group * problem.parts() + part;
        hops[part] = hops[part - 1] + problem.sent(track - 1, track);
      }
    }
    for (std::uint32_t part = 0; part < problem.parts(); ++part) {
      for (std::uint32_t pass = 0; pass < kTrackPasses; ++pass)
        sums_[pass].push_back(sums_[pass].back() + problem.seconds_of(part)[pass]);
    }
    const std::uint32_t ranks = problem.ranks();
    low_.assign(std::size_t{ranks} * problem.groups(), SearchProblem::kNone);
    high_ = low_;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      for (const std::uint32_t number : problem.tracks_on(rank)) {
        const Track& track = problem.tracks()[number];
        std::uint32_t& low = low_[at(rank, track.group)];
        low = low == SearchProblem::kNone ? track.part : low;
        high_[at(rank, track.group)] = track.part;
      }
    }
  }

  Bounds run() const {
    Bounds result;
    for (std::uint32_t b = 0; b < problem_.ranks(); ++b) {
      if (problem_.tracks_on(b).empty()) continue;
      const double alone = work(b) + front(b), late = postponed(b);
      result.span = std::max({result.span, alone, held_time(b)});
      const double head = from_start(b);
      result.makespan = std::max({result.makespan, head + alone, head + alone - late + to_end(b)});
      for (std::uint32_t a = 0; a < problem_.ranks(); ++a) {
        if (a != b && encloses(a, b))
          result.span = std::max(result.span, alone - late + before_and_after(a, b));
      }
    }
    result.makespan = std::max(result.makespan, result.span);
    return result;
  }

 private:
  std::size_t at(std::uint32_t rank, std::uint32_t group) const {
    return std::size_t{rank} * problem_.groups() + group;
  }
  double hops(std::uint32_t group, std::uint32_t from, std::uint32_t to) const {
    return hops_[group][to] - hops_[group][from];
  }
  std::uint32_t last() const { return problem_.parts() - 1; }
  double seconds(std::uint32_t part, TrackPass pass) const {
    return problem_.seconds_of(part)[pass];
  }
  /// The time of a pass of parts `from` to `end` - 1.
  double run(TrackPass pass, std::uint32_t from, std::uint32_t end) const {
    return sums_[pass][end] - sums_[pass][from];
  }
  /// The same, with the messages on the way between parts `from` and `end`.
  double way(std::uint32_t group, TrackPass pass, std::uint32_t from, std::uint32_t end) const {
    return run(pass, from, end) + hops(group, from, end);
  }
  /// No operations of a pass that a rank may hold take longer. The last one may count in part.
  double of_held(std::uint32_t rank, TrackPass pass) const {
    struct Held {
      double seconds, kept;
      std::uint32_t count;
    };
    double total = 0, left = kept_.cap;
    std::vector<Held> all;
    for (const std::uint32_t number : problem_.tracks_on(rank)) {
      const Track& track = problem_.tracks()[number];
      const double kept = kept_.of_part[track.part];
      if (kept == 0) {
        total += track.count * seconds(track.part, pass);
      } else {
        all.push_back({seconds(track.part, pass), kept, track.count});
      }
    }
    std::sort(all.begin(), all.end(),
              [](const Held& a, const Held& b) { return a.seconds / a.kept > b.seconds / b.kept; });
    for (const auto& [time, kept, count] : all) {
      const double fits = kept * count <= left ? count : left / kept;
      total += time * fits;
      left -= kept * fits;
    }
    return total;
  }
  double work(std::uint32_t rank) const {
    double total = 0;
    for (const std::uint32_t number : problem_.tracks_on(rank)) {
      const Track& track = problem_.tracks()[number];
      for (const TrackPass pass : {kTrackF, kTrackB, kTrackW})
        total += track.count * seconds(track.part, pass);
    }
    return total;
  }

  /// The shortest `time(group, first part on the rank)` over the groups with parts on a rank.
  template <typename Time>
  double shortest(std::uint32_t rank, const Time& time) const {
    double minimum = kInfinity;
    for (std::uint32_t group = 0; group < problem_.groups(); ++group) {
      const std::uint32_t low = low_[at(rank, group)];
      if (low != SearchProblem::kNone) minimum = std::min(minimum, time(group, low));
    }
    return minimum;
  }

  /// From the forward of `low` to the start of the backward of `high`, in one instance.
  double around(std::uint32_t group, std::uint32_t low, std::uint32_t high) const {
    return run(kTrackF, low, problem_.parts()) + hops(group, low, last()) +
           run(kTrackB, high + 1, problem_.parts()) + hops(group, high, last());
  }

  /// Idle time before the first backward.
  double front(std::uint32_t rank) const {
    const double path = shortest(rank, [&](std::uint32_t group, std::uint32_t low) {
      return around(group, low, high_[at(rank, group)]);
    });
    return std::max(0.0, path - of_held(rank, kTrackF));
  }

  /// Weight gradients that may be left when the last backward of a rank ends.
  double postponed(std::uint32_t rank) const { return of_held(rank, kTrackW); }

  /// Each part holds its activations for a time; together they have the room of the cap.
  double held_time(std::uint32_t rank) const {
    double total = 0;
    for (const std::uint32_t number : problem_.tracks_on(rank)) {
      const Track& track = problem_.tracks()[number];
      total += kept_.of_part[track.part] * track.count *
               (around(track.group, track.part, track.part) + seconds(track.part, kTrackB) +
                seconds(track.part, kTrackW));
    }
    return kept_.cap == 0 ? 0 : total / kept_.cap;
  }

  /// Whether each instance with parts on `b` passes `a` before them.
  bool encloses(std::uint32_t a, std::uint32_t b) const {
    for (std::uint32_t group = 0; group < problem_.groups(); ++group) {
      const std::uint32_t of_a = low_[at(a, group)], of_b = low_[at(b, group)];
      if (of_b == SearchProblem::kNone) continue;
      if (of_a == SearchProblem::kNone || of_a > of_b) return false;
    }
    return true;
  }
  /// From the first start of rank `a` to that of `b`, and from the end of the last backward of `b`
  /// to the end of `a`.
  double before_and_after(std::uint32_t a, std::uint32_t b) const {
    return shortest(b,
                    [&](std::uint32_t group, std::uint32_t low) {
                      return way(group, kTrackF, low_[at(a, group)], low);
                    }) +
           shortest(b, [&](std::uint32_t group, std::uint32_t low) {
             const std::uint32_t of_a = low_[at(a, group)];
             return way(group, kTrackB, of_a, low) + seconds(of_a, kTrackW);
           });
  }
  /// From the start of all to the first start of a rank.
  double from_start(std::uint32_t rank) const {
    return shortest(
        rank, [&](std::uint32_t group, std::uint32_t low) { return way(group, kTrackF, 0, low); });
  }
  /// From the end of the last backward of a rank to the end of all.
  double to_end(std::uint32_t rank) const {
    return shortest(rank, [&](std::uint32_t group, std::uint32_t low) {
      return way(group, kTrackB, 0, low) + seconds(0, kTrackW);
    });
  }

  const SearchProblem& problem_;
  const KeptActivations& kept_;
  std::vector<double> sums_[kTrackPasses] = {{0}, {0}, {0}};  // by part: of those before
  std::vector<std::vector<double>> hops_;  // by group, part: messages from part 0 on
  std::vector<std::uint32_t> low_, high_;  // by rank and group: the first and the last part
};

}  // namespace

Bounds bounds(const SearchProblem& problem) {
  return bounds(problem,
                {std::vector<double>(problem.parts(), 1), static_cast<double>(problem.capacity())});
}

Bounds bounds(const SearchProblem& problem, const KeptActivations& kept) {
  return BoundTables(problem, kept).run();
}

}  // namespace piper::orders
