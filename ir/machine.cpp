#include "ir/machine.h"

namespace piper {

MachineDevice Machine::device(const std::vector<std::uint32_t>& coordinates) const {
  MachineDevice found;
  for (const MachineDevice& line : devices) {
    if (!line.at.contains_device(coordinates)) continue;
    if (line.memory) found.memory = line.memory;
    if (line.speed) found.speed = line.speed;
    if (line.overlap) found.overlap = line.overlap;
    if (line.host) found.host = line.host;
  }
  return found;
}

std::string Machine::mesh_text() const {
  std::string text;
  for (const Axis& axis : axes) text += (text.empty() ? "" : ", ") + axis.name + ": " + std::to_string(axis.size);
  return "(" + text + ")";
}

std::optional<LinkGroup> link_group(const std::vector<Machine::Axis>& axes, std::uint32_t shared) {
  std::uint32_t left = shared;
  for (std::size_t axis = axes.size(); axis-- > 0;) {
    const std::uint32_t size = axes[axis].size;
    if (left < size || axis == 0) return size % left == 0 ? std::optional(LinkGroup{axis, left}) : std::nullopt;
    if (left % size != 0) return std::nullopt;
    left /= size;
  }
  return std::nullopt;
}

}  // namespace piper
