#include "tests/pictures/sample_timeline.h"

#include <algorithm>
#include <utility>

namespace piper::test {

using passes::Timeline;

Timeline gpipe_timeline(std::uint32_t p, std::uint32_t m) {
  Timeline timeline;
  const auto entry_of = [&](std::uint32_t r, bool backward, std::uint32_t i) {
    return (2 * r + (backward ? 1 : 0)) * m + i;
  };
  for (std::uint32_t r = 0; r < p; ++r) {
    timeline.names.push_back("stage[" + std::to_string(r) + "]");
    timeline.lanes.push_back({"compute", r, 2 * r * m, 2 * r * m});
    Timeline::Rank rank;
    rank.name = "rank " + std::to_string(r);
    rank.first_lane = r;
    rank.end_lane = r + 1;
    rank.first_curve = r;
    rank.end_curve = r + 1;
    rank.first_start = r;
    rank.work = 3.0 * m;
    rank.peak = m;
    const auto first_point = static_cast<std::uint32_t>(timeline.curve_time.size());
    for (const bool backward : {false, true}) {
      for (std::uint32_t i = 0; i < m; ++i) {
        const double start = backward ? p + m - 1 + 2.0 * (p - 1 - r + i) : r + i;
        Timeline::Operation operation;
        operation.pass = backward ? Pass::B : Pass::F;
        operation.name = operation.stage = r;
        operation.mb = i;
        timeline.operations.push_back(operation);
        timeline.add_entry(start, start + (backward ? 2 : 1),
                           static_cast<std::uint32_t>(timeline.operations.size() - 1),
                           Timeline::kNone);
        const std::uint32_t entry = entry_of(r, backward, i);
        const bool from_other = i == 0 && (backward ? r + 1 < p : r > 0);
        if (from_other) timeline.cause[entry] = entry_of(backward ? r + 1 : r - 1, backward, i);
        if (!from_other && (i > 0 || backward)) timeline.cause[entry] = entry - 1;
        timeline.why[entry] = from_other          ? Timeline::Why::message
                              : i > 0 || backward ? Timeline::Why::previous
                                                  : Timeline::Why::start;
        timeline.curve_time.push_back(backward ? start + 2 : start);
        timeline.curve_value.push_back(backward ? m - 1.0 - i : i + 1.0);
        rank.last_end = start + (backward ? 2 : 1);
      }
    }
    timeline.curves.push_back(
        {r, std::nullopt, first_point, static_cast<std::uint32_t>(timeline.curve_time.size())});
    timeline.makespan = std::max(timeline.makespan, rank.last_end);
    timeline.ranks.push_back(rank);
  }
  for (std::uint32_t i = 0; i < m; ++i) {
    for (std::uint32_t r = 0; r + 1 < p; ++r) {
      timeline.messages.push_back({entry_of(r, false, i), entry_of(r + 1, false, i),
                                   timeline.finish[entry_of(r, false, i)],
                                   timeline.start[entry_of(r + 1, false, i)], 4});
    }
  }
  std::sort(timeline.messages.begin(), timeline.messages.end(),
            [](const auto& a, const auto& b) { return a.leaves < b.leaves; });
  timeline.span = timeline.makespan;
  timeline.bubble_makespan = timeline.bubble_span = 1 - 3.0 * m / timeline.makespan;
  for (std::uint32_t entry = entry_of(0, true, m - 1); entry != Timeline::kNone;
       entry = timeline.cause[entry])
    timeline.critical.push_back(entry);
  std::reverse(timeline.critical.begin(), timeline.critical.end());
  return timeline;
}

Timeline overlapped_timeline() {
  Timeline timeline;
  timeline.unit = Timeline::Unit::seconds;
  timeline.source = Timeline::Source::measured;
  timeline.names = {"stage[0]", "send.F.stage0.mb0.pp1", "stage[1]"};
  timeline.operations.resize(5);
  const auto chunk = [&](std::size_t at, Pass pass, std::uint32_t stage, std::uint32_t mb) {
    timeline.operations[at].pass = pass;
    timeline.operations[at].name = stage == 0 ? 0 : 2;
    timeline.operations[at].stage = stage;
    timeline.operations[at].mb = mb;
  };
  chunk(0, Pass::F, 0, 0);
  chunk(1, Pass::F, 0, 1);
  chunk(2, Pass::B, 0, 0);
  chunk(4, Pass::F, 1, 0);
  timeline.operations[3].kind = dag::NodeKind::send;
  timeline.operations[3].name = 1;
  for (std::uint32_t r = 0; r < 2; ++r) {
    Timeline::Rank rank;
    rank.name = "pp" + std::to_string(r);
    rank.replicas = 2;
    rank.first_lane = r == 0 ? 0 : 2;
    rank.end_lane = r == 0 ? 2 : 3;
    timeline.ranks.push_back(rank);
  }
  timeline.lanes.push_back({"compute", 0, 0, 0});
  timeline.add_entry(0, 0.001, 0, Timeline::kNone);
  timeline.add_entry(0.0015, 0.004, 1, 0);
  timeline.add_entry(0.0015, 0.004, 2, 0);
  timeline.lanes.push_back({"act.pp0.to.pp1", 0, 3, 3});
  timeline.add_entry(0.001, 0.0013, 3, Timeline::kNone);
  timeline.lanes.push_back({"compute", 1, 4, 4});
  timeline.add_entry(0.0013, 0.0023, 4, Timeline::kNone);
  timeline.cause = {Timeline::kNone, 0, 0, 0, 3};
  timeline.makespan = timeline.span = 0.004;
  return timeline;
}

pictures::Picture picture_of(Timeline timeline, std::string title) {
  const LocationTable locations;
  return pictures::make_picture(std::move(title), std::move(timeline), nullptr, locations);
}

}  // namespace piper::test
