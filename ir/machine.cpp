#include "ir/machine.h"

#include <algorithm>
#include <iterator>

namespace piper {

void DeviceRates::refine(const DeviceRates& later) {
  for (std::optional<double> DeviceRates::* field :
       {&DeviceRates::flops_f64, &DeviceRates::flops_f32, &DeviceRates::flops_bf16,
        &DeviceRates::bandwidth, &DeviceRates::efficiency}) {
    if (later.*field) this->*field = later.*field;
  }
  if (later.kind != nullptr) kind = later.kind;
}

const Processor* find_processor(std::string_view name) {
  static constexpr Processor kProcessors[] = {
#define PROCESSOR(name, f64, f32, bf16, bandwidth) {#name, f64, f32, bf16, bandwidth},
#include "ir/processors.def"
#undef PROCESSOR
  };
  const auto found = std::find_if(std::begin(kProcessors), std::end(kProcessors),
                                  [&](const Processor& each) { return each.name == name; });
  return found == std::end(kProcessors) ? nullptr : &*found;
}

MachineDevice Machine::device(const std::vector<std::uint32_t>& coordinates) const {
  MachineDevice found;
  for (const MachineDevice& line : devices) {
    if (!line.at.contains_device(coordinates)) continue;
    if (line.memory) found.memory = line.memory;
    if (line.speed) found.speed = line.speed;
    if (line.overlap) found.overlap = line.overlap;
    if (line.host) found.host = line.host;
    found.rates.refine(line.rates);
  }
  return found;
}

std::string Machine::mesh_text() const {
  std::string text;
  for (const Axis& axis : axes)
    text += (text.empty() ? "" : ", ") + axis.name + ": " + std::to_string(axis.size);
  return "(" + text + ")";
}

std::optional<LinkGroup> link_group(const std::vector<Machine::Axis>& axes, std::uint32_t shared) {
  std::uint32_t left = shared;
  for (std::size_t axis = axes.size(); axis-- > 0;) {
    const std::uint32_t size = axes[axis].size;
    if (left < size || axis == 0)
      return size % left == 0 ? std::optional(LinkGroup{axis, left}) : std::nullopt;
    if (left % size != 0) return std::nullopt;
    left /= size;
  }
  return std::nullopt;
}

}  // namespace piper
