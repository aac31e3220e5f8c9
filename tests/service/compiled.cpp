#include "tests/service/compiled.h"

#include <string_view>
#include <utility>

namespace piper::service {

std::vector<lower::Override> sizes(int p, int m, int v) {
  std::vector<lower::Override> given = {{"p", std::to_string(p)}, {"m", std::to_string(m)}};
  if (v > 0) given.push_back({"v", std::to_string(v)});
  return given;
}

Compiled::Compiled(const std::string& input, const std::string& name,
                   std::vector<lower::Override> overrides, dag::Level level,
                   const std::string& text) {
  if (!text.empty()) files_.add(input, text);
  compilation_.emplace(files_, std::move(overrides));
  sink_.emplace(compilation_->context().locations);
  if (!compilation_->open(input, *sink_)) return;
  auto subject = compilation_->subject(name, false, *sink_);
  if (!subject) return;
  dag_ = compilation_->compile(*subject, {level, false, {}}, *sink_);
}

std::optional<passes::Timeline> Compiled::simulate(const passes::OperationCosts& costs) {
  return dag_ ? passes::simulate_operations(*dag_, costs, *sink_) : std::nullopt;
}

std::string Compiled::reports() const {
  return render_text(sink_->sorted(), compilation_->context().locations.files());
}

Planned::Planned(const std::string& input, std::vector<lower::Override> overrides,
                 const std::string& text) {
  if (!text.empty()) files_.add(input, text);
  compilation_.emplace(files_, std::move(overrides));
  sink_.emplace(compilation_->context().locations);
  if (!compilation_->open(input, *sink_)) return;
  auto subject = compilation_->subject("", false, *sink_);
  if (subject) dag_ = compilation_->compile(*subject, {dag::Level::planned, false, {}}, *sink_);
}

passes::ActionCosts Planned::costs(double f, double b) const {
  passes::ActionCosts costs =
      passes::action_costs(*dag_, {.bytes = 1e30, .latency = 0, .bandwidth = 1e30});
  for (std::size_t body = 0; body < dag_->bodies.size(); ++body) {
    const std::string_view name = dag_->context->text(dag_->bodies[body].name);
    costs.body[body] = name.ends_with(".F") ? f : name.ends_with(".B") ? b : 0;
  }
  return costs;
}

Machine Planned::machine() const {
  Machine machine{"lab", {}, {}};
  for (const MeshAxis& axis : dag_->mesh.axes)
    machine.axes.push_back({std::string(dag_->context->text(axis.name)), axis.size, {}});
  return machine;
}

MachineDevice device_at(const Machine& machine, std::size_t axis, int coordinate) {
  MachineDevice device;
  device.at.at.assign(machine.axes.size(), DeviceSet::kWhole);
  if (coordinate >= 0) device.at.at[axis] = coordinate;
  return device;
}

}  // namespace piper::service
