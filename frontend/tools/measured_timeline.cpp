#include "frontend/tools/measured_timeline.h"

#include <algorithm>
#include <limits>

#include "backend/device_program/rank_tables.h"

namespace piper::tools {
namespace {

using passes::Timeline;

class Measured {
 public:
  Measured(const Timeline& planned, std::uint64_t begin) : planned_(planned), begin_(begin) {
    out_.unit = Timeline::Unit::seconds;
    out_.source = Timeline::Source::measured;
    out_.operations = planned.operations;
    out_.names = planned.names;
  }

  void add_rank(const runtime::RecordedRank& recorded, std::size_t role,
                const backend::DeviceProgram& program) {
    const Timeline::Rank& planned = planned_.ranks[role];
    Timeline::Rank& rank = out_.ranks.emplace_back();
    rank.name = "rank " + std::to_string(recorded.rank) + " (" + planned.name + ")";
    rank.planned_bytes = planned.planned_bytes;
    rank.first_lane = static_cast<std::uint32_t>(out_.lanes.size());
    for (const Timeline::Lane& lane : planned_.lanes_of(planned)) {
      const auto stream =
          std::find_if(program.streams.begin(), program.streams.end(),
                       [&](const backend::ProgramStream& each) { return each.name == lane.name; });
      if (stream != program.streams.end())
        add_lane(recorded, lane, static_cast<std::uint32_t>(stream - program.streams.begin()),
                 rank);
    }
    rank.end_lane = static_cast<std::uint32_t>(out_.lanes.size());
  }

  Timeline finish() {
    double most = 0, all = 0;
    for (const Timeline::Rank& rank : out_.ranks) {
      out_.makespan = std::max(out_.makespan, rank.last_end);
      out_.span = std::max(out_.span, rank.last_end - rank.first_start);
      most = std::max(most, rank.work);
      all += rank.work;
    }
    if (out_.makespan > 0)
      out_.bubble_makespan = 1 - all / (static_cast<double>(out_.ranks.size()) * out_.makespan);
    if (out_.span > 0) out_.bubble_span = 1 - most / out_.span;
    return std::move(out_);
  }

 private:
  void add_lane(const runtime::RecordedRank& recorded, const Timeline::Lane& lane,
                std::uint32_t stream, Timeline::Rank& rank) {
    const bool first_lane = rank.first_lane == out_.lanes.size();
    const auto first = static_cast<std::uint32_t>(out_.size());
    out_.lanes.push_back(
        {lane.name, static_cast<std::uint32_t>(out_.ranks.size() - 1), first, first});
    double before = 0;
    for (const runtime::RecordedAction& action : recorded.actions) {
      if (action.stream != stream || lane.first + action.position >= lane.end) continue;
      const double start = std::max(before, seconds(action.begin_ns)),
                   end = std::max(start, seconds(action.end_ns));
      out_.add_entry(start, end, planned_.operation[lane.first + action.position],
                     planned_.group[lane.first + action.position]);
      const auto entry = static_cast<std::uint32_t>(out_.size() - 1);
      if (entry > first) {
        out_.cause[entry] = entry - 1;
        out_.why[entry] = Timeline::Why::previous;
      }
      if (first_lane) {
        if (entry == first) rank.first_start = start;
        rank.work += end - start;
        rank.last_end = end;
      }
      before = end;
    }
  }

  double seconds(std::uint64_t ns) const {
    return ns < begin_ ? 0 : static_cast<double>(ns - begin_) * 1e-9;
  }

  const Timeline& planned_;
  const std::uint64_t begin_;
  Timeline out_;
};

}  // namespace

passes::Timeline measured_timeline(const passes::Timeline& planned, const dag::Dag& dag,
                                   const backend::ProgramSet& programs,
                                   std::span<const runtime::RecordedRank> recorded) {
  std::uint64_t begin = std::numeric_limits<std::uint64_t>::max();
  for (const runtime::RecordedRank& rank : recorded) {
    for (const runtime::RecordedAction& action : rank.actions)
      begin = std::min(begin, action.begin_ns);
  }
  Measured measured(planned, begin);
  for (const runtime::RecordedRank& rank : recorded) {
    const std::size_t role = backend::role_of(programs, coordinates_of(dag.mesh, rank.rank));
    measured.add_rank(rank, role, programs.roles[role]);
  }
  return measured.finish();
}

}  // namespace piper::tools
