#pragma once
// Roles: classes of devices that run the same work. Partition refinement over the device sets in
// use; no loop over devices.
//
// Guarantees: every device of the mesh belongs to exactly one role, two devices of one role are in
// the same sets and their boxes have the same extents, and the numbering is by coordinates, so it
// is a function of the sets and the uneven shardings alone.
//
//   mesh cluster(pp: 2, dp: 64), sets cluster[pp: 0] and cluster[pp: 1]   ->   roles pp0, pp1
//   mesh line(dp: 4), a batch of 9 sharded over dp                        ->   roles dp0 (3 samples), line (2 samples each)

#include <cstdint>
#include <span>
#include <vector>

#include "ir/dag/dag.h"

namespace piper::passes {

class RoleTable {
 public:
  /// The roles of the sets that nodes, bucket owners and claims of `dag` use, and of `more`.
  RoleTable(const dag::Dag& dag, std::span<const DeviceSetId> more);

  std::size_t size() const { return at_.size(); }
  /// Per mesh axis the coordinate, or DeviceSet::kWhole for any without a role of its own.
  const std::vector<std::int32_t>& at(std::size_t role) const { return at_[role]; }
  /// `pp0`, `pp1.dp0`; the mesh's name if no coordinate is fixed.
  Symbol name(std::size_t role) const { return names_[role]; }
  /// The roles inside a set, ascending; none for a set that was not in use.
  std::span<const std::uint32_t> roles_of(DeviceSetId set) const {
    return {role_pool_.data() + first_role_[set.index()],
            first_role_[set.index() + 1] - first_role_[set.index()]};
  }
  bool in(DeviceSetId set, std::size_t role) const;
  /// Every device of `inner` is in `outer`. Both in use.
  bool contains(DeviceSetId outer, DeviceSetId inner) const;
  bool intersects(DeviceSetId a, DeviceSetId b) const;

 private:
  std::vector<std::vector<std::int32_t>> at_;
  std::vector<Symbol> names_;
  std::vector<std::uint32_t> first_role_;  // per set id, one more
  std::vector<std::uint32_t> role_pool_;
};

/// The nodes of each role in the global order, without in-place sums.
class RoleNodes {
 public:
  /// Counts them; needs no order.
  RoleNodes(const dag::Dag& dag, const RoleTable& roles);
  /// `order`: all nodes. To be called once.
  void put(std::span<const dag::NodeId> order, const RoleTable& roles);

  std::span<const dag::NodeId> of(std::size_t role) const {
    return std::span(nodes_).subspan(first_[role], first_[role + 1] - first_[role]);
  }
  std::size_t size() const { return nodes_.size(); }

 private:
  std::vector<std::uint32_t> first_;  // per role, one more
  // Per node, in a compact table, because the order visits nodes at random; invalid: no role runs
  // it.
  std::vector<DeviceSetId> devices_;
  std::vector<dag::NodeId> nodes_;
};

}  // namespace piper::passes
