#include "backend/interpret/interpret_enqueue.h"

#include <algorithm>

#include "backend/dtypes.h"
#include "llvm/ADT/SmallVector.h"

namespace piper::backend {

namespace {

using cuda::Argument;
using cuda::BodyStep;

}  // namespace

InterpretedEnqueue::InterpretedEnqueue(const DeviceProgram& program,
                                       const std::vector<KernelBody>& bodies,
                                       const cuda::KernelSet& kernels,
                                       const std::vector<std::vector<BodyStep>>& steps)
    : program_(program), bodies_(bodies), steps_(steps) {
  for (const cuda::KernelEntry& kernel : kernels.list()) {
    kernels_.push_back({kernel.name.c_str(), static_cast<std::uint64_t>(kernel.launch.blocks),
                        static_cast<std::uint32_t>(kernel.launch.threads), 0});
  }
  std::uint32_t num_shapes = 0;
  for (std::size_t body = 0; body < steps.size(); ++body) {
    std::vector<PiperCheck>& checks = checks_.emplace_back();
    for (const BodyStep& step : steps[body]) {
      PiperCheck& check = checks.emplace_back();
      if (step.kind == BodyStep::Kind::kernel)
        kernels_[step.number].num_arguments = static_cast<std::uint32_t>(step.arguments.size());
      if (step.kind == BodyStep::Kind::library) {
        const auto& call = std::get<LibraryCall>(bodies[body].steps[step.number]);
        num_shapes = std::max(num_shapes, call.shape.number + 1);
      }
      if (step.kind != BodyStep::Kind::check) continue;
      check = {step.check.where.abi(),
               step.check.target ? kTargetOutOfRange : kIndexOutOfRange,
               bodies[body].buffers[step.check.buffer].elements,
               step.check.bound,
               step.check.ignore.value_or(0),
               step.check.ignore ? 1u : 0u};
    }
  }
  table_ = {PIPER_DEVICE_ABI_VERSION,
            static_cast<std::uint32_t>(program.instructions.size()),
            static_cast<std::uint32_t>(kernels_.size()),
            num_shapes,
            kernels_.data(),
            program.places.data(),
            &InterpretedEnqueue::enqueue,
            this};
}

int InterpretedEnqueue::enqueue(const PiperEnqueue* role, PiperDevice* device, PiperRank* rank,
                                std::uint32_t first, std::uint32_t last) {
  const auto& self = *static_cast<const InterpretedEnqueue*>(role->context);
  for (std::uint32_t action = first; action < last; ++action) {
    const Instruction& each = self.program_.instructions[action];
    if (device->begin(device, rank, each.stream, action,
                      each.num_waits == 0 ? nullptr : self.program_.waits.data() + each.first_wait,
                      each.num_waits) != 0)
      return 1;
    if (self.execute(device, rank, action) != 0 ||
        device->end(device, rank, each.stream, action) != 0)
      return 1;
  }
  return 0;
}

int InterpretedEnqueue::execute(PiperDevice* device, PiperRank* rank, std::uint32_t action) const {
  const Instruction& each = program_.instructions[action];
  const std::uint64_t* operands = program_.operands.data() + each.first_operand;
  switch (each.kind) {
    case Instruction::Kind::run: return run_body(device, rank, action);
    case Instruction::Kind::load: {
      const CallInterval& samples = intervals_of(program_, each).front();
      return device->load(device, rank, each.stream, action, each.subject, samples.begin(*rank),
                          program_.intervals[samples.interval].extent, operands[0]);
    }
    case Instruction::Kind::count:
      return each.num_operands < 2
                 ? 0
                 : device->count(device, rank, each.stream, action, operands, each.num_operands - 1,
                                 each.elements, each.ignore, operands[each.num_operands - 1]);
    case Instruction::Kind::report:
      if (each.num_operands == 0) return 0;
      return device->report(device, rank, each.stream, action, each.subject, operands,
                            each.num_operands, row_of(each.dtype).abi, each.counted ? 1 : 0);
    case Instruction::Kind::communicate:
      return device->communicate(device, rank, each.stream, action, each.position);
  }
  return 0;
}

int InterpretedEnqueue::run_body(PiperDevice* device, PiperRank* rank, std::uint32_t action) const {
  const Instruction& each = program_.instructions[action];
  const KernelBody& body = bodies_[each.body];
  const std::uint64_t* operands = program_.operands.data() + each.first_operand;
  const std::uint32_t ports = body.num_inputs + body.num_outputs;
  llvm::SmallVector<std::uint64_t, 2> firsts;
  for (const CallInterval& interval : intervals_of(program_, each))
    firsts.push_back(interval.begin(*rank));
  const auto address = [&](BufferIndex index) -> void* {
    const KernelBuffer& buffer = body.buffers[index];
    if (buffer.storage == KernelBuffer::Storage::scratch)
      return rank->arena + operands[ports] + buffer.offset;
    return rank->arena + operands[index] +
           (buffer.interval >= 0 ? firsts[static_cast<std::size_t>(buffer.interval)] *
                                       tensor::dtype_bytes(buffer.dtype)
                                 : 0);
  };
  const auto adds = [&](BufferIndex index) -> std::uint32_t {
    return body.buffers[index].accumulates
               ? program_.accumulate[each.first_accumulate + body.buffers[index].port]
               : 0;
  };
  const std::vector<BodyStep>& steps = steps_[each.body];
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const BodyStep& step = steps[s];
    int failed = 0;
    switch (step.kind) {
      case BodyStep::Kind::check:
        failed = device->check(device, rank, each.stream, action, &checks_[each.body][s],
                               static_cast<const std::int64_t*>(address(step.check.buffer)));
        break;
      case BodyStep::Kind::clear: {
        const KernelBuffer& buffer = body.buffers[step.buffer];
        const auto bytes =
            static_cast<std::uint64_t>(buffer.elements) * tensor::dtype_bytes(buffer.dtype);
        if (adds(step.buffer) == 0)
          failed = device->clear(device, rank, each.stream, action, address(step.buffer), bytes);
        break;
      }
      case BodyStep::Kind::kernel: {
        union Value {
          void* address;
          std::uint32_t flag;
        };
        constexpr unsigned kUsual = 32;  // arguments; only a kernel with more of them allocates
        llvm::SmallVector<Value, kUsual> values(step.arguments.size());
        llvm::SmallVector<const void*, kUsual> arguments(step.arguments.size());
        for (std::size_t a = 0; a < arguments.size(); ++a) {
          const Argument& argument = step.arguments[a];
          arguments[a] = &values[a];
          switch (argument.kind) {
            case Argument::Kind::draw: arguments[a] = &device->draw; break;
            case Argument::Kind::first:
              arguments[a] = &firsts[static_cast<std::size_t>(argument.interval)];
              break;
            case Argument::Kind::buffer: values[a].address = address(argument.buffer); break;
            case Argument::Kind::adds: values[a].flag = adds(argument.buffer); break;
          }
        }
        failed = device->kernel(device, rank, each.stream, action, step.number, arguments.data());
        break;
      }
      case BodyStep::Kind::library: {
        const auto& call = std::get<LibraryCall>(body.steps[step.number]);
        const void* in[PIPER_MAX_CALL_OPERANDS];
        void* out[PIPER_MAX_CALL_RESULTS];
        for (std::size_t i = 0; i < call.operands.size(); ++i) in[i] = address(call.operands[i]);
        for (std::size_t i = 0; i < call.results.size(); ++i) out[i] = address(call.results[i]);
        const bool may_add = call.shape.kind == PIPER_CALL_GEMM && call.end == PIPER_END_WRITES;
        const PiperCall request{
            .shape = &call.shape,
            .in = in,
            .out = out,
            .workspace = call.workspace_bytes > 0 ? address(call.workspace) : nullptr,
            .workspace_bytes = call.workspace_bytes,
            .end = may_add && adds(call.results[0]) != 0 ? PIPER_END_ADDS : call.end};
        failed = device->call(device, rank, each.stream, action, &request);
        break;
      }
    }
    if (failed != 0) return failed;
  }
  return 0;
}

}  // namespace piper::backend
