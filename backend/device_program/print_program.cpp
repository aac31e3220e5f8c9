// Device programs as text.
#include <utility>

#include "backend/device_program/device_program.h"
#include "backend/dtypes.h"
#include "backend/kernel/names.h"
#include "ir/diagnostics/counted.h"

namespace piper::backend {

namespace {

constexpr const char* kOps[] = {"send",           "recv",       "all_reduce", "all_gather_v",
                                "reduce_scatter", "all_gather", "offload",    "fetch"};
static_assert(std::size(kOps) == PIPER_COMM_OPS);

std::string dtype_text(std::uint32_t abi) {
  return std::string(tensor::dtype_name(row_of(abi).dtype));
}
std::string number(std::uint64_t value) { return std::to_string(value); }

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string run_text(const DeviceProgram& program, const Instruction& each,
                     const KernelBody& body) {
  const std::span operand = operands_of(program, each);
  const auto port = [&](std::uint32_t i) {
    return body.buffers[i].name + ' ' + number(operand[i]);
  };
  std::string text = "@" + body.name + "(";
  for (std::uint32_t i = 0; i < body.num_inputs; ++i) text += (i == 0 ? "" : ", ") + port(i);
  text += ") -> (";
  for (std::uint32_t i = 0; i < body.num_outputs; ++i) {
    text += (i == 0 ? "" : ", ") + port(body.num_inputs + i);
    if (program.accumulate[each.first_accumulate + i] != 0) text += " +=";
  }
  text += ")";
  if (body.scratch_bytes > 0)
    text += " workspace " + number(operand[body.num_inputs + body.num_outputs]);
  return text;
}

/// ` samples 4 +2 of interval 0`: the first index over all ranks, the extent per rank, and the
/// interval, which is left out if each rank has all.
std::string interval_text(const DeviceProgram& program, const std::string& of,
                          const CallInterval& call) {
  const ProgramInterval& interval = program.intervals[call.interval];
  std::string text = " " + of + "s " + number(call.first) + " +" + number(interval.extent);
  if (!interval.cut.axes.empty()) text += " of interval " + number(call.interval);
  return text;
}

std::string communication_text(const DeviceProgram& program, const Instruction& each) {
  const PiperCommAction& comm = program.streams[each.stream].comm[each.position];
  std::string text = std::string(kOps[comm.op]) + " " + number(comm.identity) +
                     " on communicator " + number(comm.communicator) + " (";
  for (std::uint32_t i = 0; i < comm.num_parts; ++i) {
    const PiperMessagePart& part = program.parts[comm.first_part + i];
    text += (i == 0 ? "" : ", ") + number(part.elements) + " " + dtype_text(part.dtype);
    if (part.flags & PIPER_ZERO_FILL) {
      text += " cleared at " + number(part.out);
      continue;
    }
    if (part.in != PIPER_NO_OFFSET) text += " from " + number(part.in);
    if (part.out != PIPER_NO_OFFSET)
      text += (part.flags & PIPER_ACCUMULATE ? " added to " : " to ") + number(part.out);
    if (part.flags & PIPER_SHARD_ONLY)
      text += comm.op == PIPER_ALL_GATHER ? " (from a block)" : " (to a block)";
    if (part.interval != PIPER_ALL_POSITIONS) text += ", interval " + number(part.interval);
  }
  return text + ")";
}

std::string instruction_text(const DeviceProgram& program, const Instruction& each,
                             const std::vector<KernelBody>& bodies) {
  switch (each.kind) {
    case Instruction::Kind::run: {
      const KernelBody& body = bodies[each.body];
      std::string text = run_text(program, each, body);
      for (std::size_t s = 0; s < body.intervals.size(); ++s)
        text += interval_text(program, body.intervals[s], intervals_of(program, each)[s]);
      return text;
    }
    case Instruction::Kind::load:
      return "load input " + number(each.subject) +
             interval_text(program, "sample", intervals_of(program, each).front()) + " -> " +
             number(operands_of(program, each).front());
    case Instruction::Kind::count: {
      const std::span operands = operands_of(program, each);
      return "count loss " + number(each.subject) + ": i64 other than " +
             std::to_string(each.ignore) + " among " + number(each.elements) + " at each of (" +
             offsets_text(operands.first(operands.size() - 1)) + ") -> " + number(operands.back());
    }
    case Instruction::Kind::report: {
      std::string text = each.subject == PIPER_NORM ? std::string("report norm")
                                                    : "report loss " + number(each.subject);
      text += std::string(" ") + dtype_text(each.dtype) + " (" +
              offsets_text(operands_of(program, each));
      return text + (each.counted ? "), the last one the count, f64" : ")");
    }
    case Instruction::Kind::communicate: break;
  }
  return communication_text(program, each);
}

}  // namespace

std::string offsets_text(std::span<const std::uint64_t> offsets) {
  std::string text;
  for (const std::uint64_t offset : offsets) text += (text.empty() ? "" : ", ") + number(offset);
  return text;
}

std::string title(const DeviceProgram& program, std::uint32_t instruction) {
  const ActionName& name = program.names[instruction];
  if (name.line == 0) return comment(name.name);
  return comment(name.name + "  " + program.files[name.file] + ":" + number(name.line) + ":" +
                 number(name.column));
}

std::string wait_text(const DeviceProgram& program, const PiperWait& wait) {
  return program.streams[wait.stream].name + " " + number(wait.position) +
         (wait.distance == 0 ? "" : " of the step before");
}

std::string print(const DeviceProgram& program, const std::vector<KernelBody>& bodies) {
  std::string text =
      "program " + program.role + ": " + counted(program.instructions.size(), "action") + " on " +
      counted(program.streams.size(), "stream") + ", arena " + number(program.arena_bytes) +
      " bytes, of them " + number(program.state_bytes) + " state" +
      (program.host_bytes > 0 ? ", on the host " + number(program.host_bytes) + " bytes" : "") +
      "\n";
  std::size_t stream_width = 0, name_width = 0;
  for (const ProgramStream& stream : program.streams) {
    text += "  stream " + stream.name + ": " + counted(stream.action_of.size(), "action") +
            (stream.high_priority ? ", high priority" : "") + "\n";
    stream_width = std::max(stream_width, stream.name.size());
  }
  for (const ActionName& name : program.names) name_width = std::max(name_width, name.name.size());
  for (const ProgramParam& param : program.params) {
    text += "  param " + param.name + ": " + number(param.entry.elements) + " " +
            dtype_text(param.entry.dtype) + " at " + number(param.entry.offset);
    if (param.entry.grad_offset != PIPER_NO_OFFSET)
      text += ", gradient at " + number(param.entry.grad_offset);
    for (const std::uint64_t slot : param.entry.slot_offsets) {
      if (slot != PIPER_NO_OFFSET)
        text +=
            ", slot at " + number(slot) + (param.entry.slots_on_host != 0 ? " on the host" : "");
    }
    if (param.entry.interval != PIPER_ALL_POSITIONS) {
      text += ", from " + number(param.entry.first) + " on in blocks of " +
              number(program.intervals[param.entry.interval].extent) + " of interval " +
              number(param.entry.interval);
      constexpr const char* kInBlocks[] = {"", ", gradients kept so",
                                           ", gradients and values kept so"};
      text += kInBlocks[param.entry.sharded];
    }
    text += param.entry.counted != 0 ? "\n" : ", a further copy\n";
  }
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& each = program.instructions[i];
    const ActionName& name = program.names[i];
    text +=
        "  " +
        padded(program.streams[each.stream].name + " " + number(each.position), stream_width + 6) +
        " " + padded(name.name, name_width) + "  " + instruction_text(program, each, bodies);
    const char* before = "  after ";
    for (const PiperWait& wait : waits_of(program, each))
      text += std::exchange(before, ", ") + wait_text(program, wait);
    if (name.line != 0)
      text += "  " + program.files[name.file] + ":" + number(name.line) + ":" + number(name.column);
    text += "\n";
  }
  return text;
}

}  // namespace piper::backend
