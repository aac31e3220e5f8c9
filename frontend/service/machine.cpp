#include "frontend/service/machine.h"

#include <algorithm>

#include "frontend/service/nearest.h"
#include "frontend/source/source_manager.h"
#include "ir/byte_text.h"
#include "ir/diagnostics/forward.h"
#include "passes/simulate/device_classes.h"

namespace piper::service {

namespace {

/// The declared machine; invalid after reporting which there are.
sema::MachineId choose(const sema::Program& program, const std::string& file,
                       const std::string& name, DiagnosticSink& sink) {
  std::vector<std::string> names;
  sema::MachineId found;
  for (std::size_t i = 0; i < program.machines.size(); ++i) {
    if (program.machines[i].module.index() != 0) continue;
    names.emplace_back(program.machines[i].name());
    if (name.empty() || names.back() == name) found = sema::MachineId::at(i);
  }
  if (found.valid() && (!name.empty() || names.size() == 1)) return found;
  const std::string where = file.empty() ? "the session" : "`" + file + "`";
  if (names.empty()) {
    sink.report(Code::no_such_machine, SourceRange(), "{} has no machine", where)
        .hint("write one: `machine lab on MESH { all: device(memory: 80GiB) }`");
  } else if (name.empty()) {
    sink.report(Code::no_such_machine, SourceRange(), "{} has {} machines, and none is named",
                where, names.size())
        .hint("write `{}:NAME`; it has {}", file, quoted_list(names));
  } else {
    const auto meant = nearest(name, names);
    auto&& builder =
        sink.report(Code::no_such_machine, SourceRange(), "{} has no machine `{}`", where, name);
    if (meant) {
      builder.hint("did you mean `{}`?", *meant);
    } else {
      builder.hint("it has {}", quoted_list(names));
    }
  }
  return {};
}

}  // namespace

std::optional<FoundMachine> find_machine(const sema::Program& program, const std::string& file,
                                         const std::string& name,
                                         std::span<const lower::Override> overrides,
                                         Context& context, DiagnosticSink& sink) {
  const sema::MachineId id = choose(program, file, name, sink);
  if (!id.valid() || !program.machines[id.index()].sound) return std::nullopt;
  FoundMachine found;
  for (const sema::Param& param : program.params) {
    if (param.module.index() == 0) found.params.emplace_back(param.syntax->name.name);
  }
  std::vector<lower::Override> own;
  for (const lower::Override& each : overrides) {
    if (std::find(found.params.begin(), found.params.end(), each.name) != found.params.end())
      own.push_back(each);
  }
  auto machine = lower::lower_machine(program, id, own, context, sink);
  if (!machine) return std::nullopt;
  found.machine = std::move(*machine);
  return found;
}

std::optional<FoundMachine> read_machine(const std::string& word,
                                         std::span<const lower::Override> overrides,
                                         const source::FileSystem& files, Context& context,
                                         DiagnosticSink& sink) {
  const std::size_t colon = word.rfind(".pipe:");
  const std::string path = colon == std::string::npos ? word : word.substr(0, colon + 5),
                    name = colon == std::string::npos ? "" : word.substr(colon + 6);
  if (!path.ends_with(".pipe") || (name.empty() && colon != std::string::npos)) {
    sink.report(Code::no_such_machine, SourceRange(), "`{}` is no machine of a file", word)
        .hint("write `FILE.pipe`, or `FILE.pipe:NAME` where it has several");
    return std::nullopt;
  }
  const auto file = source::open(path, {}, files, context.locations.files(), sink);
  if (!file) return std::nullopt;
  // Errors elsewhere in the file do not concern the machine and are reported by a check of the file
  // itself, unless the machine may be part of the text with errors.
  DiagnosticSink of_file(context.locations), of_machine(context.locations);
  const sema::Program program = sema::analyse(*file, files, context, of_file);
  auto found = find_machine(program, path, name, overrides, context, of_machine);
  const bool hidden = !program.complete && of_machine.reported(Code::no_such_machine);
  forward(found || (of_machine.has_errors() && !hidden) ? of_machine : of_file, sink);
  return found;
}

bool fits(const Machine& machine, const dag::Dag& dag, DiagnosticSink& sink) {
  std::vector<Machine::Axis> axes;
  for (const MeshAxis& axis : dag.mesh.axes)
    axes.push_back({std::string(dag.context->text(axis.name)), axis.size, {}});
  if (axes == machine.axes) return true;
  Machine mesh;
  mesh.axes = std::move(axes);
  sink.report(Code::machine_of_another_mesh, dag.mesh.loc,
              "the mesh of the program is {}, and that of the machine `{}` is {}", mesh.mesh_text(),
              machine.name, machine.mesh_text())
      .hint(
          "a machine has the names and sizes of the axes, in their order; sizes may be a `param` that `-D` gives to both");
  return false;
}

void report_small_devices(const Machine& machine, const dag::Dag& dag, DiagnosticSink& sink) {
  const passes::DeviceClasses classes(dag, &machine);
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const auto memory = machine.device(classes[i].coordinates).memory;
    const std::int64_t needed = dag.plan->roles[classes[i].role].arena_bytes;
    if (!memory || needed <= *memory) continue;
    sink.report(Code::device_too_small, SourceRange(),
                "`{}` needs {}, and its device of the machine `{}` has {}", classes[i].name,
                bytes_text(needed), machine.name, bytes_text(*memory))
        .hint(
            "`piper show memory` lists what lives there; `recompute`, more stages, or a higher `zero` of `replicate` need less");
  }
}

}  // namespace piper::service
