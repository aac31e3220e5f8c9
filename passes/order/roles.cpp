#include "passes/order/roles.h"

#include <algorithm>
#include <map>
#include <string>

#include "ir/dag/local_body.h"

namespace piper::passes {

using namespace dag;

namespace {

/// A class of devices during refinement: coordinates, the sets that contain it, ascending, and its
/// extents of the uneven shardings.
struct Cell {
  std::vector<std::int32_t> at;
  std::vector<std::uint32_t> sets;
  std::vector<std::int64_t> extents;
};

/// Sets that fix the same axes: a device is in at most one of them, found by its coordinates on
/// these axes.
struct Pattern {
  std::vector<std::size_t> fixed;
  std::map<std::vector<std::int32_t>, std::uint32_t> sets;
};

std::vector<std::uint32_t> sets_holding(const std::vector<Pattern>& patterns,
                                        const std::vector<std::int32_t>& at) {
  std::vector<std::uint32_t> sets;
  std::vector<std::int32_t> key;
  for (const Pattern& pattern : patterns) {
    key.clear();
    for (const std::size_t axis : pattern.fixed) key.push_back(at[axis]);
    if (const auto found = pattern.sets.find(key); found != pattern.sets.end())
      sets.push_back(found->second);
  }
  std::sort(sets.begin(), sets.end());
  return sets;
}

/// If all classes along `axis` are in the same sets and have the same extents, one cell replaces
/// them.
void merge_along(std::vector<Cell>& cells, std::size_t axis, std::size_t classes) {
  if (classes < 2) return;
  std::map<std::vector<std::int32_t>, std::vector<std::size_t>> rows;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    std::vector<std::int32_t> row = cells[i].at;
    row[axis] = 0;
    rows[row].push_back(i);
  }
  std::vector<bool> removed(cells.size(), false);
  for (const auto& [row, members] : rows) {
    if (members.size() != classes) continue;
    const bool equal = std::all_of(members.begin(), members.end(), [&](std::size_t i) {
      return cells[i].sets == cells[members[0]].sets &&
             cells[i].extents == cells[members[0]].extents;
    });
    if (!equal) continue;
    cells[members[0]].at[axis] = DeviceSet::kWhole;
    for (std::size_t k = 1; k < members.size(); ++k) removed[members[k]] = true;
  }
  std::vector<Cell> kept;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (!removed[i]) kept.push_back(std::move(cells[i]));
  }
  cells = std::move(kept);
}

/// Per device set, whether nodes, owners of buckets or claims use it, or it is one of `more`.
/// Bytes, because writing a bit would also read it.
std::vector<std::uint8_t> used_sets(const Dag& dag, std::span<const DeviceSetId> more) {
  std::vector<std::uint8_t> used(dag.device_sets.size(), false);
  for (const Node& node : dag.nodes) {
    if (node.devices.valid()) used[node.devices.index()] = true;
  }
  for (const Bucket& bucket : dag.buckets) {
    for (const DeviceSetId owner : bucket.owners) used[owner.index()] = true;
  }
  for (const directive::RankSteps& claim : dag.claims) used[claim.devices.index()] = true;
  for (const DeviceSetId set : more) used[set.index()] = true;
  return used;
}

/// The sets by the axes that they fix.
std::vector<Pattern> patterns_of(const Dag& dag, const std::vector<std::uint8_t>& used) {
  std::map<AxisMask, Pattern> by_mask;
  for (std::uint32_t id = 0; id < used.size(); ++id) {
    if (!used[id]) continue;
    const DeviceSet& set = dag.device_sets[DeviceSetId(id)];
    Pattern& pattern = by_mask[set.whole_axes()];
    std::vector<std::int32_t> key;
    pattern.fixed.clear();
    for (std::size_t i = 0; i < set.at.size(); ++i) {
      if (set.at[i] == DeviceSet::kWhole) continue;
      pattern.fixed.push_back(i);
      key.push_back(set.at[i]);
    }
    pattern.sets.emplace(std::move(key), id);
  }
  std::vector<Pattern> patterns;
  for (auto& [mask, pattern] : by_mask) patterns.push_back(std::move(pattern));
  return patterns;
}

/// Singles out coordinates so that devices of other coordinates have equal extents: if one axis
/// shards, those of the larger shards, which come first, or those of the smaller ones if these are
/// fewer; else all.
void single_out(const Mesh& mesh, const Sharding& sharding,
                std::vector<std::vector<bool>>& singled) {
  for (const std::uint32_t axis : sharding.axes) {
    std::vector<bool>& of_axis = singled[axis];
    const auto larger = sharding.interval.extent % mesh.axes[axis].size;
    const auto smaller = mesh.axes[axis].size - larger;
    if (sharding.axes.size() > 1) std::fill(of_axis.begin(), of_axis.end(), true);
    else if (larger <= smaller) std::fill_n(of_axis.begin(), larger, true);
    else std::fill_n(of_axis.rbegin(), smaller, true);
  }
}

/// Per axis the coordinates that some set fixes or that `single_out` does, ascending, then kWhole
/// for the others if there are any.
std::vector<std::vector<std::int32_t>> classes_of(const Mesh& mesh,
                                                  const std::vector<Pattern>& patterns,
                                                  std::span<const Sharding> uneven) {
  std::vector<std::vector<bool>> singled(mesh.axes.size());
  for (std::size_t i = 0; i < singled.size(); ++i) singled[i].assign(mesh.axes[i].size, false);
  for (const Pattern& pattern : patterns) {
    for (const auto& [key, set] : pattern.sets) {
      for (std::size_t k = 0; k < key.size(); ++k)
        singled[pattern.fixed[k]][static_cast<std::size_t>(key[k])] = true;
    }
  }
  for (const Sharding& sharding : uneven) single_out(mesh, sharding, singled);
  std::vector<std::vector<std::int32_t>> classes(singled.size());
  for (std::size_t i = 0; i < singled.size(); ++i) {
    for (std::size_t c = 0; c < singled[i].size(); ++c) {
      if (singled[i][c]) classes[i].push_back(static_cast<std::int32_t>(c));
    }
    if (classes[i].size() < singled[i].size()) classes[i].push_back(DeviceSet::kWhole);
  }
  return classes;
}

/// Every combination of classes.
std::vector<Cell> product(const std::vector<std::vector<std::int32_t>>& classes) {
  std::vector<Cell> cells(
      1, Cell{std::vector<std::int32_t>(classes.size(), DeviceSet::kWhole), {}, {}});
  for (std::size_t i = 0; i < classes.size(); ++i) {
    std::vector<Cell> next;
    next.reserve(cells.size() * classes[i].size());
    for (const Cell& cell : cells) {
      for (const std::int32_t c : classes[i]) {
        next.push_back(cell);
        next.back().at[i] = c;
      }
    }
    cells = std::move(next);
  }
  return cells;
}

/// The extents of a cell's devices. Along an axis without a coordinate all have those of the first
/// one that is not singled out.
std::vector<std::int64_t> extents_of(const Mesh& mesh, std::span<const Sharding> uneven,
                                     const std::vector<std::vector<std::int32_t>>& classes,
                                     const std::vector<std::int32_t>& at) {
  std::vector<std::uint32_t> device;
  for (std::size_t i = 0; i < at.size(); ++i) {
    std::int32_t coordinate = at[i];
    if (coordinate == DeviceSet::kWhole) {
      // The classes end with kWhole.
      for (coordinate = 0; classes[i][static_cast<std::size_t>(coordinate)] == coordinate;)
        ++coordinate;
    }
    device.push_back(static_cast<std::uint32_t>(coordinate));
  }
  return local_extents(uneven, mesh, device);
}

/// The roles: the fewest cells that distinguish the sets and the extents, by coordinates.
std::vector<Cell> cells_of(const Mesh& mesh, const std::vector<Pattern>& patterns,
                           std::span<const Sharding> uneven) {
  const std::vector<std::vector<std::int32_t>> classes = classes_of(mesh, patterns, uneven);
  std::vector<Cell> cells = product(classes);
  for (Cell& cell : cells) {
    cell.sets = sets_holding(patterns, cell.at);
    cell.extents = extents_of(mesh, uneven, classes, cell.at);
  }
  // kWhole would be ambiguous beside an axis on which it means "any coordinate without a role of
  // its own".
  const std::size_t axes = classes.size();
  std::vector<bool> mixed(axes);
  for (std::size_t i = 0; i < axes; ++i)
    mixed[i] = classes[i].size() > 1 && classes[i].back() == DeviceSet::kWhole;
  for (std::size_t i = 0; i < axes; ++i) {
    bool clear = true;
    for (std::size_t j = 0; j < axes; ++j) clear = clear && (j == i || !mixed[j]);
    if (clear) merge_along(cells, i, classes[i].size());
  }
  // kWhole, read as unsigned, comes after every coordinate.
  std::sort(cells.begin(), cells.end(), [](const Cell& a, const Cell& b) {
    return std::lexicographical_compare(
        a.at.begin(), a.at.end(), b.at.begin(), b.at.end(), [](std::int32_t x, std::int32_t y) {
          return static_cast<std::uint32_t>(x) < static_cast<std::uint32_t>(y);
        });
  });
  return cells;
}

}  // namespace

RoleTable::RoleTable(const Dag& dag, std::span<const DeviceSetId> more) {
  std::vector<Cell> cells =
      cells_of(dag.mesh, patterns_of(dag, used_sets(dag, more)), uneven_shardings(dag));
  first_role_.assign(dag.device_sets.size() + 1, 0);
  for (const Cell& cell : cells) {
    for (const std::uint32_t set : cell.sets) ++first_role_[set + 1];
  }
  for (std::size_t i = 1; i < first_role_.size(); ++i) first_role_[i] += first_role_[i - 1];
  role_pool_.resize(first_role_.back());
  std::vector<std::uint32_t> next(first_role_.begin(), first_role_.end() - 1);
  for (std::size_t role = 0; role < cells.size(); ++role) {
    for (const std::uint32_t set : cells[role].sets)
      role_pool_[next[set]++] = static_cast<std::uint32_t>(role);
    names_.push_back(
        dag.context->symbol(place_name({cells[role].at}, dag.mesh, dag.context->symbols)));
    at_.push_back(std::move(cells[role].at));
  }
}

bool RoleTable::in(DeviceSetId set, std::size_t role) const {
  const auto roles = roles_of(set);
  return std::binary_search(roles.begin(), roles.end(), static_cast<std::uint32_t>(role));
}

bool RoleTable::contains(DeviceSetId outer, DeviceSetId inner) const {
  if (outer == inner) return true;
  const auto a = roles_of(outer);
  const auto b = roles_of(inner);
  return !b.empty() && std::includes(a.begin(), a.end(), b.begin(), b.end());
}

bool RoleTable::intersects(DeviceSetId a, DeviceSetId b) const {
  if (a == b) return true;
  for (const std::uint32_t role : roles_of(a)) {
    if (in(b, role)) return true;
  }
  return false;
}

RoleNodes::RoleNodes(const Dag& dag, const RoleTable& roles) : first_(roles.size() + 1, 0) {
  devices_.reserve(dag.nodes.size());
  for (const Node& node : dag.nodes) {
    devices_.push_back(adds_in_place(node.kind) ? DeviceSetId() : node.devices);
    if (!devices_.back().valid()) continue;
    for (const std::uint32_t role : roles.roles_of(node.devices)) ++first_[role + 1];
  }
  for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  nodes_.resize(first_.back());
}

void RoleNodes::put(std::span<const NodeId> order, const RoleTable& roles) {
  std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
  for (const NodeId node : order) {
    if (!devices_[node.index()].valid()) continue;
    for (const std::uint32_t role : roles.roles_of(devices_[node.index()]))
      nodes_[next[role]++] = node;
  }
}

}  // namespace piper::passes
