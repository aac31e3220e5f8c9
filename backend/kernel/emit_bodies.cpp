#include "backend/kernel/emit_bodies.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "backend/dtypes.h"
#include "backend/kernel/print_kernel.h"
#include "backend/kernel/schedule_passes.h"
#include "ir/diagnostics/counted.h"

namespace piper::backend {

namespace {

std::string field(const KernelBody& body, BufferIndex index) {
  const KernelBuffer& buffer = body.buffers[index];
  return buffer.storage == KernelBuffer::Storage::scratch ? "workspace" : buffer.name;
}

std::string initialiser(const SourceLocation& at) {
  std::string text = "{" + quoted(at.file);
  for (const std::uint32_t number : {at.line, at.column, at.end_line, at.end_column})
    text += ", " + std::to_string(number);
  return text + "}";
}

std::string joined(const std::vector<std::string>& words, const char* between, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < std::min(words.size(), most); ++i)
    text += (i == 0 ? "" : between) + words[i];
  return text;
}

std::string product(const std::vector<std::int64_t>& extents) {
  std::string text;
  for (std::int64_t extent : extents) text += (text.empty() ? "" : " x ") + std::to_string(extent);
  return text.empty() ? "1" : text;
}

std::string shape(const Kernel& kernel) {
  std::string text = product(kernel.rows) + (kernel.rows.empty() ? " row of " : " rows of ") +
                     product(kernel.columns);
  if (kernel.passes > 1) text += " in " + std::to_string(kernel.passes) + " passes";
  return text;
}

std::set<BufferIndex> used_buffers(const KernelBody& body) {
  std::set<BufferIndex> used;
  for (const KernelStep& step : body.steps) {
    if (const auto* kernel = std::get_if<Kernel>(&step)) {
      for (BufferIndex buffer : kernel_parameters(*kernel)) used.insert(buffer);
      for (const RangeCheck& check : kernel->checks) used.insert(check.buffer);
    } else {
      const auto& call = std::get<LibraryCall>(step);
      used.insert(call.operands.begin(), call.operands.end());
      used.insert(call.results.begin(), call.results.end());
    }
  }
  return used;
}

std::set<BufferIndex> written_buffers(const KernelBody& body) {
  std::set<BufferIndex> written;
  for (const KernelStep& step : body.steps) {
    if (const auto* kernel = std::get_if<Kernel>(&step)) {
      for (const Statement& s : kernel->statements) {
        if (is_effect(s.code)) written.insert(s.access.buffer);
      }
    } else {
      const auto& call = std::get<LibraryCall>(step);
      written.insert(call.results.begin(), call.results.end());
    }
  }
  return written;
}

constexpr const char* kCheckMasked = R"(
/* Fails the run at the first of `values` outside [0, bound) that is not `ignore`. */
static int check_masked(const PiperApi* api, PiperRank* rank, const uint32_t action, const PiperSourceLocation& where, const int64_t* values, const int64_t count,
                        const int64_t bound, const int64_t ignore, const char* message) {
  for (int64_t i = 0; i < count; ++i) {
    if ((uint64_t)values[i] >= (uint64_t)bound && values[i] != ignore) return api->fail(rank, action, &where, message, values[i]);
  }
  return 0;
}
)";

constexpr const char* kCheckRange = R"(
/* Fails the run at the first of `values` outside [0, bound). */
static int check_range(const PiperApi* api, PiperRank* rank, const uint32_t action, const PiperSourceLocation& where, const int64_t* values, const int64_t count,
                       const int64_t bound, const char* message) {
  for (int64_t i = 0; i < count; ++i) {
    if ((uint64_t)values[i] >= (uint64_t)bound) return api->fail(rank, action, &where, message, values[i]);
  }
  return 0;
}
)";

}  // namespace

std::string CppBodies::kernel_function(const Kernel& kernel, const KernelBody& body) {
  const std::string key = print_kernel(kernel, body, "", true);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  std::vector<std::string> ops;
  for (const std::string& op : kernel.ops) {
    if (ops.empty() || ops.back() != op) ops.push_back(op);
  }
  const std::string base = "fused_" + joined(ops, "_", 4);
  const int count = names_[base]++;
  const std::string name = count == 0 ? base : base + "_" + std::to_string(count + 1);
  kernels_ += "\n// " + joined(kernel.ops, ", ", 64) + ": " + shape(kernel) + "\n" +
              print_kernel(kernel, body, name, false);
  return known_[key] = name;
}

namespace {

/// `{.batch = 1, .m = 2, ...}`
std::string fields(const PiperGemm& g) {
  char text[200];
  std::snprintf(
      text, sizeof text,
      "{.batch = %lld, .m = %lld, .n = %lld, .k = %lld, .transpose_a = %u, .transpose_b = %u, .dtype = %s}",
      static_cast<long long>(g.batch), static_cast<long long>(g.m), static_cast<long long>(g.n),
      static_cast<long long>(g.k), g.transpose_a, g.transpose_b, row_of(g.dtype).abi_name);
  return text;
}

std::string fields(const PiperAttend& a) {
  static constexpr const char* kForms[] = {"PIPER_ATTEND_BUILTIN", "PIPER_ATTEND_FLASH",
                                           "PIPER_ATTEND_EFFICIENT"};
  static_assert(std::size(kForms) == PIPER_ATTEND_EFFICIENT + 1);
  char text[440];
  std::snprintf(
      text, sizeof text,
      "{.batch = %lld, .seq = %lld, .keys = %lld, .heads = %lld, .kv_heads = %lld, .width = %lld, .value_width = %lld, .scale = %.17g, .causal = %u, .dtype = %s, .form = %s}",
      static_cast<long long>(a.batch), static_cast<long long>(a.seq),
      static_cast<long long>(a.keys), static_cast<long long>(a.heads),
      static_cast<long long>(a.kv_heads), static_cast<long long>(a.width),
      static_cast<long long>(a.value_width), a.scale, a.causal, row_of(a.dtype).abi_name,
      kForms[a.form]);
  return text;
}

constexpr const char* kCallKinds[] = {
#define CALL(name, KIND, operands, results, family) "PIPER_CALL_" #KIND,
#include "runtime/calls.def"
#undef CALL
};

/// `{.gemm = {...}}`: an initialiser of PiperCallShape::of.
std::string member(const PiperCallShape& shape) {
  switch (static_cast<PiperCallKind>(shape.kind)) {
    case PIPER_CALL_GEMM: return "{.gemm = " + fields(shape.of.gemm) + "}";
    case PIPER_CALL_ATTEND:
    case PIPER_CALL_ATTEND_GRAD: return "{.attend = " + fields(shape.of.attend) + "}";
  }
  return "{}";
}

/// `2x16x8_nn`: products have names that tell their shapes.
std::string described(const PiperGemm& g) {
  const std::string dtype =
      g.dtype == PIPER_F32 ? "" : "_" + std::string(tensor::dtype_name(row_of(g.dtype).dtype));
  return (g.batch == 1 ? "" : std::to_string(g.batch) + "x") + std::to_string(g.m) + "x" +
         std::to_string(g.n) + "x" + std::to_string(g.k) + "_" + (g.transpose_a ? "t" : "n") +
         (g.transpose_b ? "t" : "n") + dtype;
}

}  // namespace

std::string shape_name(const LibraryCall& call, CallShapes& known) {
  const PiperCallShape& shape = call.shape;
  const std::string kind = kCallKinds[shape.kind], of = member(shape);
  const auto [entry, is_new] = known.names.try_emplace({kind, of});
  if (!is_new) return entry->second;
  const std::string suffix = shape.kind == PIPER_CALL_GEMM
                                 ? described(shape.of.gemm)
                                 : std::to_string(++known.counts[shape.kind]);
  entry->second = std::string(piper_call_name(shape.kind)) + "_" + suffix;
  known.text += "static const PiperCallShape " + entry->second + " = {.kind = " + kind +
                ", .number = " + std::to_string(known.names.size() - 1) + ", .of = " + of + "};\n";
  return entry->second;
}

std::string call_arguments(const KernelBody& body, const LibraryCall& call, CallShapes& known) {
  const auto list = [&](const std::vector<BufferIndex>& buffers) {
    std::string text;
    for (const BufferIndex index : buffers)
      text += (text.empty() ? "{" : ", ") + body.buffers[index].name;
    return text + "}";
  };
  const KernelBuffer& result = body.buffers[call.results[0]];
  const bool may_add = call.shape.kind == PIPER_CALL_GEMM && result.accumulates;
  const std::string end = call.end == PIPER_END_ADDS     ? "PIPER_END_ADDS"
                          : call.end == PIPER_END_ROUNDS ? "PIPER_END_ROUNDS"
                          : may_add                      ? "at->" + result.name + "_adds"
                                                         : "PIPER_END_WRITES";
  std::string text = "&" + shape_name(call, known) + ", " + list(call.operands) + ", " +
                     list(call.results) + ", " + end;
  if (call.workspace_bytes > 0) {
    const std::int64_t offset = body.buffers[call.workspace].offset;
    text += ", arena + at->workspace" + (offset > 0 ? " + " + std::to_string(offset) : "") + ", " +
            std::to_string(call.workspace_bytes);
  }
  return text;
}

std::string begin_of(const CallInterval& call) {
  return (call.first == 0 ? "" : std::to_string(call.first) + " + ") + "rank->intervals[" +
         std::to_string(call.interval) + "].first";
}

std::string first_of(const KernelBody& body, std::int32_t interval) {
  return "first_" + body.intervals[static_cast<std::size_t>(interval)];
}

std::string operand_struct(const KernelBody& body, const std::string& function,
                           const std::string& members) {
  const auto ports = static_cast<BufferIndex>(body.num_inputs + body.num_outputs);
  std::string text = "struct " + function + "_at {\n";
  for (BufferIndex i = 0; i < ports; ++i)
    text += "  uint64_t " + body.buffers[i].name + ";  // " + body.buffers[i].type + "\n";
  if (body.scratch_bytes > 0)
    text += "  uint64_t workspace;  // " + std::to_string(body.scratch_bytes) + " bytes\n";
  for (BufferIndex i = 0; i < ports; ++i) {
    if (body.buffers[i].accumulates) text += "  uint32_t " + body.buffers[i].name + "_adds;\n";
  }
  for (const std::string& interval : body.intervals)
    text += "  uint64_t first_" + interval + ";  // of all ranks\n  uint32_t " + interval +
            "_interval;  // what this rank has of them: into its table\n";
  text += members + "};\n";
  return text;
}

std::string operand_pointers(const KernelBody& body) {
  const std::set<BufferIndex> used = used_buffers(body), written = written_buffers(body);
  std::string text = "  unsigned char* const arena = rank->arena;\n";
  for (const std::string& interval : body.intervals)
    text += "  const uint64_t first_" + interval + " = at->first_" + interval +
            " + rank->intervals[at->" + interval + "_interval].first;\n";
  for (BufferIndex i : used) {
    const KernelBuffer& buffer = body.buffers[i];
    const std::string type = (written.contains(i) ? "" : "const ") + c_type(buffer.dtype) + "*";
    text +=
        "  " + type + " const " + buffer.name + " = (" + type + ")(arena + at->" + field(body, i);
    if (buffer.storage == KernelBuffer::Storage::scratch && buffer.offset > 0)
      text += " + " + std::to_string(buffer.offset);
    if (buffer.interval >= 0)
      text += " + " + first_of(body, buffer.interval) + " * " +
              std::to_string(tensor::dtype_bytes(buffer.dtype));
    text += ");";
    text += buffer.storage == KernelBuffer::Storage::scratch ? "  // " + buffer.type + "\n" : "\n";
  }
  return text;
}

namespace {

/// The keys of the dropouts of a body, in the order of their members of the `at` struct.
std::vector<std::uint64_t> dropout_keys(const KernelBody& body) {
  std::vector<std::uint64_t> keys;
  for (const KernelStep& step : body.steps) {
    const auto* const kernel = std::get_if<Kernel>(&step);
    if (kernel == nullptr) continue;
    for (const Statement* const dropout : kernel_dropouts(*kernel)) keys.push_back(dropout->key);
  }
  return keys;
}

/// `@block.0.F, @block.1.F, ...`
std::string names_text(const KernelBody& body, std::span<const std::string> equal) {
  constexpr std::size_t kNames = 4;
  std::string text = "@" + body.name;
  for (std::size_t i = 0; i < std::min(equal.size(), kNames - 1); ++i) text += ", @" + equal[i];
  if (equal.size() >= kNames) text += ", ... (" + counted(equal.size() + 1, "body", "bodies") + ")";
  return text;
}

}  // namespace

std::string code_of(const KernelBody& body) {
  std::string code;
  const auto put = [&](const auto&... numbers) { ((code += std::to_string(numbers) + " "), ...); };
  const auto list = [&](const auto& numbers) {
    for (const auto number : numbers) put(number);
    code += "\n";
  };
  put(body.num_inputs, body.num_outputs, body.scratch_bytes);
  for (const std::string& interval : body.intervals) code += interval + " ";
  for (const KernelBuffer& buffer : body.buffers) {
    put(static_cast<int>(buffer.storage), buffer.port, buffer.offset, buffer.elements,
        static_cast<int>(buffer.dtype), static_cast<int>(buffer.accumulates), buffer.interval);
  }
  for (const KernelStep& step : body.steps) {
    if (const auto* const kernel = std::get_if<Kernel>(&step)) {
      code += print_kernel(*kernel, body, "", true);
      list(kernel_parameters(*kernel));
      list(kernel_intervals(*kernel));
      for (const RangeCheck& check : kernel->checks) {
        put(check.buffer, check.bound, static_cast<int>(check.target), check.ignore.has_value(),
            check.ignore.value_or(0));
        code += initialiser(check.where) + "\n";
      }
      continue;
    }
    const auto& call = std::get<LibraryCall>(step);
    code += std::string(kCallKinds[call.shape.kind]) + member(call.shape);
    list(call.operands);
    list(call.results);
    put(static_cast<int>(call.end), call.workspace_bytes,
        call.workspace_bytes > 0 ? call.workspace : 0);
  }
  return code;
}

std::string CppBodies::add(const KernelBody& body, std::span<const std::string> equal) {
  const std::string function = functions_.add(body.name);
  const KernelStats stats = kernel_stats(body);
  const bool uses_none = used_buffers(body).empty();

  bodies_ += "\n// " + names_text(body, equal) + ": " + counted(stats.kernels, "kernel") + ", " +
             counted(stats.library_calls, "library call") + ", " + counted(stats.bytes, "byte") +
             " moved\n";
  std::string members;
  for (std::size_t d = 0; d < dropout_keys(body).size(); ++d)
    members += "  uint64_t " + draws_name(d) + ";  // the key of a dropout\n";
  bodies_ += operand_struct(body, function, members);

  bodies_ += "static int " + function +
             "(const PiperApi* api, PiperRank* rank, const uint32_t action, const " + function +
             "_at* at) {\n";
  bodies_ += operand_pointers(body);
  if (uses_none) bodies_ += "  (void)arena;\n  (void)at;\n";
  if (body.steps.empty()) bodies_ += "  (void)api;\n  (void)action;\n";
  bool calls = false;
  std::size_t dropouts = 0;  // so far

  for (const KernelStep& step : body.steps) {
    const auto name = [&](BufferIndex i) { return body.buffers[i].name; };
    if (const auto* kernel = std::get_if<Kernel>(&step)) {
      for (const RangeCheck& check : kernel->checks) {
        const std::string function = check.ignore ? "check_masked" : "check_range";
        if (known_.emplace(function, "").second)
          shapes_.text += check.ignore ? kCheckMasked : kCheckRange;
        bodies_ += "  if (" + function + "(api, rank, action, " + initialiser(check.where) + ", " +
                   name(check.buffer) + ", " + std::to_string(body.buffers[check.buffer].elements) +
                   ", " + std::to_string(check.bound) +
                   (check.ignore ? ", " + std::to_string(*check.ignore) : "") + ", \"" +
                   (check.target ? kTargetOutOfRange : kIndexOutOfRange) + "\")) return 1;\n";
        calls = true;
      }
      const std::string function_name = kernel_function(*kernel, body);
      std::string arguments = kernel_draws(*kernel) ? "rank" : "";
      for (std::size_t d = 0; d < kernel_dropouts(*kernel).size(); ++d)
        arguments += ", at->" + draws_name(dropouts++);
      for (const std::int32_t interval : kernel_intervals(*kernel))
        arguments += (arguments.empty() ? "" : ", ") + first_of(body, interval);
      std::set<BufferIndex> flags;
      for (const Statement& s : kernel->statements) {
        if (is_effect(s.code) && body.buffers[s.access.buffer].accumulates)
          flags.insert(s.access.buffer);
      }
      for (BufferIndex i : kernel_parameters(*kernel)) {
        arguments += (arguments.empty() ? "" : ", ") + name(i);
        if (flags.contains(i)) arguments += ", at->" + name(i) + "_adds != 0";
      }
      bodies_ += "  // " + joined(kernel->values, ", ", 12) +
                 (kernel->values.size() > 12 ? ", ..." : "") + "\n";
      bodies_ += "  " + function_name + "(" + arguments + ");\n";
      continue;
    }
    const auto& call = std::get<LibraryCall>(step);
    bodies_ += "  // " + call.value + "\n  if (piper_call(api, rank, action, " +
               call_arguments(body, call, shapes_) + ")) return 1;\n";
    calls = true;
  }
  if (!calls && !body.steps.empty()) bodies_ += "  (void)api;\n  (void)action;\n";
  bodies_ += "  return 0;\n}\n";
  return function;
}

std::string operand_values(const KernelBody& body, const BodyOperands& operands) {
  std::string text = "{";
  const auto put = [&](const std::string& name, std::uint64_t number) {
    text += (text.size() == 1 ? "." : ", .") + name + " = " + std::to_string(number);
  };
  const std::size_t ports = body.num_inputs + body.num_outputs;
  for (std::size_t i = 0; i < ports; ++i) put(body.buffers[i].name, operands.offsets[i]);
  if (body.scratch_bytes > 0) put("workspace", operands.offsets[ports]);
  for (std::size_t i = 0; i < body.num_outputs; ++i) {
    if (body.buffers[body.num_inputs + i].accumulates)
      put(body.buffers[body.num_inputs + i].name + "_adds", operands.accumulate[i]);
  }
  for (std::size_t s = 0; s < body.intervals.size(); ++s) {
    put("first_" + body.intervals[s], operands.intervals[s].first);
    put(body.intervals[s] + "_interval", operands.intervals[s].interval);
  }
  return text + "}";
}

std::string CppBodies::operands(const KernelBody& added, const KernelBody& body,
                                const BodyOperands& operands) {
  std::string text = operand_values(added, operands);
  text.pop_back();
  const std::vector<std::uint64_t> keys = dropout_keys(body);
  for (std::size_t d = 0; d < keys.size(); ++d) {
    text +=
        (text.size() == 1 ? "." : ", .") + draws_name(d) + " = " + std::to_string(keys[d]) + "u";
  }
  return text + "}";
}

std::string CppBodies::text() const { return shapes_.text + kernels_ + bodies_; }

}  // namespace piper::backend
