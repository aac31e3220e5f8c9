#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "backend/cuda/attention.h"
#include "backend/cuda/product_workspace.h"
#include "backend/dtypes.h"
#include "backend/kernel/divide.h"
#include "backend/kernel/fuse.h"
#include "backend/kernel/kernel.h"
#include "backend/kernel/lower_kernel.h"
#include "backend/kernel/names.h"
#include "backend/kernel/schedule_passes.h"
#include "ir/alignment.h"
#include "ir/tensor/op_rules.h"

namespace piper::backend {

using tensor::DType;
using tensor::Node;
using tensor::Op;
using tensor::ValueId;

namespace {

class Builder {
 public:
  Builder(const dag::Body& body, Target target, const std::vector<int>& in_place)
      : body_(body),
        graph_(body.graph),
        target_(target),
        in_place_(in_place),
        axes_(body.graph),
        fusion_(fuse(body, axes_, target)) {}

  KernelBody run() {
    out_.name = std::string(graph_.context().text(body_.name));
    out_.num_inputs = static_cast<std::uint32_t>(body_.inputs.size());
    out_.num_outputs = static_cast<std::uint32_t>(body_.outputs.size());
    add_ports();
    find_needed();
    for (const FusedStep& step : fusion_.steps) {
      if (step.call >= 0) {
        out_.steps.emplace_back(library_call(fusion_.calls[static_cast<std::size_t>(step.call)]));
      } else {
        for (Kernel& kernel : kernels(step)) out_.steps.emplace_back(std::move(kernel));
      }
    }
    place_scratch();
    return std::move(out_);
  }

 private:
  void add_ports();
  void find_needed();
  void place_scratch();
  std::vector<Kernel> kernels(const FusedStep& step);
  LibraryCall library_call(const LibraryNode& made);
  void plan_workspace(LibraryCall& call, std::uint64_t bytes);
  BufferIndex buffer_of(ValueId memory);
  BufferIndex scratch(DType dtype, std::int64_t elements, std::string_view name, std::string type);
  std::string text(ValueId value) const {
    return std::string(graph_.context().text(graph_.value(value).name));
  }

  const dag::Body& body_;
  const tensor::Graph& graph_;
  const Target target_;
  const std::vector<int>& in_place_;
  Axes axes_;
  Fusion fusion_;
  KernelBody out_;
  std::map<ValueId, BufferIndex> buffers_;
  std::set<ValueId> needed_;  // values read by a step other than their own, or by a port
  NameScope names_{"action",
                   "api",
                   "arena",
                   "arguments",
                   "at",
                   "check",
                   "device",
                   "element_interval",
                   "first_element",
                   "first_sample",
                   "queue",
                   "rank",
                   "sample_interval",
                   "workspace"};
};

void Builder::add_ports() {
  const auto add = [&](const dag::BodyPort& port, KernelBuffer::Storage place, std::size_t i) {
    const tensor::Type& type = graph_.type(port.value);
    KernelBuffer buffer;
    buffer.storage = place;
    buffer.port = static_cast<std::uint32_t>(i);
    buffer.elements = type.elements();
    buffer.dtype = type.dtype;
    buffer.accumulates = place == KernelBuffer::Storage::output && port.kind == dag::PortKind::grad;
    buffer.name = names_.add(text(port.value));
    buffer.label = short_name(text(port.value));
    buffer.type = std::string(dag::port_kind_name(port.kind)) + " " +
                  tensor::print(type, graph_.context().symbols);
    out_.buffers.push_back(std::move(buffer));
    return static_cast<BufferIndex>(out_.buffers.size() - 1);
  };
  for (std::size_t i = 0; i < body_.inputs.size(); ++i) {
    buffers_.try_emplace(body_.inputs[i].value,
                         add(body_.inputs[i], KernelBuffer::Storage::input, i));
  }
  for (std::size_t i = 0; i < body_.outputs.size(); ++i) {
    const BufferIndex buffer = add(body_.outputs[i], KernelBuffer::Storage::output, i);
    const ValueId memory = axes_.memory(body_.outputs[i].value);
    if (fusion_.output_port[memory.index()] == static_cast<int>(i)) buffers_[memory] = buffer;
    // One pointer for both, because reads come before the write of the same element.
    if (i < in_place_.size() && in_place_[i] >= 0)
      buffers_[body_.inputs[static_cast<std::size_t>(in_place_[i])].value] = buffer;
  }
}

void Builder::find_needed() {
  std::vector<int> step_of(fusion_.items.size(), -1);
  for (std::size_t s = 0; s < fusion_.steps.size(); ++s) {
    for (int item : fusion_.steps[s].items)
      step_of[static_cast<std::size_t>(item)] = static_cast<int>(s);
  }
  for (std::size_t v = 0; v < fusion_.output_port.size(); ++v) {
    if (fusion_.output_port[v] >= 0) needed_.insert(ValueId::at(v));
  }
  for (std::size_t s = 0; s < fusion_.steps.size(); ++s) {
    for (int i : fusion_.steps[s].items) {
      const Item& item = fusion_.items[static_cast<std::size_t>(i)];
      for (int maker : item.registers) {
        if (step_of[static_cast<std::size_t>(maker)] != static_cast<int>(s))
          needed_.insert(fusion_.items[static_cast<std::size_t>(maker)].result);
      }
      for (int maker : item.memory)
        needed_.insert(fusion_.items[static_cast<std::size_t>(maker)].result);
    }
  }
  for (const LibraryNode& call : fusion_.calls) {
    for (int maker : call.items)
      needed_.insert(fusion_.items[static_cast<std::size_t>(maker)].result);
  }
}

BufferIndex Builder::scratch(DType dtype, std::int64_t elements, std::string_view name,
                             std::string type) {
  KernelBuffer buffer;
  buffer.elements = elements;
  buffer.dtype = dtype;
  buffer.name = names_.add(name);
  buffer.label = short_name(name);
  buffer.type = std::move(type);
  out_.buffers.push_back(std::move(buffer));
  return static_cast<BufferIndex>(out_.buffers.size() - 1);
}

BufferIndex Builder::buffer_of(ValueId memory) {
  while (fusion_.into[memory.index()].valid()) memory = fusion_.into[memory.index()];
  if (const auto found = buffers_.find(memory); found != buffers_.end()) return found->second;
  const tensor::Type& type = graph_.type(memory);
  return buffers_[memory] = scratch(type.dtype, type.elements(), text(memory),
                                    tensor::print(type, graph_.context().symbols));
}

std::vector<Kernel> Builder::kernels(const FusedStep& step) {
  StepBuffers buffers;
  buffers.of = [&](ValueId memory) { return buffer_of(memory); };
  buffers.needed = [&](ValueId memory) { return needed_.contains(memory); };
  buffers.port = [&](int port) { return out_.num_inputs + static_cast<BufferIndex>(port); };
  buffers.temporary = [&](DType dtype, std::int64_t elements, std::string_view name,
                          std::string_view what) {
    return scratch(dtype, elements, name,
                   std::string(tensor::dtype_name(dtype)) + "[" + std::to_string(elements) + "], " +
                       std::string(what));
  };
  buffers.at = [&](BufferIndex buffer) -> const KernelBuffer& { return out_.buffers[buffer]; };
  buffers.interval = [&](const char* of) {
    const auto number = static_cast<std::int32_t>(
        std::find(out_.intervals.begin(), out_.intervals.end(), of) - out_.intervals.begin());
    if (static_cast<std::size_t>(number) == out_.intervals.size()) out_.intervals.emplace_back(of);
    return number;
  };
  buffers.shared = [&](BufferIndex index) {
    const KernelBuffer& buffer = out_.buffers[index];
    if (!buffer.accumulates || !body_.outputs[buffer.port].param.valid()) return false;
    const auto same = [&](const dag::BodyPort& port) {
      return port.kind == dag::PortKind::grad && port.param == body_.outputs[buffer.port].param;
    };
    return std::count_if(body_.outputs.begin(), body_.outputs.end(), same) > 1;
  };
  std::vector<Kernel> kernels;
  if (target_ == Target::cpu) {
    kernels.push_back(lower_sequence(body_, axes_, fusion_, step, buffers));
  } else {
    kernels = divide(lower_nest(body_, axes_, fusion_, step, buffers, target_), buffers);
  }
  return kernels;
}

LibraryCall Builder::library_call(const LibraryNode& made) {
  const Node& node = graph_.node(made.node);
  LibraryCall call;
  const bool rounds = made.rounded.valid();
  call.value = text(rounds ? made.rounded : graph_.result(node));
  if (rounds) call.end = PIPER_END_ROUNDS;
  if (node.op == Op::contract_add) call.end = PIPER_END_ADDS;
  for (ValueId operand : graph_.operands(node))
    call.operands.push_back(buffer_of(axes_.memory(operand)));
  if (node.op == Op::contract_add) call.operands.pop_back();  // its addend is in its result
  for (std::size_t r = 0; r < node.num_results; ++r)
    call.results.push_back(buffer_of(rounds ? made.rounded : graph_.result(node, r)));
  const auto product = [](std::span<const tensor::Dim> dims) {
    return std::accumulate(dims.begin(), dims.end(), std::int64_t{1},
                           [](std::int64_t n, const tensor::Dim& dim) { return n * dim.extent; });
  };
  const auto operands = graph_.operands(node);
  const tensor::Type& first = graph_.type(operands[0]);
  if (node.op == Op::contract || node.op == Op::contract_add) {
    const tensor::GemmForm form =
        tensor::gemm_form(first, graph_.type(operands[1]), node.attrs.dims);
    call.shape.kind = PIPER_CALL_GEMM;
    PiperGemm& gemm = call.shape.of.gemm;
    gemm.batch = product(form.batched);
    gemm.m = product(form.rest_a);
    gemm.n = product(form.rest_b);
    gemm.k = product(form.summed);
    gemm.transpose_a = form.a_summed_last ? 0 : 1;
    gemm.transpose_b = form.b_summed_last ? 1 : 0;
    gemm.dtype = abi_dtype(first.dtype);
    if (target_ != Target::cpu) plan_workspace(call, cuda::product_workspace(gemm));
    return call;
  }
  const auto& q = first.dims;
  const auto& k = graph_.type(operands[1]).dims;
  const auto& v = graph_.type(operands[2]).dims;
  const std::size_t rank = q.size();
  call.shape.kind = node.op == Op::attend ? PIPER_CALL_ATTEND : PIPER_CALL_ATTEND_GRAD;
  call.shape.of.attend = {};
  PiperAttend& attend = call.shape.of.attend;
  attend.batch = product(std::span(q).first(rank - 3));
  attend.seq = q[rank - 3].extent;
  attend.keys = k[rank - 3].extent;
  attend.heads = q[rank - 2].extent;
  attend.kv_heads = k[rank - 2].extent;
  attend.width = q[rank - 1].extent;
  attend.value_width = v[rank - 1].extent;
  attend.scale = node.attrs.scalar;
  attend.causal = node.attrs.causal ? 1 : 0;
  attend.dtype = abi_dtype(first.dtype);
  if (target_ == Target::cuda) attend.form = cuda::attention_form(attend);
  plan_workspace(call, target_ == Target::cpu
                           ? piper_attend_workspace(&attend)
                           : cuda::attention_workspace(attend, node.op == Op::attend_grad));
  return call;
}

void Builder::plan_workspace(LibraryCall& call, std::uint64_t bytes) {
  call.workspace_bytes = bytes;
  if (bytes > 0)
    call.workspace = scratch(tensor::DType::f32, static_cast<std::int64_t>((bytes + 3) / 4),
                             "workspace", "workspace of the library");
}

/// Scratch buffers share bytes if their live ranges do not overlap: large ones first, each at the
/// lowest free offset.
void Builder::place_scratch() {
  struct Life {
    BufferIndex buffer = 0;
    std::size_t first = SIZE_MAX, last = 0;
    std::int64_t bytes = 0;
  };
  std::map<BufferIndex, Life> lives;
  for (std::size_t s = 0; s < out_.steps.size(); ++s) {
    const auto touch = [&](BufferIndex index) {
      const KernelBuffer& buffer = out_.buffers[index];
      if (buffer.storage != KernelBuffer::Storage::scratch) return;
      Life& life = lives[index];
      life.buffer = index;
      life.first = std::min(life.first, s);
      life.last = std::max(life.last, s);
      life.bytes =
          aligned(buffer.elements * static_cast<std::int64_t>(tensor::dtype_bytes(buffer.dtype)));
    };
    if (const auto* kernel = std::get_if<Kernel>(&out_.steps[s])) {
      const BufferUse buffers = buffer_use(*kernel);
      for (const auto* set : {&buffers.reads, &buffers.writes})
        std::for_each(set->begin(), set->end(), touch);
    } else {
      const auto& call = std::get<LibraryCall>(out_.steps[s]);
      for (BufferIndex buffer : call.operands) touch(buffer);
      for (BufferIndex buffer : call.results) touch(buffer);
      if (call.workspace_bytes > 0) touch(call.workspace);
    }
  }
  std::vector<Life> order;
  for (const auto& [index, life] : lives) order.push_back(life);
  std::stable_sort(order.begin(), order.end(),
                   [](const Life& a, const Life& b) { return a.bytes > b.bytes; });
  // Indexed by ranges of steps, so that a live range is compared only with near ones.
  constexpr std::size_t kRun = 32;
  std::vector<std::vector<Life>> placed(out_.steps.size() / kRun + 1);
  for (const Life& life : order) {
    std::vector<std::pair<std::int64_t, std::int64_t>> busy;
    for (std::size_t run = life.first / kRun; run <= life.last / kRun; ++run) {
      for (const Life& other : placed[run]) {
        if (other.first > life.last || other.last < life.first ||
            std::max(other.first, life.first) / kRun != run)
          continue;
        busy.emplace_back(out_.buffers[other.buffer].offset,
                          out_.buffers[other.buffer].offset + other.bytes);
      }
    }
    std::sort(busy.begin(), busy.end());
    std::int64_t offset = 0;
    for (const auto& [begin, end] : busy) {
      if (begin - offset >= life.bytes) break;
      offset = std::max(offset, end);
    }
    out_.buffers[life.buffer].offset = offset;
    out_.scratch_bytes = std::max(out_.scratch_bytes, offset + life.bytes);
    for (std::size_t run = life.first / kRun; run <= life.last / kRun; ++run)
      placed[run].push_back(life);
  }
}

/// Every buffer that a step reads or writes, once.
BufferUse buffer_use_of(const KernelStep& step) {
  if (const auto* kernel = std::get_if<Kernel>(&step)) return buffer_use(*kernel);
  const auto& call = std::get<LibraryCall>(step);
  BufferUse buffers{{call.operands.begin(), call.operands.end()},
                    {call.results.begin(), call.results.end()}};
  if (call.end == PIPER_END_ADDS) buffers.reads.insert(call.results[0]);
  return buffers;
}

}  // namespace

SourceLocation location_of(const LocationTable& locations, LocId loc) {
  const SourceRange range = locations.primary(loc);
  if (!range.valid()) return {};
  const SourceTable& files = locations.files();
  const LineColumn begin = files.line_column(range.file, range.begin),
                   end = files.line_column(range.file, range.end);
  return {std::string(files.name(range.file)), begin.line, begin.column, end.line, end.column};
}

BufferUse buffer_use(const Kernel& kernel) {
  BufferUse buffers;
  for (const Statement& s : kernel.statements) {
    if (s.code == Code::load) buffers.reads.insert(s.access.buffer);
    if (is_effect(s.code)) buffers.writes.insert(s.access.buffer);
  }
  if (kernel.form == Form::scatter || kernel.form == Form::join)
    buffers.reads.insert(kernel.runs->order);
  if (kernel.form == Form::scatter && kernel.runs->several())
    buffers.writes.insert(kernel.runs->partials);
  return buffers;
}

KernelBody build_kernels(const dag::Body& body, Target target, const std::vector<int>& in_place) {
  return Builder(body, target, in_place).run();
}

void number_shapes(KernelBody& body, std::vector<PiperCallShape>& known) {
  for (KernelStep& step : body.steps) {
    auto* const call = std::get_if<LibraryCall>(&step);
    if (call == nullptr) continue;
    const auto at = std::find_if(known.begin(), known.end(), [&](const PiperCallShape& shape) {
      return piper_same_shape(&shape, &call->shape) != 0;
    });
    call->shape.number = static_cast<std::uint32_t>(at - known.begin());
    if (at == known.end()) known.push_back(call->shape);
  }
}

std::int64_t scratch_bytes(const dag::Body& body, Target target) {
  return build_kernels(body, target).scratch_bytes;
}

KernelStats kernel_stats(const KernelBody& body) {
  KernelStats stats;
  for (const KernelStep& step : body.steps) {
    ++(std::holds_alternative<Kernel>(step) ? stats.kernels : stats.library_calls);
    const auto [reads, writes] = buffer_use_of(step);
    for (const auto* set : {&reads, &writes}) {
      for (BufferIndex index : *set) {
        stats.bytes += body.buffers[index].elements *
                       static_cast<std::int64_t>(tensor::dtype_bytes(body.buffers[index].dtype));
      }
    }
  }
  return stats;
}

std::string print(const KernelBody& body) {
  const auto list = [&](const std::set<BufferIndex>& buffers) {
    std::string text;
    for (BufferIndex index : buffers) text += (text.empty() ? "" : ", ") + body.buffers[index].name;
    return text;
  };
  const auto product = [](const std::vector<std::int64_t>& extents) {
    std::string text;
    for (std::int64_t extent : extents) text += (text.empty() ? "" : "x") + std::to_string(extent);
    return text.empty() ? std::string("1") : text;
  };
  std::string text =
      "@" + body.name + ": scratch " + std::to_string(body.scratch_bytes) + " bytes\n";
  for (const KernelStep& step : body.steps) {
    const auto [reads, writes] = buffer_use_of(step);
    if (const auto* kernel = std::get_if<Kernel>(&step)) {
      text += "  kernel " + product(kernel->rows) + " rows of " + product(kernel->columns) + ", " +
              std::to_string(kernel->passes) + (kernel->passes == 1 ? " pass: " : " passes: ");
      for (std::size_t i = 0; i < kernel->ops.size(); ++i)
        text += (i == 0 ? "" : ", ") + kernel->ops[i];
    } else {
      const auto& call = std::get<LibraryCall>(step);
      text += std::string("  call ") + piper_call_name(call.shape.kind);
    }
    text += ": (" + list(reads) + ") -> (" + list(writes) + ")\n";
  }
  return text;
}

}  // namespace piper::backend
