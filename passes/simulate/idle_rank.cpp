#include "passes/simulate/idle_rank.h"

#include <algorithm>

#include "ir/diagnostics/counted.h"
#include "passes/transform/idle_devices.h"

namespace piper::passes {

void add_idle_rank(Timeline& timeline, const dag::Dag& dag) {
  std::uint64_t idle = idle_devices(dag).size();
  for (const Timeline::Rank& rank : timeline.ranks) {
    const Timeline::Lane& lane = timeline.lanes[rank.first_lane];
    if (lane.first == lane.end) idle -= std::min(idle, rank.replicas);
  }
  if (idle == 0) return;
  const auto end = static_cast<std::uint32_t>(timeline.size());
  Timeline::Rank& rank = timeline.ranks.emplace_back();
  rank.name = counted(idle, "idle device");
  rank.replicas = idle;
  rank.first_lane = static_cast<std::uint32_t>(timeline.lanes.size());
  rank.end_lane = rank.first_lane + 1;
  rank.first_curve = rank.end_curve = static_cast<std::uint32_t>(timeline.curves.size());
  timeline.lanes.push_back(
      {"compute", static_cast<std::uint32_t>(timeline.ranks.size() - 1), end, end});
}

}  // namespace piper::passes
