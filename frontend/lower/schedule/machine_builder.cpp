#include "frontend/lower/schedule/machine_builder.h"

#include <algorithm>

namespace piper::lower {

MachineBuilder::MachineBuilder(Evaluator& evaluator, std::string name, const Mesh& mesh)
    : evaluator_(evaluator) {
  machine_.name = std::move(name);
  for (const MeshAxis& axis : mesh.axes)
    machine_.axes.push_back({std::string(evaluator.context().text(axis.name)), axis.size, {}});
}

void MachineBuilder::line(const ast::SettingStmt& stmt, Frame& frame) {
  const ast::Pair& pair = stmt.setting;
  const Value value = evaluator_.eval(*pair.value, frame);
  if (evaluator_.failed()) return;
  if (const MachineDevice* device = value.shared<MachineDevice>()) {
    machine_.devices.push_back(*device);
    return;
  }
  const MachineLink* link = value.shared<MachineLink>();
  const auto axis =
      std::find_if(machine_.axes.begin(), machine_.axes.end(),
                   [&](const Machine::Axis& each) { return each.name == pair.name.name; });
  // Refused by the analysis.
  if (link == nullptr || axis == machine_.axes.end()) return evaluator_.set_failed();
  if (link->shared > 1 && !link_group(machine_.axes, link->shared)) {
    evaluator_
        .fail(
            Code::link_shared_unevenly, pair.range, frame,
            "`{}` neighbours of the mesh {} do not form a grid of it, so the devices of one link would differ from those of another",
            link->shared, machine_.mesh_text())
        .hint(
            "devices are counted row by row: a link is shared by a divisor of the last axis, or by all of it times a divisor of the one before, and so on");
    return;
  }
  axis->link = *link;
}

}  // namespace piper::lower
