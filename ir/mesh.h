#pragma once
// Meshes and device sets. A mesh has named axes, row-major; a device set is a grid slice of it:
// some coordinates fixed, the other axes whole. Sets are interned; there is no loop over devices
// before projection, so 2,048 devices cost no more than their roles.
//
//   mesh cluster(pp: 2, dp: 2)
//   cluster[pp: 1]  =  devices {2, 3}        cluster[]  =  all four

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/context.h"

namespace piper {

struct MeshAxis {
  Symbol name;
  std::uint32_t size = 1;
  friend bool operator==(const MeshAxis&, const MeshAxis&) = default;
};

/// A set of mesh axes: bit i is axis i.
using AxisMask = std::uint16_t;
inline constexpr std::size_t kMaxAxes = 16;

struct Mesh {
  Symbol name;
  std::vector<MeshAxis> axes;
  LocId loc;
  /// The number of devices.
  std::uint64_t devices() const;
  /// The axis of that name, or axes.size().
  std::size_t find(Symbol axis) const;
};

using DeviceSetId = Id<struct DeviceSetTag>;

/// One entry per mesh axis: a coordinate, or kWhole for all of them.
struct DeviceSet {
  static constexpr std::int32_t kWhole = -1;
  std::vector<std::int32_t> at;
  friend bool operator==(const DeviceSet&, const DeviceSet&) = default;

  AxisMask whole_axes() const;
  /// Both sets have a device in common.
  bool intersects(const DeviceSet& other) const;
  /// Every device of `other` is in this set.
  bool contains(const DeviceSet& other) const;
  std::uint64_t devices(const Mesh& mesh) const;
  /// Whether the device of these coordinates is in the set.
  bool contains_device(const std::vector<std::uint32_t>& coordinates) const;
};

class DeviceSetTable {
 public:
  DeviceSetId intern(const DeviceSet& set);
  const DeviceSet& operator[](DeviceSetId id) const { return sets_[id.index()]; }
  std::size_t size() const { return sets_.size(); }

 private:
  std::vector<DeviceSet> sets_;
  std::map<std::vector<std::int32_t>, DeviceSetId> ids_;
};

/// The name of the set inside names of nodes: `pp1.dp0`; the mesh's name if no coordinate is fixed.
std::string place_name(const DeviceSet& set, const Mesh& mesh, const SymbolTable& symbols);
/// `cluster[pp: 1]`, `cluster[]`.
std::string print(const DeviceSet& set, const Mesh& mesh, const SymbolTable& symbols);

/// Coordinates of device `rank` (row-major) and back.
std::vector<std::uint32_t> coordinates_of(const Mesh& mesh, std::uint64_t rank);
std::uint64_t rank_of(const Mesh& mesh, const std::vector<std::uint32_t>& coordinates);

}  // namespace piper
