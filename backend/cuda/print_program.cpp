#include "backend/cuda/print_program.h"

#include <algorithm>
#include <set>
#include <utility>

#include "backend/cuda/attention.h"
#include "backend/dtypes.h"
#include "ir/dag/plan.h"
#include "ir/diagnostics/counted.h"
#include "ir/tensor/type.h"

namespace piper::backend::cuda {

namespace {

std::string number(std::uint64_t value) { return std::to_string(value); }

std::string line(std::string call, const std::string& text) {
  call.resize(std::max<std::size_t>(call.size() + 1, 15), ' ');
  return "    " + call + text + "\n";
}

std::string dtype_text(std::uint32_t abi) {
  return std::string(tensor::dtype_name(row_of(abi).dtype));
}

/// `2 x 64 x 4 x 16 over 64 x 2 causal f32`: samples, queries, heads and their width; keys and
/// their heads.
std::string attention_shape(const PiperAttend& a) {
  return std::to_string(a.batch) + " x " + std::to_string(a.seq) + " x " + std::to_string(a.heads) +
         " x " + std::to_string(a.width) + " over " + std::to_string(a.keys) + " x " +
         std::to_string(a.kv_heads) +
         (a.value_width == a.width ? "" : " x " + std::to_string(a.value_width)) +
         (a.causal != 0 ? " causal " : " ") + dtype_text(a.dtype);
}

class CallPrinter {
 public:
  CallPrinter(const DeviceProgram& program, const std::vector<KernelBody>& bodies,
              const KernelSet& kernels, const std::vector<std::vector<BodyStep>>& steps,
              const std::vector<std::uint32_t>& members)
      : program_(program), bodies_(bodies), kernels_(kernels), steps_(steps), members_(members) {}

  std::string run() {
    out_ = "enqueue " + program_.role + ": " + counted(program_.instructions.size(), "action") +
           " on " + counted(program_.streams.size(), "stream") + "\n";
    for (std::size_t i = 0; i < program_.instructions.size(); ++i) action(i);
    return std::move(out_);
  }

 private:
  void action(std::size_t i) {
    const Instruction& each = program_.instructions[i];
    out_ += "  " + program_.streams[each.stream].name + " " + number(each.position) + "  " +
            title(program_, static_cast<std::uint32_t>(i));
    const char* before = "  after ";
    for (const PiperWait& wait : waits_of(program_, each))
      out_ += std::exchange(before, ", ") + wait_text(program_, wait);
    out_ += "\n";
    const std::span operands = operands_of(program_, each);
    switch (each.kind) {
      case Instruction::Kind::run: run_body(each); break;
      case Instruction::Kind::load:
        out_ += line("copy in", "input " + number(each.subject) + ", " +
                                    samples(intervals_of(program_, each).front()) + " to " +
                                    number(operands.front()));
        break;
      case Instruction::Kind::count:
        out_ += line("count", "i64 other than " + std::to_string(each.ignore) + " among " +
                                  number(each.elements) + " at each of " +
                                  offsets_text(operands.first(operands.size() - 1)) + " to " +
                                  number(operands.back()));
        break;
      case Instruction::Kind::report:
        out_ += line("copy out", (each.subject == PIPER_NORM ? std::string("norm")
                                                             : "loss " + number(each.subject)) +
                                     " from " + offsets_text(operands));
        break;
      case Instruction::Kind::communicate:
        communicate(program_.streams[each.stream].comm[each.position]);
        break;
    }
  }

  /// ` of interval 0`; empty if every rank has all.
  std::string of_interval(std::uint32_t interval) const {
    return program_.intervals[interval].cut.axes.empty() ? "" : " of interval " + number(interval);
  }
  std::string samples(const CallInterval& call) const {
    return "samples " + number(call.first) + " +" +
           number(program_.intervals[call.interval].extent) + of_interval(call.interval);
  }

  void run_body(const Instruction& each) {
    const KernelBody& body = bodies_[each.body];
    const std::span operand = operands_of(program_, each);
    const std::span<const CallInterval> intervals = intervals_of(program_, each);
    const auto place = [&](BufferIndex index) {
      const KernelBuffer& buffer = body.buffers[index];
      const std::uint32_t ports = body.num_inputs + body.num_outputs;
      if (buffer.storage == KernelBuffer::Storage::scratch)
        return buffer.name + " " +
               number(operand[ports] + static_cast<std::uint64_t>(buffer.offset));
      return buffer.name + " " + number(operand[index]) +
             (buffer.interval >= 0
                  ? of_interval(intervals[static_cast<std::size_t>(buffer.interval)].interval)
                  : "");
    };
    const auto adds = [&](BufferIndex index) {
      return body.buffers[index].accumulates &&
             program_.accumulate[each.first_accumulate + body.buffers[index].port] != 0;
    };
    for (const BodyStep& step : steps_[each.body]) {
      switch (step.kind) {
        case BodyStep::Kind::check:
          out_ +=
              line("check",
                   "0 <= " + place(step.check.buffer) + " < " + std::to_string(step.check.bound) +
                       (step.check.ignore ? ", or " + std::to_string(*step.check.ignore) : ""));
          break;
        case BodyStep::Kind::clear:
          if (!adds(step.buffer)) out_ += line("memset", place(step.buffer));
          break;
        case BodyStep::Kind::kernel: {
          const KernelEntry& kernel = kernels_.list()[step.number];
          std::string arguments;
          for (const Argument& argument : step.arguments) {
            if (argument.kind == Argument::Kind::first) {
              const CallInterval& call = intervals[static_cast<std::size_t>(argument.interval)];
              arguments += ", " + body.intervals[static_cast<std::size_t>(argument.interval)] +
                           "s from " + number(call.first) + of_interval(call.interval);
            }
            if (argument.kind == Argument::Kind::buffer) arguments += ", " + place(argument.buffer);
            if (argument.kind == Argument::Kind::adds && adds(argument.buffer)) arguments += " +=";
          }
          out_ += line("launch", kernel.name + "<<<" + std::to_string(kernel.launch.blocks) + ", " +
                                     std::to_string(kernel.launch.threads) + ">>>(" +
                                     (arguments.empty() ? "" : arguments.substr(2)) + ")");
          break;
        }
        case BodyStep::Kind::library:
          library(std::get<LibraryCall>(body.steps[step.number]), place, adds);
          break;
      }
    }
  }

  template <typename Place, typename Adds>
  void library(const LibraryCall& call, Place place, Adds adds) {
    std::string operands, results;
    for (const BufferIndex index : call.operands)
      operands += (operands.empty() ? "" : ", ") + place(index);
    for (const BufferIndex index : call.results)
      results += (results.empty() ? "" : ", ") + place(index);
    const std::string workspace =
        call.workspace_bytes == 0
            ? ""
            : ", " + number(call.workspace_bytes) + " bytes of " + place(call.workspace);
    if (call.shape.kind == PIPER_CALL_GEMM) {
      const PiperGemm& g = call.shape.of.gemm;
      const std::string batch = g.batch == 1 ? "" : "[" + std::to_string(g.batch) + "]";
      const auto matrix = [&](const char* name, std::int64_t rows, std::int64_t columns,
                              bool transposed) {
        return name + batch + "[" + std::to_string(transposed ? columns : rows) + "][" +
               std::to_string(transposed ? rows : columns) + "]" + (transposed ? "^T" : "");
      };
      out_ += line("cublasLt",
                   matrix("c", g.m, g.n, false) +
                       (call.end == PIPER_END_ADDS || adds(call.results[0]) ? " += " : " = ") +
                       matrix("a", g.m, g.k, g.transpose_a != 0) + " " +
                       matrix("b", g.k, g.n, g.transpose_b != 0) + " " + dtype_text(g.dtype) +
                       (call.end == PIPER_END_ROUNDS ? " rounded" : "") + workspace + ": (" +
                       operands + ") -> " + results);
      return;
    }
    const PiperAttend& a = call.shape.of.attend;
    static constexpr const char* kForms[] = {"kernel of piper", "LibTorch, flash",
                                             "LibTorch, efficient"};
    static_assert(std::size(kForms) == PIPER_ATTEND_EFFICIENT + 1);
    out_ += line(call.shape.kind == PIPER_CALL_ATTEND ? "attention" : "attention'",
                 attention_shape(a) + ", " + kForms[a.form] + workspace + ": (" + operands +
                     ") -> (" + results + ")");
  }

  /// Whether the members' shards of a part have different sizes.
  bool differ(const PiperCommAction& comm, const PiperMessagePart& part) const {
    return (comm.op == PIPER_REDUCE_SCATTER || comm.op == PIPER_ALL_GATHER) &&
           part.elements % members_[comm.communicator] != 0;
  }

  void move(const PiperCommAction& comm, const PiperMessagePart& part) {
    static constexpr const char* kCalls[] = {"ncclSend",      "ncclRecv",          "ncclAllReduce",
                                             "ncclBroadcast", "ncclReduceScatter", "ncclAllGather",
                                             "copy to host",  "copy from host"};
    static_assert(std::size(kCalls) == PIPER_COMM_OPS);
    const bool copies = comm.op == PIPER_OFFLOAD || comm.op == PIPER_FETCH,
               sharded = comm.op == PIPER_REDUCE_SCATTER || comm.op == PIPER_ALL_GATHER;
    std::string text =
        number(sharded ? part.elements / members_[comm.communicator] : part.elements) + " " +
        dtype_text(part.dtype);
    if (part.in != PIPER_NO_OFFSET) text += " from " + number(part.in);
    if (comm.op == PIPER_ALL_GATHER_V && part.in == PIPER_NO_OFFSET) text += " of its owner";
    if (part.flags & PIPER_ACCUMULATE) {
      text += " to its own block there";
    } else if (part.out != PIPER_NO_OFFSET && comm.op != PIPER_SEND) {
      text += " to " + number(part.out);
    }
    if (part.interval != PIPER_ALL_POSITIONS) text += ", interval " + number(part.interval);
    out_ +=
        line(kCalls[comm.op], text + (copies ? "" : ", communicator " + number(comm.communicator)));
  }

  /// One after the other, each to or from its member.
  void move_shards(const PiperCommAction& comm, const PiperMessagePart& part) {
    const bool sums = comm.op == PIPER_REDUCE_SCATTER;
    const std::uint32_t members = members_[comm.communicator];
    for (std::uint32_t owner = 0; owner < members; ++owner) {
      const PiperInterval block = piper_shard(part.elements, members, owner);
      if (block.extent == 0) break;
      const std::uint64_t whole = block.first * tensor::dtype_bytes(row_of(part.dtype).dtype),
                          alone = part.flags & PIPER_SHARD_ONLY ? 0 : whole;
      std::string text = number(block.extent) + " " + dtype_text(part.dtype),
                  of = " of member " + number(owner);
      if (part.in != PIPER_NO_OFFSET) text += " from " + number(part.in + (sums ? whole : alone));
      if (!sums) text += of + " to " + number(part.out + whole);
      if (sums)
        text +=
            " to " + (part.flags & PIPER_ACCUMULATE ? "the block" : number(part.out + alone)) + of;
      out_ += line(sums ? "ncclReduce" : "ncclBroadcast",
                   text + ", communicator " + number(comm.communicator));
    }
  }

  /// One NCCL call per message part; one per shard if shards differ in size, with reduces and
  /// broadcasts; several calls are a group. Padding is cleared first. A reduction that accumulates
  /// is made in place and then added, because NCCL does not accumulate.
  void communicate(const PiperCommAction& comm) {
    std::uint64_t moved = 0;
    for (std::uint32_t p = 0; p < comm.num_parts; ++p) {
      const PiperMessagePart& part = program_.parts[comm.first_part + p];
      if (part.flags & PIPER_ZERO_FILL) {
        out_ += line("memset", number(part.elements) + " " + dtype_text(part.dtype) +
                                   " of padding at " + number(part.out));
      } else {
        moved += differ(comm, part)
                     ? std::min<std::uint64_t>(part.elements, members_[comm.communicator])
                 : part.elements > 0 ? 1
                                     : 0;
      }
    }
    const bool group = moved > 1 && comm.op != PIPER_OFFLOAD && comm.op != PIPER_FETCH;
    if (group) out_ += line("ncclGroupStart", "");
    for (std::uint32_t p = 0; p < comm.num_parts; ++p) {
      const PiperMessagePart& part = program_.parts[comm.first_part + p];
      if ((part.flags & PIPER_ZERO_FILL) != 0 || part.elements == 0) continue;
      if (part.in == PIPER_NO_OFFSET &&
          (comm.op == PIPER_ALL_REDUCE || comm.op == PIPER_REDUCE_SCATTER))
        out_ += line("memset", number(part.out) + ": this member adds nothing");
      differ(comm, part) ? move_shards(comm, part) : move(comm, part);
      if (part.flags & PIPER_ACCUMULATE) out_ += line("add", "its block to " + number(part.out));
    }
    if (group) out_ += line("ncclGroupEnd", "");
  }

  const DeviceProgram& program_;
  const std::vector<KernelBody>& bodies_;
  const KernelSet& kernels_;
  const std::vector<std::vector<BodyStep>>& steps_;
  const std::vector<std::uint32_t>& members_;
  std::string out_;
};

}  // namespace

std::vector<std::vector<std::uint32_t>> member_counts(const dag::Dag& dag,
                                                      const ProgramSet& programs) {
  CommunicatorIds ids(dag, 0);
  std::vector<std::vector<std::uint32_t>> counts(programs.roles.size());
  for (std::uint64_t rank = 0; rank < dag.mesh.devices(); ++rank) {
    const std::size_t role = role_of(programs, coordinates_of(dag.mesh, rank));
    if (!counts[role].empty() || programs.roles[role].communicators.empty()) continue;
    for (const PiperCommunicator& each :
         RankTables(dag, programs.roles[role], ids, rank).communicators)
      counts[role].push_back(each.num_members);
  }
  return counts;
}

std::string print_calls(const DeviceProgram& program, const std::vector<KernelBody>& bodies,
                        const KernelSet& kernels, const std::vector<std::vector<BodyStep>>& steps,
                        const std::vector<std::uint32_t>& members) {
  std::string text = CallPrinter(program, bodies, kernels, steps, members).run();
  // Calls without further text end with their name.
  for (std::size_t at = text.find(" \n"); at != std::string::npos;
       at = text.find(" \n", at == 0 ? 0 : at - 1))
    text.erase(at, 1);
  return text;
}

std::string own_attention_text(const std::vector<KernelBody>& bodies) {
  std::set<std::string> lines;
  for (const KernelBody& body : bodies) {
    for (const auto& step : body.steps) {
      const auto* const call = std::get_if<LibraryCall>(&step);
      if (call == nullptr || call->shape.kind != PIPER_CALL_ATTEND ||
          call->shape.of.attend.form != PIPER_ATTEND_BUILTIN)
        continue;
      const char* const refusal = attention_refusal(call->shape.of.attend);
      if (refusal == nullptr) continue;  // requested
      lines.insert("attention " + attention_shape(call->shape.of.attend) +
                   " is the slow kernel of piper, not LibTorch's: " + refusal + "\n");
    }
  }
  std::string text;
  for (const std::string& each : lines) text += each;
  return text;
}

std::string print_communicators(const dag::Dag& dag, const ProgramSet& programs) {
  CommunicatorIds ids(dag, 0);
  std::string text;
  for (std::uint64_t rank = 0; rank < dag.mesh.devices(); ++rank) {
    const DeviceProgram& role = programs.roles[role_of(programs, coordinates_of(dag.mesh, rank))];
    const RankTables tables(dag, role, ids, rank);
    text += "rank " + number(rank) + " runs " + role.role;
    for (std::size_t c = 0; c < tables.communicators.size(); ++c) {
      const PiperCommunicator& each = tables.communicators[c];
      text +=
          (c == 0 ? ": " : "; ") + ("communicator " + number(c)) + " (" + number(each.id) + ") of ";
      for (std::uint32_t m = 0; m < each.num_members; ++m)
        text += (m == 0 ? "" : each.kind == 0 ? " -> " : ", ") + number(each.members[m]);
    }
    text += "\n";
  }
  return text;
}

}  // namespace piper::backend::cuda
