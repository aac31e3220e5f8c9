#include "passes/simulate/device_classes.h"

#include <algorithm>
#include <map>

namespace piper::passes {

using namespace dag;

DeviceClasses::DeviceClasses(const Dag& dag, const Machine* machine) : dag_(dag) {
  const std::vector<MeshAxis>& axes = dag.mesh.axes;
  for (const MeshAxis& axis : axes) part_.emplace_back(axis.size, 0);
  count_.assign(axes.size(), 1);
  for (std::size_t axis = 0; machine != nullptr && axis < axes.size(); ++axis) {
    std::vector<bool> single(axes[axis].size, false);
    for (const MachineDevice& line : machine->devices) {
      if (line.at.at[axis] != DeviceSet::kWhole)
        single[static_cast<std::size_t>(line.at.at[axis])] = true;
    }
    std::vector<std::uint32_t> blocks;
    for (const Machine::Axis& each : machine->axes) {
      if (!each.link || each.link->shared == 1) continue;
      const auto group = link_group(machine->axes, each.link->shared);
      if (group && group->axis == axis && group->block > 1) blocks.push_back(group->block);
    }
    // The sharing of links depends on the roles too.
    for (const Role& role : dag.plan->roles) {
      if (!blocks.empty() && role.at[axis] != DeviceSet::kWhole)
        single[static_cast<std::size_t>(role.at[axis])] = true;
    }
    single_out(axis, single);
    for (std::uint32_t before = 0; before != count_[axis];) {
      before = count_[axis];
      for (const std::uint32_t block : blocks) split_mixed_blocks(axis, block);
    }
  }
  for (std::uint32_t role = 0; role < dag.plan->roles.size(); ++role) add_role(role);
}

void DeviceClasses::single_out(std::size_t axis, const std::vector<bool>& single) {
  const bool all = std::find(single.begin(), single.end(), false) == single.end();
  count_[axis] = all ? 0 : 1;
  for (std::size_t at = 0; at < single.size(); ++at) {
    if (single[at]) part_[axis][at] = count_[axis]++;
  }
}

/// Splits parts that occur in a mixed group of neighbours and elsewhere, because their devices
/// share links differently.
void DeviceClasses::split_mixed_blocks(std::size_t axis, std::uint32_t block) {
  std::vector<std::uint32_t>& part = part_[axis];
  for (std::size_t first = 0; first < part.size(); first += block) {
    const auto begin = part.begin() + static_cast<std::ptrdiff_t>(first), end = begin + block;
    if (std::all_of(begin, end, [&](std::uint32_t each) { return each == *begin; })) continue;
    std::map<std::uint32_t, std::uint32_t> renamed;
    for (auto each = begin; each != end; ++each) {
      const std::uint32_t old = *each;
      const auto elsewhere = [&](auto from, auto to) { return std::find(from, to, old) != to; };
      if (!renamed.contains(old))
        renamed[old] =
            elsewhere(part.begin(), begin) || elsewhere(end, part.end()) ? count_[axis]++ : old;
      *each = renamed[old];
    }
  }
}

void DeviceClasses::add_role(std::uint32_t role) {
  const std::vector<std::int32_t>& at = dag_.plan->roles[role].at;
  const std::size_t axes = at.size(), first = classes_.size();
  std::vector<std::uint32_t> parts(axes, 0);
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> everywhere = [&] {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges;
    for (const MeshAxis& axis : dag_.mesh.axes) ranges.emplace_back(0, axis.size);
    return ranges;
  }();
  const auto visit = [&](const auto& self, std::size_t axis) -> void {
    if (axis == axes) {
      DeviceClass made{role, count(role, parts, everywhere), std::vector<std::uint32_t>(axes, 0),
                       parts, std::string(dag_.context->text(dag_.plan->roles[role].name))};
      if (first_device(role, parts, made.coordinates)) classes_.push_back(std::move(made));
      return;
    }
    if (at[axis] != DeviceSet::kWhole) {
      parts[axis] = part_[axis][static_cast<std::size_t>(at[axis])];
      return self(self, axis + 1);
    }
    for (std::uint32_t part = 0; part < count_[axis]; ++part) {
      parts[axis] = part;
      self(self, axis + 1);
    }
  };
  visit(visit, 0);
  std::sort(
      classes_.begin() + static_cast<std::ptrdiff_t>(first), classes_.end(),
      [](const DeviceClass& a, const DeviceClass& b) { return a.coordinates < b.coordinates; });
  if (classes_.size() - first < 2) return;
  for (std::size_t i = first; i < classes_.size(); ++i) {
    DeviceSet named{at};
    for (std::size_t axis = 0; axis < axes; ++axis) {
      if (count_[axis] > 1)
        named.at[axis] = static_cast<std::int32_t>(classes_[i].coordinates[axis]);
    }
    classes_[i].name = place_name(named, dag_.mesh, dag_.context->symbols);
  }
}

std::uint64_t DeviceClasses::count(
    std::uint32_t role, const std::vector<std::uint32_t>& parts,
    const std::vector<std::pair<std::uint32_t, std::uint32_t>>& ranges) const {
  const auto devices = [&](const std::vector<std::int32_t>& at) {
    std::uint64_t product = 1;
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
      std::uint64_t found = 0;
      for (std::uint32_t c = ranges[axis].first; c < ranges[axis].second; ++c) {
        found += part_[axis][c] == parts[axis] &&
                         (at[axis] == DeviceSet::kWhole || at[axis] == static_cast<std::int32_t>(c))
                     ? 1
                     : 0;
      }
      product *= found;
    }
    return product;
  };
  const DeviceSet own{dag_.plan->roles[role].at};
  std::uint64_t all = devices(own.at);
  for (std::uint32_t other = 0; other < dag_.plan->roles.size(); ++other) {
    const DeviceSet set{dag_.plan->roles[other].at};
    if (other != role && own.contains(set)) all -= std::min(all, devices(set.at));
  }
  return all;
}

/// A role has the devices of its set that belong to no narrower role.
bool DeviceClasses::has_device(std::uint32_t role,
                               const std::vector<std::uint32_t>& coordinates) const {
  const DeviceSet own{dag_.plan->roles[role].at};
  if (!own.contains_device(coordinates)) return false;
  for (std::uint32_t other = 0; other < dag_.plan->roles.size(); ++other) {
    const DeviceSet set{dag_.plan->roles[other].at};
    if (other != role && own.contains(set) && set.contains_device(coordinates)) return false;
  }
  return true;
}

bool DeviceClasses::first_device(std::uint32_t role, const std::vector<std::uint32_t>& parts,
                                 std::vector<std::uint32_t>& coordinates) const {
  const std::vector<std::int32_t>& at = dag_.plan->roles[role].at;
  const auto find = [&](const auto& self, std::size_t axis) -> bool {
    if (axis == at.size()) return has_device(role, coordinates);
    for (coordinates[axis] = 0; coordinates[axis] < part_[axis].size(); ++coordinates[axis]) {
      if (at[axis] != DeviceSet::kWhole && at[axis] != static_cast<std::int32_t>(coordinates[axis]))
        continue;
      if (part_[axis][coordinates[axis]] == parts[axis] && self(self, axis + 1)) return true;
    }
    return false;
  };
  return find(find, 0);
}

std::uint64_t DeviceClasses::group_of(const DeviceClass& device, const LinkGroup& group) const {
  std::uint64_t number = 0;
  for (std::size_t axis = 0; axis < group.axis; ++axis)
    number = number * dag_.mesh.axes[axis].size + device.coordinates[axis];
  return number * dag_.mesh.axes[group.axis].size + device.coordinates[group.axis] / group.block;
}

std::uint64_t DeviceClasses::devices_in_group(const DeviceClass& device,
                                              const LinkGroup& group) const {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges;
  for (std::size_t axis = 0; axis < dag_.mesh.axes.size(); ++axis) {
    const std::uint32_t at = device.coordinates[axis];
    if (axis < group.axis) {
      ranges.emplace_back(at, at + 1);
    } else if (axis > group.axis) {
      ranges.emplace_back(0, dag_.mesh.axes[axis].size);
    } else {
      ranges.emplace_back(at / group.block * group.block,
                          at / group.block * group.block + group.block);
    }
  }
  return count(device.role, device.parts, ranges);
}

}  // namespace piper::passes
