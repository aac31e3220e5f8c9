#include "backend/cuda/emit_enqueue.h"

#include "backend/device_program/stream_names.h"
#include "backend/dtypes.h"
#include "backend/kernel/emit_bodies.h"
#include "backend/kernel/names.h"
#include "ir/diagnostics/counted.h"

namespace piper::backend::cuda {

namespace {

std::string number(std::uint64_t value) { return std::to_string(value); }

class Emission {
 public:
  Emission(const DeviceProgram& program, const std::vector<KernelBody>& bodies,
           const KernelSet& kernels, const std::vector<std::vector<BodyStep>>& steps)
      : program_(program),
        bodies_(bodies),
        kernels_(kernels),
        steps_(steps),
        streams_(stream_names(program)),
        function_of_(bodies.size()),
        calls_of_(bodies.size()) {}

  std::string run() {
    std::string functions;
    for (const Instruction& each : program_.instructions) {
      if (each.kind != Instruction::Kind::run) continue;
      if (function_of_[each.body].empty()) {
        used_.push_back(each.body);
        function_of_[each.body] = names_.add(bodies_[each.body].name);
        functions += body(each.body);
      }
      call_of_.push_back(static_cast<std::uint32_t>(calls_of_[each.body].size()));
      calls_of_[each.body].push_back(&each);
    }
    out_ = "// Enqueues one training step of the ranks of role " + comment(program_.role) + ": " +
           counted(program_.instructions.size(), "action") + " on " +
           counted(program_.streams.size(), "stream") +
           ".\n// Numbers are bytes from the start of the arena (" + number(program_.arena_bytes) +
           " bytes, the first " + number(program_.state_bytes) +
           " of them state).\n#include \"runtime/device_abi.h\"\n\n" + stream_constants(streams_) +
           "\n" + shapes_.text + functions;
    calls();
    kernels();
    enqueue();
    return std::move(out_);
  }

 private:
  std::string body(std::uint32_t index) {
    const KernelBody& body = bodies_[index];
    const std::string& function = function_of_[index];
    std::string text =
        "\n// @" + body.name + "\n" + operand_struct(body, function) + "\n\nstatic int " +
        function +
        "(PiperDevice* device, PiperRank* rank, const uint32_t stream, const uint32_t action, const " +
        function + "_at* at) {\n" + operand_pointers(body);
    text += "  (void)arena;\n  (void)at;\n";
    if (steps_[index].empty()) text += "  (void)device;\n  (void)stream;\n  (void)action;\n";
    for (const BodyStep& step : steps_[index]) text += this->step(body, step);
    return text + "  return 0;\n}\n";
  }

  std::string step(const KernelBody& body, const BodyStep& step) {
    const auto name = [&](BufferIndex index) { return body.buffers[index].name; };
    const auto adds = [&](BufferIndex index) { return "at->" + name(index) + "_adds"; };
    const std::string common = "(device, rank, stream, action, ";
    switch (step.kind) {
      case BodyStep::Kind::check: {
        const SourceLocation& at = step.check.where;
        std::string where = "{" + quoted(at.file);
        for (const std::uint32_t part : {at.line, at.column, at.end_line, at.end_column})
          where += ", " + number(part);
        return "  {\n    static const PiperCheck check = {" + where + "}, \"" +
               (step.check.target ? kTargetOutOfRange : kIndexOutOfRange) + "\", " +
               std::to_string(body.buffers[step.check.buffer].elements) + ", " +
               std::to_string(step.check.bound) + ", " +
               std::to_string(step.check.ignore.value_or(0)) + ", " +
               (step.check.ignore ? "1" : "0") + "};\n    if (device->check" + common + "&check, " +
               name(step.check.buffer) + ")) return 1;\n  }\n";
      }
      case BodyStep::Kind::clear: {
        const KernelBuffer& buffer = body.buffers[step.buffer];
        const std::string call = "device->clear" + common + name(step.buffer) + ", " +
                                 number(static_cast<std::uint64_t>(buffer.elements) *
                                        tensor::dtype_bytes(buffer.dtype)) +
                                 ")";
        return "  if (" + (buffer.accumulates ? "!" + adds(step.buffer) + " && " : std::string()) +
               call + ") return 1;\n";
      }
      case BodyStep::Kind::kernel: {
        const KernelEntry& kernel = kernels_.list()[step.number];
        std::string arguments;
        for (const Argument& argument : step.arguments) {
          arguments += arguments.empty() ? "" : ", ";
          switch (argument.kind) {
            case Argument::Kind::draw: arguments += "&device->draw"; break;
            case Argument::Kind::first: arguments += "&" + first_of(body, argument.interval); break;
            case Argument::Kind::buffer: arguments += "&" + name(argument.buffer); break;
            case Argument::Kind::adds: arguments += "&" + adds(argument.buffer); break;
          }
        }
        return "  {  // " + comment(kernel.title) + "\n    const void* const arguments[] = {" +
               arguments + "};\n    if (device->kernel" + common + number(step.number) + " /* " +
               kernel.name + " */, arguments)) return 1;\n  }\n";
      }
      case BodyStep::Kind::library: break;
    }
    const auto& call = std::get<LibraryCall>(body.steps[step.number]);
    return "  // " + comment(call.value) + "\n  if (piper_call" + common +
           call_arguments(body, call, shapes_) + ")) return 1;\n";
  }

  void calls() {
    for (const std::uint32_t index : used_) {
      out_ +=
          "\nstatic const " + function_of_[index] + "_at " + function_of_[index] + "_calls[] = {\n";
      for (const Instruction* each : calls_of_[index]) {
        const BodyOperands operands{
            .offsets = operands_of(program_, *each),
            .accumulate = {program_.accumulate.data() + each->first_accumulate,
                           bodies_[index].num_outputs},
            .intervals = intervals_of(program_, *each)};
        out_ += "    " + operand_values(bodies_[index], operands) + ",\n";
      }
      out_ += "};\n";
    }
  }

  void kernels() {
    std::vector<std::size_t> arguments(kernels_.list().size());
    for (const auto& steps : steps_) {
      for (const BodyStep& step : steps) {
        if (step.kind == BodyStep::Kind::kernel) arguments[step.number] = step.arguments.size();
      }
    }
    out_ += "\nstatic const PiperKernelEntry kernels[] = {\n";
    for (std::size_t k = 0; k < kernels_.list().size(); ++k) {
      const KernelEntry& kernel = kernels_.list()[k];
      out_ += "    {\"" + kernel.name + "\", " + std::to_string(kernel.launch.blocks) + ", " +
              std::to_string(kernel.launch.threads) + ", " + std::to_string(arguments[k]) +
              "},  // " + comment(kernel.title) + "\n";
    }
    if (kernels_.list().empty()) out_ += "    {\"\", 0, 0, 0},\n";
    out_ += "};\n";
  }

  static std::string list(std::span<const std::uint64_t> offsets) {
    return "static const uint64_t from[] = {" + offsets_text(offsets) + "}; ";
  }

  std::string what(const Instruction& each) {
    const std::string common = "(device, rank, " + streams_[each.stream] + ", action, ";
    const std::span operands = operands_of(program_, each);
    switch (each.kind) {
      case Instruction::Kind::run: {
        const std::string& function = function_of_[each.body];
        return "if (" + function + "(device, rank, " + streams_[each.stream] + ", action, &" +
               function + "_calls[" + number(call_of_[next_call_++]) + "])) return 1;";
      }
      case Instruction::Kind::load: {
        const CallInterval& samples = intervals_of(program_, each).front();
        return "if (device->load" + common + number(each.subject) + ", " + begin_of(samples) +
               ", " + number(program_.intervals[samples.interval].extent) + ", " +
               number(operands.front()) + ")) return 1;";
      }
      case Instruction::Kind::count:
        return operands.size() < 2
                   ? ""
                   : list(operands.first(operands.size() - 1)) + "if (device->count" + common +
                         "from, " + number(operands.size() - 1) + ", " + number(each.elements) +
                         ", " + std::to_string(each.ignore) + ", " + number(operands.back()) +
                         ")) return 1;";
      case Instruction::Kind::report: {
        if (operands.empty()) return "";
        return list(operands) + "if (device->report" + common +
               (each.subject == PIPER_NORM ? "PIPER_NORM" : number(each.subject)) + ", from, " +
               number(operands.size()) + ", " + row_of(each.dtype).abi_name + ", " +
               (each.counted ? "1" : "0") + ")) return 1;";
      }
      case Instruction::Kind::communicate:
        return "if (device->communicate" + common + number(each.position) + ")) return 1;";
    }
    return "";
  }

  void enqueue() {
    out_ += "\nstatic const uint32_t places[] = {";
    for (std::size_t i = 0; i < program_.places.size(); ++i)
      out_ += (i == 0 ? "" : ", ") + std::to_string(program_.places[i]);
    if (program_.places.empty()) out_ += "0";
    out_ +=
        "};\n\nstatic int enqueue(const PiperEnqueue*, PiperDevice* device, PiperRank* rank, uint32_t first, uint32_t last) {\n  for (uint32_t action = first; action < last; ++action) {\n    switch (action) {\n";
    for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
      const Instruction& each = program_.instructions[i];
      out_ += "      case " + std::to_string(i) + ": {  // " +
              title(program_, static_cast<std::uint32_t>(i)) + "\n";
      std::string waits;
      for (const PiperWait& wait : waits_of(program_, each)) {
        waits += (waits.empty() ? "{" : ", {") + streams_[wait.stream] + ", " +
                 number(wait.position) + ", " + number(wait.distance) + "}";
      }
      if (!waits.empty()) out_ += "        static const PiperWait waits[] = {" + waits + "};\n";
      const std::string& stream = streams_[each.stream];
      out_ += "        if (device->begin(device, rank, " + stream + ", action, " +
              (waits.empty() ? "0" : "waits") + ", " + number(each.num_waits) + ")) return 1;\n";
      if (const std::string call = what(each); !call.empty()) out_ += "        " + call + "\n";
      out_ += "        if (device->end(device, rank, " + stream +
              ", action)) return 1;\n        break;\n      }\n";
    }
    out_ +=
        "    }\n  }\n  return 0;\n}\n\nextern \"C\" const PiperEnqueue* piper_enqueue_v1(void) {\n  static const PiperEnqueue role = {PIPER_DEVICE_ABI_VERSION, " +
        std::to_string(program_.instructions.size()) + ", " +
        std::to_string(kernels_.list().size()) + ", " + std::to_string(shapes_.names.size()) +
        ", kernels, places, enqueue, 0};\n  return &role;\n}\n";
  }

  const DeviceProgram& program_;
  const std::vector<KernelBody>& bodies_;
  const KernelSet& kernels_;
  const std::vector<std::vector<BodyStep>>& steps_;
  const std::vector<std::string> streams_;  // their constants
  NameScope names_{"kernels", "enqueue", "device", "rank", "stream", "action"};
  std::vector<std::string> function_of_;                   // per body
  std::vector<std::vector<const Instruction*>> calls_of_;  // per body
  // Bodies; per action that runs one: its number among the body's calls.
  std::vector<std::uint32_t> used_, call_of_;
  std::size_t next_call_ = 0;
  CallShapes shapes_;
  std::string out_;
};

}  // namespace

std::string emit_enqueue(const DeviceProgram& program, const std::vector<KernelBody>& bodies,
                         const KernelSet& kernels,
                         const std::vector<std::vector<BodyStep>>& steps) {
  return Emission(program, bodies, kernels, steps).run();
}

}  // namespace piper::backend::cuda
