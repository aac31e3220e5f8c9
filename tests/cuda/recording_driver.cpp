#include "tests/cuda/recording_driver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <set>
#include <span>

#include "backend/kernel/schedule_passes.h"
#include "runtime/dtypes.h"

namespace piper::test {

namespace cuda = runtime::cuda;
using cuda::Status;

namespace {

constexpr Status kNotFound = 500;
constexpr std::uint64_t kMemory = std::uint64_t{1} << 32, kAlignment = 256;

/// The argument at a position.
template <typename T>
T argument(const void* const* arguments, std::size_t position) {
  T value;
  std::memcpy(&value, arguments[position], sizeof value);
  return value;
}

/// Bytes of an element of a sum: f32 for bf16.
std::uint64_t sum_bytes(std::uint32_t dtype) {
  return dtype == PIPER_BF16 ? 4 : runtime::element_bytes(dtype);
}

std::uint32_t dtype_of(const std::string& name) {
  const std::string suffix = name.substr(name.rfind('_') + 1);
  for (const std::uint32_t dtype : {PIPER_F64, PIPER_F32, PIPER_I64, PIPER_BF16}) {
    if (suffix == runtime::dtype_name(dtype)) return dtype;
  }
  ADD_FAILURE() << "no type in the name of " << name;
  return PIPER_F64;
}

/// Elements of the operands of an attention.
struct AttendElements {
  explicit AttendElements(const PiperAttend& call)
      : q(count(call.batch * call.seq * call.heads * call.width)),
        k(count(call.batch * call.keys * call.kv_heads * call.width)),
        v(count(call.batch * call.keys * call.kv_heads * call.value_width)),
        out(count(call.batch * call.seq * call.heads * call.value_width)),
        lse(count(call.batch * call.seq * call.heads)) {}
  std::uint64_t q, k, v, out, lse;

 private:
  static std::uint64_t count(std::int64_t elements) { return static_cast<std::uint64_t>(elements); }
};

std::vector<KernelOperand> operands_of(const backend::cuda::BodyStep& step,
                                       const backend::KernelBody& body) {
  const std::set<backend::BufferIndex> written =
      backend::buffer_use(std::get<backend::Kernel>(body.steps[step.nest])).writes;
  std::vector<KernelOperand> operands;
  for (const backend::cuda::Argument& argument : step.arguments) {
    const backend::KernelBuffer& buffer = body.buffers[argument.buffer];
    switch (argument.kind) {
      case backend::cuda::Argument::Kind::draw:
        operands.push_back({2 * sizeof(std::uint64_t), false});
        break;
      case backend::cuda::Argument::Kind::buffer:
        operands.push_back(
            {static_cast<std::uint64_t>(buffer.elements) * tensor::dtype_bytes(buffer.dtype),
             written.contains(argument.buffer)});
        break;
      case backend::cuda::Argument::Kind::first:
      case backend::cuda::Argument::Kind::adds: operands.emplace_back(); break;
    }
  }
  return operands;
}

}  // namespace

KernelOperands operands_of(const backend::Job& job) {
  KernelOperands all;
  backend::cuda::KernelSet known = job.kernels();
  for (const backend::ProgramSet* programs : {&job.training(), job.evaluation()}) {
    if (programs == nullptr) continue;
    for (const backend::KernelBody& body : programs->bodies) {
      for (const backend::cuda::BodyStep& step : known.add(body)) {
        if (step.kind != backend::cuda::BodyStep::Kind::kernel) continue;
        const auto [entry, fresh] =
            all.try_emplace(known.list()[step.number].name, operands_of(step, body));
        // Bodies whose buffers differ may share a kernel.
        std::vector<KernelOperand> operands = operands_of(step, body);
        EXPECT_EQ(entry->second.size(), operands.size()) << entry->first;
        for (std::size_t a = 0; a < operands.size(); ++a)
          EXPECT_TRUE(entry->second[a].bytes == operands[a].bytes &&
                      entry->second[a].writes == operands[a].writes)
              << entry->first;
      }
    }
  }
  return all;
}

Status RecordingDriver::put(TraceCall::Kind kind, std::uint32_t stream, std::uint32_t of,
                            const char* what) {
  std::vector<TraceCall>& calls = capturing_ ? trace_.graphs.back().calls : trace_.calls;
  const auto end = static_cast<std::uint32_t>(trace_.accesses.size());
  calls.push_back({kind, stream, of, first_access_, end, what,
                   kind == TraceCall::Kind::host_wait ? 0 : actions_[stream]});
  first_access_ = end;
  return cuda::kSuccess;
}

void RecordingDriver::touches(const void* at, std::uint64_t bytes, bool writes) {
  if (bytes == 0) return;
  const auto begin = reinterpret_cast<std::uint64_t>(at);
  const auto range = ranges_.upper_bound(begin);
  EXPECT_TRUE(range != ranges_.begin() && begin + bytes <= std::prev(range)->second)
      << "an operation touches what was not allocated";
  trace_.accesses.push_back({begin, begin + bytes, writes});
}

Status RecordingDriver::touch(CudaStream stream, const char* what,
                              const std::vector<Touched>& list) {
  for (const Touched& each : list) touches(each.at, each.bytes, each.writes);
  return work(stream, what);
}

Status RecordingDriver::free_bytes(std::uint64_t* bytes) {
  *bytes = kMemory;
  return cuda::kSuccess;
}

Status RecordingDriver::allocate(std::uint64_t bytes, unsigned char** to) {
  unsigned char* const base = memory_.emplace_back(new unsigned char[bytes + kAlignment]()).get();
  *to = base + (kAlignment - reinterpret_cast<std::uintptr_t>(base) % kAlignment);
  const auto begin = reinterpret_cast<std::uint64_t>(*to);
  ranges_[begin] = begin + bytes;
  return cuda::kSuccess;
}

Status RecordingDriver::create_stream(Priority priority, CudaStream* made) {
  actions_.push_back(0);
  trace_.priorities.push_back(priority);
  *made = handle<CudaStream>(trace_.num_streams++);
  return cuda::kSuccess;
}

Status RecordingDriver::create_event(Event* made) {
  *made = handle<Event>(trace_.num_events++);
  return cuda::kSuccess;
}

Status RecordingDriver::record(Event event, CudaStream stream) {
  return put(TraceCall::Kind::record, number(stream), number(event), "record");
}

Status RecordingDriver::wait(CudaStream stream, Event event) {
  return put(TraceCall::Kind::wait, number(stream), number(event), "wait");
}

/// The work has ended, so it precedes the host and all that it enqueues from now on.
Status RecordingDriver::query(Event event) {
  EXPECT_FALSE(capturing_);
  return put(TraceCall::Kind::host_wait, 0, number(event), "host's wait");
}

Status RecordingDriver::elapsed(Event, Event, double* seconds) {
  *seconds = 1e-6;
  return cuda::kSuccess;
}

Status RecordingDriver::copy(CudaStream stream, void* to, const void* from, std::uint64_t bytes) {
  reads(from, bytes);
  writes(to, bytes);
  if (!capturing_) std::memcpy(to, from, bytes);
  return work(stream, "copy");
}

Status RecordingDriver::fill(CudaStream stream, void* to, unsigned char byte, std::uint64_t bytes) {
  writes(to, bytes);
  if (!capturing_) std::memset(to, byte, bytes);
  return work(stream, "fill");
}

Status RecordingDriver::write(CudaStream stream, std::uint32_t* to, std::uint32_t value) {
  writes(to, sizeof value);
  *to = value;
  work(stream, "write");
  ++actions_[number(stream)];
  return cuda::kSuccess;
}

Status RecordingDriver::launch(CudaStream stream, Function function, std::uint64_t, std::uint32_t,
                               const void* const* arguments) {
  const RecordedFunction& called = functions_[number(function)];
  if (called.operands == nullptr) {
    own_kernel(*called.name, arguments);
  } else {
    for (std::size_t a = 0; a < called.operands->size(); ++a) {
      const KernelOperand& operand = (*called.operands)[a];
      if (operand.bytes > 0)
        touches(argument<const void*>(arguments, a), operand.bytes, operand.writes);
    }
  }
  work(stream, called.name->c_str());
  if (*called.name == "piper_advance")
    actions_[number(stream)] += argument<std::uint32_t>(arguments, 2);
  return cuda::kSuccess;
}

/// As runtime/cuda/device_kernels.h declares them.
void RecordingDriver::own_kernel(const std::string& name, const void* const* arguments) {
  const auto at = [&](std::size_t position) { return argument<const void*>(arguments, position); };
  if (name == "piper_advance") {
    writes(at(0), sizeof(std::uint32_t));
    return writes(at(1), sizeof(std::uint32_t));
  }
  if (name == "piper_move") {
    reads(at(0), argument<std::uint64_t>(arguments, 2));
    return writes(at(1), argument<std::uint64_t>(arguments, 2));
  }
  if (name == "piper_check") {
    reads(at(0), argument<std::uint64_t>(arguments, 1) * sizeof(std::int64_t));
    return writes(at(5), 3 * sizeof(std::int64_t));
  }
  if (name == "piper_count") {
    reads(at(0), argument<std::uint64_t>(arguments, 1) * sizeof(std::int64_t));
    return writes(at(4), sizeof(double));
  }
  const std::uint64_t size = runtime::element_bytes(dtype_of(name));
  if (name.starts_with("piper_initialise_"))
    return writes(at(6), argument<std::uint64_t>(arguments, 4) * size);
  if (name.starts_with("piper_sum_")) {
    for (const std::size_t side : {0u, 2u}) {
      const std::uint32_t members = argument<std::uint32_t>(arguments, side + 1);
      reads(at(side), members * sizeof(void*));
      const std::span places(static_cast<const void* const*>(at(side)), members);
      for (const void* const place : places)
        touches(place, argument<std::uint64_t>(arguments, 4) * size, side != 0);
    }
    return;
  }
  // An attention: its sizes stand as in PiperAttend, then come its operands.
  PiperAttend sizes{};
  std::memcpy(&sizes, arguments[0], offsetof(PiperAttend, scale));
  const AttendElements elements(sizes);
  const std::uint64_t sum = sum_bytes(dtype_of(name));
  reads(at(1), elements.q * size);
  reads(at(2), elements.k * size);
  reads(at(3), elements.v * size);
  const bool forward = name.starts_with("piper_attend_") && name.find("_d") == std::string::npos;
  touches(at(4), elements.out * size, forward);
  touches(at(5), elements.lse * sum, forward);
  if (forward) return;
  reads(at(6), elements.out * size);
  const bool of_keys = name.starts_with("piper_attend_dkv_");
  writes(at(7), (of_keys ? elements.k : elements.q) * size);
  if (of_keys) writes(at(8), elements.v * size);
}

Status RecordingDriver::call(CudaStream stream, PlannedCall planned, const PiperCall& call) {
  switch (static_cast<PiperCallKind>(call.shape->kind)) {
    case PIPER_CALL_GEMM: product(planned, call); return work(stream, "product");
    case PIPER_CALL_ATTEND: attention(call); return work(stream, "attention");
    case PIPER_CALL_ATTEND_GRAD: attention(call); return work(stream, "attention's gradient");
  }
  return kNotFound;
}

void RecordingDriver::product(PlannedCall planned, const PiperCall& call) {
  const RecordedProduct& known = products_[number(planned)];
  EXPECT_TRUE(piper_same_shape(&known.shape, call.shape) && known.end == call.end);
  const PiperGemm& gemm = call.shape->of.gemm;
  const auto elements = [&](std::int64_t rows, std::int64_t columns) {
    return static_cast<std::uint64_t>(gemm.batch * rows * columns);
  };
  const std::uint64_t size = runtime::element_bytes(gemm.dtype);
  reads(call.in[0], elements(gemm.m, gemm.k) * size);
  reads(call.in[1], elements(gemm.k, gemm.n) * size);
  writes(call.out[0],
         elements(gemm.m, gemm.n) * (call.end == PIPER_END_ROUNDS ? size : sum_bytes(gemm.dtype)));
  writes(call.workspace, call.workspace_bytes);
}

void RecordingDriver::attention(const PiperCall& call) {
  const PiperAttend& attend = call.shape->of.attend;
  const AttendElements elements(attend);
  const std::uint64_t size = runtime::element_bytes(attend.dtype), sum = sum_bytes(attend.dtype);
  reads(call.in[0], elements.q * size);
  reads(call.in[1], elements.k * size);
  reads(call.in[2], elements.v * size);
  if (call.shape->kind == PIPER_CALL_ATTEND) {
    writes(call.out[0], elements.out * size);
    writes(call.out[1], elements.lse * sum);
  } else {
    reads(call.in[3], elements.out * size);
    reads(call.in[4], elements.lse * sum);
    reads(call.in[5], elements.out * size);
    writes(call.out[0], elements.q * size);
    writes(call.out[1], elements.k * size);
    writes(call.out[2], elements.v * size);
  }
  writes(call.workspace, call.workspace_bytes);
}

Status RecordingDriver::begin_capture(CudaStream stream) {
  trace_.graphs.push_back({number(stream), {}});
  std::fill(actions_.begin(), actions_.end(), 0);
  capturing_ = true;
  return cuda::kSuccess;
}

Status RecordingDriver::end_capture(CudaStream, Graph* made) {
  capturing_ = false;
  *made = handle<Graph>(trace_.graphs.size() - 1);
  return cuda::kSuccess;
}

Status RecordingDriver::launch_graph(CudaStream stream, Graph graph) {
  return put(TraceCall::Kind::graph, number(stream), number(graph), "graph");
}

Status RecordingDriver::load(const std::string&, Module* made) {
  *made = handle<Module>(0);
  return cuda::kSuccess;
}

Status RecordingDriver::find(Module, const char* name, Function* found) {
  const auto known = operands_.find(name);
  if (known == operands_.end() && !std::string(name).starts_with("piper_")) return kNotFound;
  functions_.push_back(
      {&trace_.names.emplace_back(name), known == operands_.end() ? nullptr : &known->second});
  *found = handle<Function>(functions_.size() - 1);
  return cuda::kSuccess;
}

Status RecordingDriver::plan_call(const PiperCallShape& shape, std::uint32_t end,
                                  std::uint64_t workspace, PlannedCall* made) {
  products_.push_back({shape, end, workspace});
  *made = handle<PlannedCall>(products_.size() - 1);
  return cuda::kSuccess;
}

}  // namespace piper::test
