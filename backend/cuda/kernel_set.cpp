#include "backend/cuda/kernel_set.h"

#include <algorithm>
#include <set>

#include "backend/cuda/print_kernel.h"
#include "backend/kernel/loops.h"
#include "backend/kernel/names.h"
#include "backend/kernel/print_kernel.h"
#include "backend/kernel/schedule_passes.h"
#include "ir/tensor/op_rules.h"
#include "ir/tensor/type.h"

namespace piper::backend::cuda {

namespace {

std::string joined(const std::vector<std::string>& words, const char* between, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < std::min(words.size(), most); ++i)
    text += (i == 0 ? "" : between) + words[i];
  return text;
}

std::string extents(const std::vector<std::int64_t>& loops) {
  std::string text;
  for (const std::int64_t extent : loops)
    text += (text.empty() ? "" : " x ") + std::to_string(extent);
  return text.empty() ? "1" : text;
}

std::vector<std::string> distinct_ops(const Kernel& kernel) {
  std::vector<std::string> ops;
  for (const std::string& op : kernel.ops) {
    if (ops.empty() || ops.back() != op) ops.push_back(op);
  }
  return ops;
}

/// `rms_norm_grad, sum (join): 64 rows of 768`
std::string title_of(const Kernel& kernel) {
  std::string text = joined(kernel.ops, ", ", 64);
  if (!kernel.part.empty()) text += text.empty() ? kernel.part : " (" + kernel.part + ")";
  text += ": " + extents(kernel.rows) + (kernel.rows.empty() ? " row of " : " rows of ") +
          extents(kernel.columns);
  if (kernel.passes > 1) text += " in " + std::to_string(kernel.passes) + " passes";
  return text;
}

/// The mapping of the nest to threads, for the comment above it.
std::string spread_text(const Kernel& kernel, const Launch& launch) {
  const std::string blocks = std::to_string(launch.blocks) +
                             (launch.blocks == 1 ? " block of " : " blocks of ") +
                             std::to_string(launch.threads);
  const std::string vector = kernel.lanes.vector == 1
                                 ? ""
                                 : ", " + std::to_string(kernel.lanes.vector) + " elements at once";
  switch (kernel.form) {
    case Form::rows:
      return blocks + ": " + std::to_string(kernel.lanes.count) +
             (kernel.lanes.count == 1 ? " lane" : " lanes") + " per row" + vector;
    case Form::sums: return blocks + ": a thread per sum";
    case Form::order: return blocks + ": it sorts the positions by index";
    case Form::scatter:
      return blocks + ": a block per run of " + std::to_string(Runs::kLength) +
             " equal indices at most" + vector;
    case Form::join: return blocks + ": a block per index that has several runs";
    case Form::elements:
    case Form::sequence: break;
  }
  return blocks + ": a thread per " +
         (kernel.lanes.vector == 1 ? std::string("element")
                                   : std::to_string(kernel.lanes.vector) + " elements");
}

/// piper_order of prelude.h sorts by this many values at once.
constexpr std::int64_t kDigits = 256;

std::int64_t shared_bytes(const Kernel& kernel, const Launch& launch) {
  if (kernel.form == Form::order) return (launch.threads / 32 * kDigits + 2 * kDigits + 33) * 4;
  if (kernel.form != Form::rows || kernel.lanes.count <= Lanes::kGroup) return 0;
  std::int64_t bytes = 0;
  for (const Statement& s : kernel.statements) {
    if (is_reduction(s.code))
      bytes += static_cast<std::int64_t>(tensor::dtype_bytes(s.dtype)) * kernel.lanes.count /
               Lanes::kGroup;
  }
  return bytes;
}

/// Flops per execution, by the op table if the statement corresponds to an op.
double flops_of(Code code) {
  using tensor::Op;
  switch (code) {
    case Code::load:
    case Code::constant:
    case Code::column:
    case Code::position:
    case Code::piecewise:
    case Code::store:
    case Code::cast:
    case Code::round: return 0;
    case Code::div: return tensor::flops_per_element(Op::div);
    case Code::exp: return tensor::flops_per_element(Op::exp);
    case Code::log: return tensor::flops_per_element(Op::log);
    case Code::sqrt: return tensor::flops_per_element(Op::sqrt);
    case Code::rsqrt: return tensor::flops_per_element(Op::rsqrt);
    case Code::sin: return tensor::flops_per_element(Op::sin);
    case Code::cos: return tensor::flops_per_element(Op::cos);
    case Code::tanh: return tensor::flops_per_element(Op::tanh);
    case Code::sigmoid: return tensor::flops_per_element(Op::sigmoid);
    case Code::softplus: return tensor::flops_per_element(Op::softplus);
    case Code::gelu: return tensor::flops_per_element(Op::gelu);
    case Code::silu: return tensor::flops_per_element(Op::silu);
    case Code::gelu_grad: return tensor::flops_per_element(Op::gelu_grad);
    case Code::silu_grad: return tensor::flops_per_element(Op::silu_grad);
    case Code::dropout: return tensor::flops_per_element(Op::dropout);
    default: return 1;
  }
}

/// A buffer that the kernel updates in place is read and written. One that it accumulates into is
/// only written, as in a call that does not add.
std::int64_t moved_bytes(const Kernel& kernel, const KernelBody& body) {
  const BufferUse use = buffer_use(kernel);
  std::int64_t bytes = 0;
  for (const auto* buffers : {&use.reads, &use.writes}) {
    for (const BufferIndex index : *buffers)
      bytes += body.buffers[index].elements *
               static_cast<std::int64_t>(tensor::dtype_bytes(body.buffers[index].dtype));
  }
  return bytes;
}

double operations(const Kernel& kernel) {
  // A join adds runs, not positions.
  const std::int64_t rows = kernel.form == Form::join ? kernel.runs->rows() : product(kernel.rows);
  double count = 0;
  for (const Statement& s : kernel.statements)
    count += flops_of(s.code) * static_cast<double>(rows * (s.row ? 1 : product(kernel.columns)));
  return count;
}

}  // namespace

std::vector<Argument> arguments_of(const Kernel& kernel, const KernelBody& body) {
  std::vector<Argument> arguments;
  if (kernel_draws(kernel)) arguments.push_back({.kind = Argument::Kind::draw});
  for (const std::int32_t interval : kernel_intervals(kernel))
    arguments.push_back({.kind = Argument::Kind::first, .interval = interval});
  const std::set<BufferIndex> written = buffer_use(kernel).writes;
  for (const BufferIndex buffer : kernel_parameters(kernel)) {
    arguments.push_back({.kind = Argument::Kind::buffer, .buffer = buffer});
    if (written.contains(buffer) && body.buffers[buffer].accumulates)
      arguments.push_back({.kind = Argument::Kind::adds, .buffer = buffer});
  }
  return arguments;
}

std::uint32_t KernelSet::kernel(const Kernel& kernel, const KernelBody& body) {
  const auto [entry, fresh] = known_.try_emplace(cuda::print_kernel(kernel, body, "", true),
                                                 static_cast<std::uint32_t>(list_.size()));
  if (!fresh) return entry->second;
  std::vector<std::string> words = distinct_ops(kernel);
  words.resize(std::min<std::size_t>(words.size(), 4));
  if (!kernel.part.empty()) words.push_back(kernel.part);
  const std::string base = "fused_" + joined(words, "_", words.size());
  const int count = names_[base]++;
  KernelEntry made;
  made.name = count == 0 ? base : base + "_" + std::to_string(count + 1);
  made.title = title_of(kernel);
  made.form = kernel.form;
  made.launch = launch_of(kernel);
  made.shared_bytes = shared_bytes(kernel, made.launch);
  made.bytes = moved_bytes(kernel, body);
  made.operations = static_cast<std::int64_t>(operations(kernel));
  // The following lines have line numbers of the .pipe file, the lines before those of this file.
  text_ += "\n// " + comment(made.title) + "\n// " + spread_text(kernel, made.launch) + "\n";
  if (!kernel.values.empty())
    text_ += "// " + comment(joined(kernel.values, ", ", 12)) +
             (kernel.values.size() > 12 ? ", ..." : "") + "\n";
  const bool brief = std::any_of(kernel.statements.begin(), kernel.statements.end(),
                                 [](const Statement& s) { return s.brief; });
  if (brief) text_ += "// what operates on bf16 takes the shorter functions\n";
  text_ += cuda::print_kernel(kernel, body, made.name, false);
  list_.push_back(std::move(made));
  return entry->second;
}

std::vector<BodyStep> KernelSet::add(const KernelBody& body) {
  std::vector<BodyStep> steps;
  std::vector<RangeCheck> checked;
  for (std::uint32_t i = 0; i < body.steps.size(); ++i) {
    const auto* nest = std::get_if<Kernel>(&body.steps[i]);
    if (nest == nullptr) {
      steps.emplace_back().kind = BodyStep::Kind::library;
      steps.back().number = i;
      continue;
    }
    for (const RangeCheck& check : nest->checks) {
      const auto same = [&](const RangeCheck& other) {
        return other.buffer == check.buffer && other.bound == check.bound &&
               other.ignore == check.ignore;
      };
      if (std::any_of(checked.begin(), checked.end(), same)) continue;
      checked.push_back(check);
      steps.emplace_back().kind = BodyStep::Kind::check;
      steps.back().check = check;
    }
    if (nest->form == Form::scatter) {
      for (const Statement& s : nest->statements) {
        if (s.code != Code::store_add) continue;
        steps.emplace_back().kind = BodyStep::Kind::clear;
        steps.back().buffer = s.access.buffer;
      }
    }
    steps.emplace_back().kind = BodyStep::Kind::kernel;
    steps.back().number = kernel(*nest, body);
    steps.back().nest = i;
    steps.back().arguments = arguments_of(*nest, body);
  }
  return steps;
}

std::string KernelSet::source() const {
  return "#include \"backend/cuda/prelude.h\"\n#include \"runtime/kernel_math.h\"\n" + text_;
}

}  // namespace piper::backend::cuda
