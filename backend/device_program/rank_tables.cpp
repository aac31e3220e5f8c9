#include "backend/device_program/rank_tables.h"

#include <algorithm>
#include <cassert>

#include "ir/dag/device_role.h"

namespace piper::backend {

namespace {

bool has(AxisMask mask, std::size_t axis) { return (mask >> axis & 1) != 0; }

/// The ranks of one member set that share their coordinates along the separating axes with a
/// device, in coordinate order.
void add_members(const Mesh& mesh, const DeviceSet& set, AxisMask separating,
                 const std::vector<std::uint32_t>& coordinates,
                 std::vector<std::uint32_t>& members) {
  std::vector<std::uint32_t> at(mesh.axes.size(), 0);
  const auto visit = [&](const auto& self, std::size_t axis) -> void {
    if (axis == at.size()) {
      members.push_back(static_cast<std::uint32_t>(rank_of(mesh, at)));
      return;
    }
    if (set.at[axis] != DeviceSet::kWhole || has(separating, axis)) {
      at[axis] = set.at[axis] != DeviceSet::kWhole ? static_cast<std::uint32_t>(set.at[axis])
                                                   : coordinates[axis];
      self(self, axis + 1);
      return;
    }
    for (at[axis] = 0; at[axis] < mesh.axes[axis].size; ++at[axis]) self(self, axis + 1);
  };
  visit(visit, 0);
}

}  // namespace

CommunicatorIds::CommunicatorIds(const dag::Dag& dag, std::uint32_t first_id)
    : dag_(dag), first_(1, first_id) {
  for (const dag::Communicator& communicator : dag.plan->communicators) {
    AxisMask separating = ~AxisMask{0};
    for (const DeviceSetId set : communicator.members)
      separating &= dag.device_sets[set].whole_axes();
    if (communicator.kind == dag::Communicator::Kind::group) separating &= ~communicator.axes;
    std::uint32_t count = 1;
    for (std::size_t a = 0; a < dag.mesh.axes.size(); ++a) {
      if (has(separating, a)) count *= dag.mesh.axes[a].size;
    }
    separating_.push_back(separating);
    first_.push_back(first_.back() + count);
  }
}

std::uint32_t CommunicatorIds::of(dag::CommunicatorId id,
                                  const std::vector<std::uint32_t>& coordinates) const {
  std::uint32_t index = 0;
  for (std::size_t a = 0; a < coordinates.size(); ++a) {
    if (has(separating_[id.index()], a)) index = index * dag_.mesh.axes[a].size + coordinates[a];
  }
  return first_[id.index()] + index;
}

std::shared_ptr<const std::vector<std::uint32_t>> CommunicatorIds::members(
    dag::CommunicatorId id, const std::vector<std::uint32_t>& coordinates) {
  auto& list = lists_[of(id, coordinates)];
  if (list) return list;
  std::vector<std::uint32_t> ranks;
  for (const DeviceSetId set : dag_.plan->communicators[id.index()].members)
    add_members(dag_.mesh, dag_.device_sets[set], separating_[id.index()], coordinates, ranks);
  return list = std::make_shared<const std::vector<std::uint32_t>>(std::move(ranks));
}

RankTables::RankTables(const dag::Dag& dag, const DeviceProgram& program, CommunicatorIds& ids,
                       std::uint64_t rank) {
  const std::vector<std::uint32_t> coordinates = coordinates_of(dag.mesh, rank);
  for (const dag::CommunicatorId id : program.communicators) {
    const dag::Communicator& planned = dag.plan->communicators[id.index()];
    const std::vector<std::uint32_t>& list = *members.emplace_back(ids.members(id, coordinates));
    PiperCommunicator made{};
    made.id = ids.of(id, coordinates);
    made.kind = planned.kind == dag::Communicator::Kind::pair ? 0 : 1;
    made.num_members = static_cast<std::uint32_t>(list.size());
    const auto self = std::find(list.begin(), list.end(), static_cast<std::uint32_t>(rank));
    assert(self != list.end() && "a rank is a member of its communicators");
    made.self = static_cast<std::uint32_t>(self - list.begin());
    made.num_sets = static_cast<std::uint32_t>(planned.members.size());
    communicators.push_back(made);
  }
  for (std::size_t c = 0; c < communicators.size(); ++c)
    communicators[c].members = members[c]->data();
  for (const ProgramInterval& each : program.intervals) {
    const Interval own = shard_interval(each.cut, dag.mesh, coordinates);
    intervals.push_back({static_cast<std::uint64_t>(own.first),
                         static_cast<std::uint64_t>(own.extent),
                         static_cast<std::uint64_t>(own.global)});
    assert(intervals.back().extent == each.extent &&
           "ranks with other extents are a role of their own");
  }
}

std::size_t role_of(const ProgramSet& programs, const std::vector<std::uint32_t>& coordinates) {
  const auto at = [&](std::size_t role) { return std::span(programs.roles[role].at); };
  return dag::role_of_device(programs.roles.size(), at, coordinates);
}

std::vector<std::vector<std::uint32_t>> first_devices(const dag::Dag& dag) {
  const std::vector<dag::Role>& roles = dag.plan->roles;
  const auto at = [&](std::size_t role) { return std::span(roles[role].at); };
  std::vector<std::vector<std::uint32_t>> devices(roles.size());
  std::size_t missing = roles.size();
  for (std::uint64_t rank = 0; missing > 0 && rank < dag.mesh.devices(); ++rank) {
    std::vector<std::uint32_t> coordinates = coordinates_of(dag.mesh, rank);
    const std::size_t role = dag::role_of_device(roles.size(), at, coordinates);
    if (role == roles.size() || !devices[role].empty()) continue;
    devices[role] = std::move(coordinates);
    --missing;
  }
  return devices;
}

}  // namespace piper::backend
