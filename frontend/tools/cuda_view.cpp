#include "frontend/tools/cuda_view.h"

#include <filesystem>

#include "backend/cuda/emit_enqueue.h"
#include "backend/cuda/nvrtc.h"
#include "backend/cuda/print_program.h"
#include "embedded/cuda_headers.h"
#include "llvm/Support/JSON.h"

namespace piper::tools {

namespace {

using backend::cuda::BodyStep;
using backend::cuda::Compiled;
using backend::cuda::KernelEntry;
using backend::cuda::KernelSet;

constexpr const char* kArchitectures[] = {"sm_80", "sm_90a", "sm_100"};

/// The roles' programs with the kernels of all their bodies.
struct CudaPrograms {
  CudaPrograms(const dag::Dag& dag, backend::Target target)
      : programs(backend::make_programs(dag, target)) {
    for (const backend::KernelBody& body : programs.bodies) steps.push_back(kernels.add(body));
    members = backend::cuda::member_counts(dag, programs);
  }
  std::string calls(std::size_t role) const {
    return backend::cuda::print_calls(programs.roles[role], programs.bodies, kernels, steps,
                                      members[role]);
  }
  backend::ProgramSet programs;
  KernelSet kernels;
  std::vector<std::vector<BodyStep>> steps;         // per body
  std::vector<std::vector<std::uint32_t>> members;  // per role, of its communicators
};

std::string right(const std::string& text, std::size_t columns) {
  return std::string(columns > text.size() ? columns - text.size() : 0, ' ') + text;
}

/// One row per kernel; `compiled`: for one architecture, or null.
std::string table(const KernelSet& kernels, const Compiled* compiled) {
  std::size_t width = 6;
  for (const KernelEntry& each : kernels.list()) width = std::max(width, each.name.size());
  const auto row = [&](std::string name, const std::vector<std::string>& cells,
                       const std::string& title) {
    name.resize(width, ' ');
    constexpr std::size_t kWidths[] = {8, 8, 15, 15, 10, 9, 7};
    for (std::size_t i = 0; i < cells.size(); ++i) name += "  " + right(cells[i], kWidths[i]);
    return name + "  " + title + "\n";
  };
  std::string text =
      row("kernel", {"blocks", "threads", "bytes", "operations", "registers", "shared", "spills"},
          "what it does");
  for (const KernelEntry& each : kernels.list()) {
    const auto found = compiled == nullptr ? decltype(compiled->kernels.end())()
                                           : compiled->kernels.find(each.name);
    const bool known = compiled != nullptr && found != compiled->kernels.end();
    text += row(
        each.name,
        {std::to_string(each.launch.blocks), std::to_string(each.launch.threads),
         std::to_string(each.bytes), std::to_string(each.operations),
         known ? std::to_string(found->second.registers) : "-", std::to_string(each.shared_bytes),
         known ? std::to_string(found->second.spill_bytes) : "-"},
        each.title);
  }
  return text;
}

llvm::json::Array json_table(const KernelSet& kernels, const Compiled* compiled) {
  llvm::json::Array rows;
  for (const KernelEntry& each : kernels.list()) {
    llvm::json::Object row{{"name", each.name},
                           {"title", each.title},
                           {"blocks", each.launch.blocks},
                           {"threads", each.launch.threads},
                           {"bytes", each.bytes},
                           {"operations", each.operations},
                           {"shared_bytes", each.shared_bytes}};
    if (compiled != nullptr) {
      if (const auto found = compiled->kernels.find(each.name); found != compiled->kernels.end()) {
        row["registers"] = found->second.registers;
        row["spill_bytes"] = found->second.spill_bytes;
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

std::string cuda_program_text(const dag::Dag& dag, backend::Target target) {
  const CudaPrograms cuda(dag, target);
  std::string text;
  for (std::size_t role = 0; role < cuda.programs.roles.size(); ++role)
    text += cuda.calls(role) + "\n";
  return text + backend::cuda::print_communicators(dag, cuda.programs);
}

bool build_cuda(Session& session, const dag::Dag& dag, const std::string& folder) {
  const std::filesystem::path to = folder;
  const CudaPrograms cuda(dag, session.compilation().target(dag.settings));
  llvm::json::Array files;
  const auto write = [&](const std::string& name, const std::string& text, bool listed) {
    const std::filesystem::path path = to / name;
    if (!session.make_folder(path.parent_path().string()) ||
        !session.write_file(path.string(), text))
      return false;
    if (!listed) return true;
    files.push_back(path.string());
    session.words() << path.string() << "\n";
    return true;
  };
  for (const embedded::File& header : embedded::cuda_headers()) {
    if (!write(std::string(header.path), std::string(header.text), false)) return false;
  }
  if (!write("kernels.cu", cuda.kernels.source(), true)) return false;
  for (std::size_t r = 0; r < cuda.programs.roles.size(); ++r) {
    const backend::DeviceProgram& role = cuda.programs.roles[r];
    if (!write(role.role + ".cpp",
               backend::cuda::emit_enqueue(role, cuda.programs.bodies, cuda.kernels, cuda.steps),
               true))
      return false;
    if (!write(role.role + ".calls.txt", cuda.calls(r), true)) return false;
  }
  if (!write("communicators.txt", backend::cuda::print_communicators(dag, cuda.programs), true))
    return false;

  std::string reason;
  std::optional<Compiled> shown;  // for Hopper; the others are compiled to know that they do
  if (const auto nvrtc = backend::cuda::Nvrtc::open(session.console().environment, reason)) {
    for (const char* architecture : kArchitectures) {
      Compiled made = nvrtc->compile(cuda.kernels.source(), architecture);
      if (!made.ok) {
        session.sink()
            .report(Code::generated_code_refused, SourceRange(),
                    "NVRTC {} did not compile the kernels of `{}` for {}: {}", nvrtc->version(),
                    (to / "kernels.cu").string(), architecture,
                    made.log.substr(0, made.log.find('\n')))
            .hint(
                "this is a fault of piper, not of the program, unless the architecture is newer than this NVRTC");
        return false;
      }
      if (!write(std::string("kernels.") + architecture + ".cubin", made.cubin, true)) return false;
      if (std::string_view(architecture) == "sm_90a") shown = std::move(made);
    }
  } else {
    reason = "kernels not compiled, NVRTC is not here: " + reason + " (`piper doctor`)\n";
  }
  const std::string text =
      table(cuda.kernels, shown ? &*shown : nullptr) +
      (shown ? "registers, shared memory and spills: of sm_90a, in bytes, except registers\n"
             : reason);
  if (!write("kernels.txt", text, false)) return false;
  session.words() << text << backend::cuda::own_attention_text(cuda.programs.bodies);
  if (session.arguments().format == "json") {
    std::string out;
    llvm::raw_string_ostream(out) << llvm::json::Value(
        llvm::json::Object{{"schema", 1},
                           {"files", std::move(files)},
                           {"cuda_kernels", json_table(cuda.kernels, shown ? &*shown : nullptr)}});
    session.console().out << out << "\n";
  }
  return true;
}

}  // namespace piper::tools
