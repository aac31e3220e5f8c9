#include "passes/simulate/figures.h"

#include <algorithm>
#include <cmath>

namespace piper::passes {

namespace {

/// Smaller differences are rounding errors of sums of starts and ends.
double settled(double part, double whole) {
  constexpr double kRounding = 1e-10;
  return std::abs(part) <= kRounding * whole ? 0 : part;
}

/// The time at which the input that an entry waited for was made; from then until the start it was
/// on its way.
double made(const Timeline& timeline, std::uint32_t entry) {
  const std::uint32_t cause = timeline.cause[entry];
  if (cause == Timeline::kNone) return timeline.start[entry];
  const bool communicates = dag::is_communication(timeline.operation_of(cause).kind);
  return communicates ? timeline.start[cause] : timeline.finish[cause];
}

/// The idle time between the entries of a compute lane, and inside an operation whose parts wait.
void fill_idle(const Timeline& timeline, Timeline::Rank& rank) {
  const Timeline::Lane& lane = timeline.lanes[rank.first_lane];
  rank.idle = {};
  if (lane.first == lane.end) {
    rank.idle.before_first = timeline.makespan;
    return;
  }
  rank.first_start = timeline.start[lane.first];
  rank.idle.before_first = rank.first_start;
  double busy_until = rank.first_start, busy = 0;
  for (std::uint32_t entry = lane.first; entry < lane.end; ++entry) {
    const double gap = timeline.start[entry] - busy_until;
    if (gap > 0) {
      const std::uint32_t cause = timeline.cause[entry];
      const bool travels =
          timeline.why[entry] == Timeline::Why::message ||
          (cause != Timeline::kNone && dag::is_communication(timeline.operation_of(cause).kind));
      const double message =
          travels && timeline.why[entry] != Timeline::Why::window
              ? std::clamp(timeline.start[entry] - made(timeline, entry), 0.0, gap)
              : 0;
      // If its cause itself began late for lack of room, so did this entry.
      const bool room = timeline.why[entry] == Timeline::Why::window ||
                        (travels && timeline.why[cause] == Timeline::Why::window);
      rank.idle.message += message;
      (room ? rank.idle.room : rank.idle.data) += gap - message;
    }
    busy += std::max(0.0, timeline.finish[entry] - std::max(timeline.start[entry], busy_until));
    busy_until = std::max(busy_until, timeline.finish[entry]);
  }
  rank.idle.data += std::max(0.0, busy - rank.work);
  rank.last_end = busy_until;
  rank.idle.after_last = timeline.makespan - busy_until;
}

std::vector<std::uint32_t> critical_path(const Timeline& timeline) {
  std::vector<std::uint32_t> path;
  if (timeline.size() == 0) return path;
  const auto last = std::max_element(timeline.finish.begin(), timeline.finish.end());
  for (auto entry = static_cast<std::uint32_t>(last - timeline.finish.begin());
       entry != Timeline::kNone; entry = timeline.cause[entry])
    path.push_back(entry);
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace

void fill_figures(Timeline& timeline) {
  timeline.makespan = 0;
  for (const double finish : timeline.finish)
    timeline.makespan = std::max(timeline.makespan, finish);
  double total = 0, most = 0, ranks = 0;  // replicas count once
  double devices = 0, idle_devices = 0;
  timeline.span = 0;
  for (Timeline::Rank& rank : timeline.ranks) {
    fill_idle(timeline, rank);
    timeline.span = std::max(timeline.span, rank.last_end - rank.first_start);
    total += rank.work / rank.alike;
    const Timeline::Lane& lane = timeline.lanes[rank.first_lane];
    const bool idle = lane.first == lane.end;
    (idle ? idle_devices : devices) += static_cast<double>(rank.replicas);
    if (!idle) ranks += 1.0 / rank.alike;
    most = std::max(most, rank.work);
  }
  for (Timeline::Rank& rank : timeline.ranks) {
    rank.idle.imbalance = std::min(rank.idle.data, most - rank.work);
    rank.idle.data -= rank.idle.imbalance;
    for (double* const part : {&rank.idle.data, &rank.idle.imbalance, &rank.idle.message,
                               &rank.idle.room, &rank.idle.after_last})
      *part = settled(*part, timeline.makespan);
  }
  // The number of ranks grows in proportion to the devices: an idle device counts like one with
  // work.
  const double available =
      devices > 0 ? ranks * (1 + idle_devices / devices) * timeline.makespan : 0;
  timeline.bubble_makespan = available > 0 ? settled(1 - total / available, 1) : 0;
  timeline.bubble_span = timeline.span > 0 ? settled(1 - most / timeline.span, 1) : 0;
  timeline.critical = critical_path(timeline);
}

}  // namespace piper::passes
