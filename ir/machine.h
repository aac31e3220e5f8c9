#pragma once
// What devices and links can do: the value of a `machine` of a program, which the simulator of plans reads. It knows no context and no place in a text.
//
//   machine lab on cluster { all: device(memory: 80GiB, kind: h100)  slow: device(at: pp[3], speed: 0.5)  dp: link(bandwidth: 12GiB, latency: 20us, shared: 8) }

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/mesh.h"

namespace piper {

/// The rates of a device per second; none: not stated.
struct DeviceRates {
  std::optional<double> flops_f64, flops_f32, flops_bf16;  // operations
  std::optional<double> bandwidth;                         // bytes between the device and its memory
  std::optional<double> efficiency;                        // the part of these that it reaches; none: 1
  const char* kind = nullptr;                              // whose data sheet they are from

  /// Those of `later`, and where it has none these.
  void refine(const DeviceRates& later);
};

/// A device by its data sheet (processors.def).
struct Processor {
  const char* name;
  double flops_f64, flops_f32, flops_bf16, bandwidth;
  DeviceRates rates() const { return {flops_f64, flops_f32, flops_bf16, bandwidth, {}, name}; }
};
/// Null where none has that name.
const Processor* find_processor(std::string_view name);

/// One line: what it says holds for its devices, also where a line before says otherwise.
struct MachineDevice {
  DeviceSet at;
  std::optional<std::int64_t> memory;  // bytes; none: more than any plan needs
  std::optional<double> speed;         // a device of speed 2 does work in half the time; none: 1
  std::optional<double> overlap;       // work takes so many times as long while a communication runs on the device; none: 1
  DeviceRates rates;
  std::optional<double> host;          // bytes per second to the memory of the host, and from there; none: as between devices without a link
};

/// Of one axis: what its messages and collectives run over.
struct MachineLink {
  double latency = 0;          // seconds before the first byte arrives
  double bandwidth = 1;        // bytes per second, in each direction
  std::uint32_t shared = 1;    // so many devices, neighbours in their row-major order, share one link in equal parts
};

struct Machine {
  struct Axis {
    std::string name;
    std::uint32_t size = 1;
    std::optional<MachineLink> link;
    friend bool operator==(const Axis& a, const Axis& b) { return a.name == b.name && a.size == b.size; }
  };
  std::string name;
  std::vector<Axis> axes;              // of its mesh
  std::vector<MachineDevice> devices;  // in text order

  /// What holds for the device of these coordinates.
  MachineDevice device(const std::vector<std::uint32_t>& coordinates) const;
  /// `(pp: 4, dp: 2)`
  std::string mesh_text() const;
};

/// The devices that share one link of `shared`: neighbours along an axis, with all of the axes behind it.
struct LinkGroup {
  std::size_t axis = 0;      // whole axes behind it
  std::uint32_t block = 1;   // so many neighbours along it
};
/// Nothing where so many neighbours are no grid of the mesh: groups of them would differ.
std::optional<LinkGroup> link_group(const std::vector<Machine::Axis>& axes, std::uint32_t shared);

}  // namespace piper
