#pragma once
// The CUDA kernels of a program: one source for NVRTC, a table of its kernels, and for every body
// the calls that run it, in order.
//
// Guarantees: equal loop nests of all bodies are one kernel; the source includes only prelude.h and
// kernel_math.h.
//
//   KernelSet kernels;
//   for (const BodyStep& step : kernels.add(body)) ...;   // launch kernels.list()[step.kernel] with step.arguments
//   kernels.source()

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backend/cuda/launch.h"
#include "backend/kernel/kernel.h"

namespace piper::backend::cuda {

/// An argument of a kernel, in the order of its parameters.
struct Argument {
  enum class Kind : std::uint8_t {
    draw,    // const piper_draw*, in device memory
    first,   // uint64_t: the first index of an interval of the body
    buffer,  // a pointer
    adds,    // uint32_t: whether the kernel accumulates into the buffer
  } kind = Kind::buffer;
  BufferIndex buffer = 0;
  std::int32_t interval = -1;  // first: into KernelBody::intervals
};
std::vector<Argument> arguments_of(const Kernel& kernel, const KernelBody& body);

struct KernelEntry {
  std::string name;   // of the function
  std::string title;  // `rms_norm, mul: 8192 rows of 768`
  Form form = Form::elements;
  Launch launch;
  std::int64_t shared_bytes = 0;  // static shared memory of a block
  // Bytes of the buffers that it reads and of those that it writes.
  std::int64_t bytes = 0;
  // Flops of its statements, by the op table's cost, times the elements or rows that execute them.
  std::int64_t operations = 0;
};

/// One call of a body.
struct BodyStep {
  enum class Kind : std::uint8_t {
    kernel,   // KernelSet::list()[number], with `arguments`
    clear,    // clears the buffer, unless it accumulates and the call says so
    check,    // `check`: on the device; a failure is read back with the action's end
    library,  // std::get<LibraryCall>(body.steps[number])
  } kind = Kind::kernel;
  std::uint32_t number = 0;
  std::uint32_t nest = 0;  // kernel: into body.steps
  BufferIndex buffer = 0;
  RangeCheck check;
  std::vector<Argument> arguments;
};

class KernelSet {
 public:
  std::vector<BodyStep> add(const KernelBody& body);
  std::string source() const;
  const std::vector<KernelEntry>& list() const { return list_; }

 private:
  std::uint32_t kernel(const Kernel& kernel, const KernelBody& body);

  std::string text_;
  std::vector<KernelEntry> list_;
  std::map<std::string, std::uint32_t> known_;  // a kernel without names -> its number
  std::map<std::string, int> names_;            // how often a name was given
};

}  // namespace piper::backend::cuda
