#pragma once
// Performance of devices and links: the value of a `machine` of a program, which the simulator
// reads. It has no context and no source locations.
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
  // Bytes between the device and its memory.
  std::optional<double> bandwidth;
  // The fraction of these that it reaches; none: 1.
  std::optional<double> efficiency;
  const char* kind = nullptr;  // the processor of the data sheet

  /// Takes the rates that `later` states and keeps the others.
  void refine(const DeviceRates& later);
};

/// A device by its data sheet (processors.def).
struct Processor {
  const char* name;
  double flops_f64, flops_f32, flops_bf16, bandwidth;
  DeviceRates rates() const { return {flops_f64, flops_f32, flops_bf16, bandwidth, {}, name}; }
};
/// Null if there is none.
const Processor* find_processor(std::string_view name);

/// One line: its values override those of earlier lines for its devices.
struct MachineDevice {
  DeviceSet at;
  std::optional<std::int64_t> memory;  // bytes; none: more than any plan needs
  std::optional<double> speed;         // a device of speed 2 does work in half the time; none: 1
  // Factor on the time of work while a communication runs on the device; none: 1.
  std::optional<double> overlap;
  DeviceRates rates;
  // Bytes per second to and from the memory of the host; none: as between devices without a link.
  std::optional<double> host;
};

/// The link of one axis, for its messages and collectives.
struct MachineLink {
  double latency = 0;    // seconds before the first byte arrives
  double bandwidth = 1;  // bytes per second, in each direction
  // Number of devices, neighbours in row-major order, that share one link equally.
  std::uint32_t shared = 1;
};

struct Machine {
  struct Axis {
    std::string name;
    std::uint32_t size = 1;
    std::optional<MachineLink> link;
    friend bool operator==(const Axis& a, const Axis& b) {
      return a.name == b.name && a.size == b.size;
    }
  };
  std::string name;
  std::vector<Axis> axes;              // of its mesh
  std::vector<MachineDevice> devices;  // in text order

  /// The values for the device of these coordinates.
  MachineDevice device(const std::vector<std::uint32_t>& coordinates) const;
  /// `(pp: 4, dp: 2)`
  std::string mesh_text() const;
};

/// The devices that share one link: neighbours along `axis`, with all positions of the inner axes.
struct LinkGroup {
  std::size_t axis = 0;     // the axes after it are whole
  std::uint32_t block = 1;  // number of neighbours along it
};
/// Nothing if `shared` neighbours form no grid of the mesh, because groups would differ.
std::optional<LinkGroup> link_group(const std::vector<Machine::Axis>& axes, std::uint32_t shared);

}  // namespace piper
