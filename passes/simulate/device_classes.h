#pragma once
// The devices that a simulation of a plan runs: one for each class of equal devices with the same
// work and equal links.
//
//   DeviceClasses classes(dag, &machine);
//   classes[0].role, classes[0].replicas      // without a machine: one per role
//
// Guarantees: in the order of the roles, each role at least once; within a role by coordinates. The
// devices of a class are interchangeable: no line of the machine distinguishes them, nor do the
// devices with which they share a link.

#include <cstdint>
#include <string>
#include <vector>

#include "ir/dag/plan.h"
#include "ir/machine.h"

namespace piper::passes {

struct DeviceClass {
  std::uint32_t role = 0;                  // of the plan
  std::uint64_t replicas = 1;              // its devices
  std::vector<std::uint32_t> coordinates;  // of the first device
  std::vector<std::uint32_t> parts;        // per mesh axis: its part of the coordinates
  std::string name;                        // `pp0`; `pp0.dp1` if the devices of the role differ
};

class DeviceClasses {
 public:
  /// `machine`: it has the axes of the mesh; null: all devices are equal.
  DeviceClasses(const dag::Dag& dag, const Machine* machine);

  std::size_t size() const { return classes_.size(); }
  const DeviceClass& operator[](std::size_t i) const { return classes_[i]; }
  /// The number of parts into which the coordinates of an axis are divided.
  std::uint32_t parts(std::size_t axis) const { return count_[axis]; }
  /// The number of the link group that contains the first device of a class, and how many devices
  /// of the class it contains.
  std::uint64_t group_of(const DeviceClass& device, const LinkGroup& group) const;
  std::uint64_t devices_in_group(const DeviceClass& device, const LinkGroup& group) const;

 private:
  void single_out(std::size_t axis, const std::vector<bool>& single);
  void split_mixed_blocks(std::size_t axis, std::uint32_t block);
  void add_role(std::uint32_t role);
  /// The number of devices of a role whose coordinates have these parts, and are in [first, end) of
  /// an axis.
  std::uint64_t count(std::uint32_t role, const std::vector<std::uint32_t>& parts,
                      const std::vector<std::pair<std::uint32_t, std::uint32_t>>& ranges) const;
  bool first_device(std::uint32_t role, const std::vector<std::uint32_t>& parts,
                    std::vector<std::uint32_t>& coordinates) const;
  bool has_device(std::uint32_t role, const std::vector<std::uint32_t>& coordinates) const;

  const dag::Dag& dag_;
  std::vector<std::vector<std::uint32_t>> part_;  // per axis and coordinate
  std::vector<std::uint32_t> count_;              // per axis
  std::vector<DeviceClass> classes_;
};

}  // namespace piper::passes
