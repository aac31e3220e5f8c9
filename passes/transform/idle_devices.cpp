#include "passes/transform/idle_devices.h"

#include <algorithm>

namespace piper::passes {

using namespace dag;

namespace {

/// Calls `visit` with the number of each device of the set.
template <typename Visit>
void for_each_device(const Mesh& mesh, const DeviceSet& set, std::size_t axis, std::uint64_t number,
                     const Visit& visit) {
  if (axis == mesh.axes.size()) return visit(number);
  const std::uint32_t size = mesh.axes[axis].size;
  const bool whole = set.at[axis] == DeviceSet::kWhole;
  const auto first = whole ? 0u : static_cast<std::uint32_t>(set.at[axis]);
  for (std::uint32_t c = first; c < (whole ? size : first + 1); ++c)
    for_each_device(mesh, set, axis + 1, number * size + c, visit);
}

/// `pp[2..8]`, `pp[1], pp[3..5]`.
std::string coordinates_text(std::string_view axis, const std::vector<std::uint32_t>& coordinates) {
  std::string text;
  for (std::size_t i = 0; i < coordinates.size();) {
    std::size_t end = i + 1;
    while (end < coordinates.size() && coordinates[end] == coordinates[end - 1] + 1) ++end;
    text += std::string(text.empty() ? "`" : ", `") + std::string(axis) + "[" +
            std::to_string(coordinates[i]);
    text += (end - i > 1 ? ".." + std::to_string(coordinates[end - 1] + 1) : "") + "]`";
    i = end;
  }
  return text;
}

}  // namespace

std::vector<std::uint64_t> idle_devices(const Dag& dag) {
  std::vector<bool> used(dag.device_sets.size(), false);
  for (const Node& node : dag.nodes) {
    if (runs_body(node.kind)) used[node.devices.index()] = true;
  }
  std::vector<bool> busy(dag.mesh.devices(), false);
  NodePolls polls(dag.context->cancellation);
  for (std::size_t s = 0; s < used.size(); ++s) {
    if (!used[s]) continue;
    const DeviceSet& set = dag.device_sets[DeviceSetId::at(s)];
    polls.visit(set.devices(dag.mesh));
    for_each_device(dag.mesh, set, 0, 0, [&](std::uint64_t device) { busy[device] = true; });
  }
  std::vector<std::uint64_t> idle;
  for (std::uint64_t device = 0; device < busy.size(); ++device) {
    if (!busy[device]) idle.push_back(device);
  }
  return idle;
}

std::string idle_devices_text(const Dag& dag, const std::vector<std::uint64_t>& idle) {
  constexpr std::size_t kShown = 4;
  const Mesh& mesh = dag.mesh;
  for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis) {
    std::vector<std::uint64_t> count(mesh.axes[axis].size, 0);
    for (const std::uint64_t device : idle) ++count[coordinates_of(mesh, device)[axis]];
    std::vector<std::uint32_t> coordinates;
    for (std::uint32_t c = 0; c < count.size(); ++c) {
      if (count[c] == mesh.devices() / mesh.axes[axis].size) coordinates.push_back(c);
    }
    if (coordinates.size() * (mesh.devices() / mesh.axes[axis].size) == idle.size())
      return coordinates_text(dag.context->text(mesh.axes[axis].name), coordinates);
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, idle.size()); ++i) {
    DeviceSet device;
    for (const std::uint32_t c : coordinates_of(mesh, idle[i]))
      device.at.push_back(static_cast<std::int32_t>(c));
    text += (i == 0 ? "`" : ", `") + print(device, mesh, dag.context->symbols) + "`";
  }
  return text +
         (idle.size() > kShown ? " and " + std::to_string(idle.size() - kShown) + " more" : "");
}

}  // namespace piper::passes
