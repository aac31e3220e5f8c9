#include "ir/orders/search/bounds.h"

#include <algorithm>
#include <limits>

namespace piper::orders {

namespace {

using Track = SearchProblem::Track;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class BoundTables {
 public:
  explicit BoundTables(const SearchProblem& problem) : problem_(problem) {
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
        const double around = before(a, b) + after(a, b);
        if (a != b && around < kInfinity)
          result.span = std::max(result.span, alone - late + around);
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
  /// The time of a pass of parts `from` to `end` - 1.
  double run(TrackPass pass, std::uint32_t from, std::uint32_t end) const {
    return sums_[pass][end] - sums_[pass][from];
  }
  double seconds(std::uint32_t part, TrackPass pass) const {
    return problem_.seconds_of(part)[pass];
  }
  /// The longest time of as many operations of a pass as a rank may hold.
  double longest(std::uint32_t rank, TrackPass pass) const {
    std::vector<std::pair<double, std::uint32_t>> all;
    for (const std::uint32_t number : problem_.tracks_on(rank)) {
      const Track& track = problem_.tracks()[number];
      all.emplace_back(seconds(track.part, pass), track.count);
    }
    std::sort(all.rbegin(), all.rend());
    double total = 0;
    std::uint32_t left = problem_.capacity();
    for (const auto& [time, count] : all) {
      total += time * std::min(left, count);
      left -= std::min(left, count);
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

  /// From the forward of `low` to the start of the backward of `high`, in one instance.
  double around(std::uint32_t group, std::uint32_t low, std::uint32_t high) const {
    return run(kTrackF, low, problem_.parts()) + hops(group, low, last()) +
           run(kTrackB, high + 1, problem_.parts()) + hops(group, high, last());
  }

  /// Idle time before the first backward.
  double front(std::uint32_t rank) const {
    double path = kInfinity;
    for (std::uint32_t group = 0; group < problem_.groups(); ++group) {
      const std::uint32_t low = low_[at(rank, group)];
      if (low == SearchProblem::kNone) continue;
      path = std::min(path, around(group, low, high_[at(rank, group)]));
    }
    return std::max(0.0, path - longest(rank, kTrackF));
  }

  /// Weight gradients that may be left when the last backward of a rank ends.
  double postponed(std::uint32_t rank) const { return longest(rank, kTrackW); }

  /// Each part holds its activations for a time; together they have the room of the cap.
  double held_time(std::uint32_t rank) const {
    double total = 0;
    for (const std::uint32_t number : problem_.tracks_on(rank)) {
      const Track& track = problem_.tracks()[number];
      total += track.count * (around(track.group, track.part, track.part) +
                              seconds(track.part, kTrackB) + seconds(track.part, kTrackW));
    }
    return problem_.capacity() == 0 ? 0 : total / problem_.capacity();
  }

  /// The least time from the first start of rank `a` to that of `b`; infinite if it may be negative.
  double before(std::uint32_t a, std::uint32_t b) const {
    double minimum = kInfinity;
    for (std::uint32_t group = 0; group < problem_.groups(); ++group) {
      const std::uint32_t of_a = low_[at(a, group)], of_b = low_[at(b, group)];
      if (of_b == SearchProblem::kNone) continue;
      if (of_a == SearchProblem::kNone || of_a > of_b) return kInfinity;
      minimum = std::min(minimum, run(kTrackF, of_a, of_b) + hops(group, of_a, of_b));
    }
    return minimum;
  }
  /// The least time from the end of the last backward of `b` to the end of `a`.
  double after(std::uint32_t a, std::uint32_t b) const {
    double minimum = kInfinity;
    for (std::uint32_t group = 0; group < problem_.groups(); ++group) {
      const std::uint32_t of_a = low_[at(a, group)], of_b = low_[at(b, group)];
      if (of_b == SearchProblem::kNone) continue;
      if (of_a == SearchProblem::kNone || of_a > of_b) return kInfinity;
      minimum = std::min(
          minimum, run(kTrackB, of_a, of_b) + hops(group, of_a, of_b) + seconds(of_a, kTrackW));
    }
    return minimum;
  }
  /// From the start of all to the first start of a rank.
  double from_start(std::uint32_t rank) const {
    double minimum = kInfinity;
    for (std::uint32_t group = 0; group < problem_.groups(); ++group) {
      const std::uint32_t low = low_[at(rank, group)];
      if (low != SearchProblem::kNone)
        minimum = std::min(minimum, run(kTrackF, 0, low) + hops(group, 0, low));
    }
    return minimum;
  }
  /// From the end of the last backward of a rank to the end of all.
  double to_end(std::uint32_t rank) const {
    double minimum = kInfinity;
    for (std::uint32_t group = 0; group < problem_.groups(); ++group) {
      const std::uint32_t low = low_[at(rank, group)];
      if (low != SearchProblem::kNone)
        minimum =
            std::min(minimum, run(kTrackB, 0, low) + hops(group, 0, low) + seconds(0, kTrackW));
    }
    return minimum;
  }

  const SearchProblem& problem_;
  std::vector<double> sums_[kTrackPasses] = {{0}, {0}, {0}};  // by part: of those before
  std::vector<std::vector<double>> hops_;  // by group, part: messages from part 0 on
  std::vector<std::uint32_t> low_, high_;  // by rank and group: the first and the last part
};

}  // namespace

Bounds bounds(const SearchProblem& problem) { return BoundTables(problem).run(); }

}  // namespace piper::orders
