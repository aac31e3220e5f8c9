#include "backend/jit/self_check.h"

#include <cstdio>
#include <cstring>
#include <new>
#include <vector>

#include "backend/dtypes.h"
#include "backend/jit/check_chains.h"
#include "backend/kernel/emit_bodies.h"
#include "backend/kernel/evaluate.h"
#include "ir/context.h"

namespace piper::backend {

namespace {

using tensor::DType;

struct Size {
  DType dtype;
  std::int64_t batch, dim;
};
/// Extents below, at and beyond those of a vector, in every type.
constexpr Size kSizes[] = {
    {DType::f64, 4, 4}, {DType::f64, 4, 13}, {DType::f32, 4, 11}, {DType::bf16, 3, 5}};

/// Neighbours differ, and few of the numbers have short mantissas.
double number(std::size_t i) { return (static_cast<double>(i * 29 % 64) - 31) * 0.0483; }

struct Arena {
  explicit Arena(std::size_t size)
      : bytes(static_cast<unsigned char*>(::operator new(size, std::align_val_t(64)))) {
    std::memset(bytes, 0x7f, size);
  }
  Arena(const Arena&) = delete;
  ~Arena() { ::operator delete(bytes, std::align_val_t(64)); }
  unsigned char* const bytes;
};

std::string shown(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

}  // namespace

struct SelfCheck::Bodies {
  struct Each {
    std::string what;
    KernelBody kernels;
    std::vector<std::uint64_t> offsets;
    std::vector<std::uint8_t> adds;  // per output
  };
  std::vector<Each> all;
  std::uint64_t arena_bytes = 0;

  void add(CheckChain chain) {
    Each& each = all.emplace_back();
    each.what = std::move(chain.what);
    chain.body.name =
        chain.body.graph.context().symbol("check" + std::to_string(all.size()) + ".F");
    each.kernels = build_kernels(chain.body);
    const auto place = [&](std::int64_t bytes) {
      each.offsets.push_back(arena_bytes);
      arena_bytes += (static_cast<std::uint64_t>(bytes) + 63) / 64 * 64;
    };
    for (std::uint32_t b = 0; b < each.kernels.num_inputs + each.kernels.num_outputs; ++b) {
      const KernelBuffer& buffer = each.kernels.buffers[b];
      place(buffer.elements * static_cast<std::int64_t>(tensor::dtype_bytes(buffer.dtype)));
    }
    if (each.kernels.scratch_bytes > 0) place(each.kernels.scratch_bytes);
    each.adds.assign(each.kernels.num_outputs, 0);
  }

  void fill(const Each& each, unsigned char* arena) const {
    for (std::uint32_t b = 0; b < each.kernels.num_inputs; ++b) {
      const KernelBuffer& buffer = each.kernels.buffers[b];
      with_element(buffer.dtype, [&](auto zero) {
        using Element = decltype(zero);
        auto* const to = reinterpret_cast<Element*>(arena + each.offsets[b]);
        for (std::int64_t i = 0; i < buffer.elements; ++i) {
          const double value = number(static_cast<std::size_t>(i) + 13 * b);
          if constexpr (std::is_same_v<Element, piper_bf16>) to[i] = static_cast<float>(value);
          else to[i] = static_cast<Element>(value);
        }
      });
    }
  }

  void evaluate(const Each& each, PiperRank& rank) const {
    PiperApi api{};
    std::vector<void*> operands;
    for (const std::uint64_t offset : each.offsets) operands.push_back(rank.arena + offset);
    BodyCall call;
    call.api = &api;
    call.rank = &rank;
    call.operands = operands;
    call.accumulate = each.adds;
    backend::evaluate(each.kernels, call);
  }
};

SelfCheck::SelfCheck() {
  Context context;
  auto bodies = std::make_unique<Bodies>();
  for (const Size& size : kSizes) {
    for (CheckChain& chain : check_chains(context, size.dtype, size.batch, size.dim))
      bodies->add(std::move(chain));
  }
  bodies_ = std::move(bodies);
}

SelfCheck::~SelfCheck() = default;

std::string SelfCheck::source() const {
  CppBodies printed;
  std::string calls;
  for (const Bodies::Each& each : bodies_->all) {
    const std::string name = printed.add(each.kernels);
    const BodyOperands operands{.offsets = each.offsets, .accumulate = each.adds, .intervals = {}};
    calls += "  static const " + name + "_at " + name +
             "_here = " + CppBodies::operands(each.kernels, each.kernels, operands) + ";\n  if (" +
             name + "(api, rank, 0, &" + name + "_here)) return 1;\n";
  }
  return "// Shows whether a compiler keeps the law of values: the numbers that a step leaves are compared with the interpreter's.\n"
         "#include \"runtime/abi.h\"\n#include \"runtime/kernel_math.h\"\n" +
         printed.text() + "\nstatic int step(const PiperApi* api, PiperRank* rank) {\n" + calls +
         "  return 0;\n}\n\nextern \"C\" const PiperProgram* piper_program_v1(void) {\n  static const PiperProgram program = {.abi_version = PIPER_ABI_VERSION, .role = \"self_check\", .hash = \"\", .arena_bytes = " +
         std::to_string(bodies_->arena_bytes) + ", .step = step};\n  return &program;\n}\n";
}

std::string SelfCheck::difference(const PiperProgram& program) const {
  const Arena built(bodies_->arena_bytes), evaluated(bodies_->arena_bytes);
  if (program.arena_bytes != bodies_->arena_bytes)
    return "its size is " + std::to_string(program.arena_bytes) + " bytes, not " +
           std::to_string(bodies_->arena_bytes);
  PiperRank rank{};
  for (const Arena* arena : {&built, &evaluated}) {
    for (const Bodies::Each& each : bodies_->all) bodies_->fill(each, arena->bytes);
  }
  rank.arena = built.bytes;
  const PiperApi api{};
  program.step(&api, &rank);
  rank.arena = evaluated.bytes;
  for (const Bodies::Each& each : bodies_->all) {
    bodies_->evaluate(each, rank);
    for (std::uint32_t b = each.kernels.num_inputs;
         b < each.kernels.num_inputs + each.kernels.num_outputs; ++b) {
      const KernelBuffer& buffer = each.kernels.buffers[b];
      const unsigned char *found = built.bytes + each.offsets[b],
                          *right = evaluated.bytes + each.offsets[b];
      const std::uint64_t bytes = tensor::dtype_bytes(buffer.dtype);
      for (std::int64_t i = 0; i < buffer.elements; ++i) {
        const std::uint64_t at = static_cast<std::uint64_t>(i) * bytes;
        if (std::memcmp(found + at, right + at, bytes) == 0) continue;
        return "of the " + each.what + ", element " + std::to_string(i) + " is " +
               shown(element_as_double(found, buffer.dtype, i)) + " instead of " +
               shown(element_as_double(right, buffer.dtype, i));
      }
    }
  }
  return {};
}

}  // namespace piper::backend
