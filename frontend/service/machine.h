#pragma once
// Machines of files, and whether they fit the mesh of a plan.
//
//   const auto found = read_machine("lab.pipe:lab", {}, files, context, sink);
//   if (found && fits(found->machine, dag, sink)) report_small_devices(found->machine, dag, sink);

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "frontend/lower/lower.h"
#include "ir/dag/plan.h"

namespace piper::service {

struct FoundMachine {
  Machine machine;
  std::vector<std::string> params;  // of its file, which `-D` replaces
};

/// `FILE.pipe`, which has one machine, or `FILE.pipe:NAME`. It takes the overrides that the file
/// has. Nothing after reporting an error.
std::optional<FoundMachine> read_machine(const std::string& word,
                                         std::span<const lower::Override> overrides,
                                         const source::FileSystem& files, Context& context,
                                         DiagnosticSink& sink);
/// The machine of that name in a program; empty: the only one. `file`: its file, empty in a
/// session.
std::optional<FoundMachine> find_machine(const sema::Program& program, const std::string& file,
                                         const std::string& name,
                                         std::span<const lower::Override> overrides,
                                         Context& context, DiagnosticSink& sink);

/// Whether its axes are those of the plan's mesh; reports an error if not.
bool fits(const Machine& machine, const dag::Dag& dag, DiagnosticSink& sink);
/// Warns of devices with less memory than the plan allocates.
void report_small_devices(const Machine& machine, const dag::Dag& dag, DiagnosticSink& sink);

}  // namespace piper::service
