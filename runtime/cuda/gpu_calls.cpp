// The functions that roles call: each enqueues on the queue's stream and returns.
#include <cstring>
#include <memory>

#include "runtime/alignment.h"
#include "runtime/cuda/gpu.h"
#include "runtime/dtypes.h"

namespace piper::runtime::cuda {

namespace {

GpuRank& of(PiperDevice* device) { return *static_cast<GpuRank*>(device->device); }
/// The stream of the next call of an action.
CudaStream cuda_stream_of_call(GpuRank& rank, std::uint32_t stream) {
  ++rank.streams[stream].calls;
  return rank.streams[stream].cuda_stream;
}

bool launch(GpuRank& rank, std::uint32_t stream, std::uint32_t action, Function function,
            std::uint64_t blocks, std::uint32_t threads, const void* const* arguments) {
  return blocks == 0 ||
         rank.gpu->done(rank.gpu->driver->launch(cuda_stream_of_call(rank, stream), function,
                                                 blocks, threads, arguments),
                        "cuLaunchKernel", &rank, action);
}

int call_begin(PiperDevice* device, PiperRank* active, std::uint32_t stream, std::uint32_t action,
               const PiperWait* waits, std::uint32_t num_waits) {
  GpuRank& rank = of(device);
  Gpu& gpu = *rank.gpu;
  if (rank.streams[stream].in_comm)
    return gpu.fail_at(rank, action, kBadJob,
                       "an action stands behind a communication whose members come after it");
  for (std::uint32_t w = 0; w < num_waits; ++w) {
    const PiperWait& wait = waits[w];
    if (active->step < wait.distance || (gpu.behind_steps && wait.distance > 0)) continue;
    const std::uint64_t step = active->step - wait.distance;
    const std::size_t at = gpu.end_slot(wait.position, step);
    GpuProgram& program = rank.program();
    // An event that was never recorded would hold up nothing.
    if (program.recorded[wait.stream][at] != step + 1)
      return gpu.fail_at(rank, action, kBadJob,
                         "an action waits for one that has not been enqueued");
    // The wait is signalled separately from the actions before it.
    if (gpu.capturing && !gpu.signal(rank, stream)) return 1;
    if (!gpu.done(gpu.driver->wait(rank.streams[stream].cuda_stream, program.ends[wait.stream][at]),
                  "cuStreamWaitEvent", &rank, action))
      return 1;
  }
  return gpu.times.begin_action(rank, stream, action) ? 0 : 1;
}

int call_end(PiperDevice* device, PiperRank*, std::uint32_t stream, std::uint32_t action) {
  GpuRank& rank = of(device);
  // A communication (other streams have nothing else) ends with the last of its members.
  return stream != 0 ? 0 : rank.gpu->end_action(rank, stream, action);
}

int call_kernel(PiperDevice* device, PiperRank*, std::uint32_t stream, std::uint32_t action,
                std::uint32_t kernel, const void* const* arguments) {
  GpuRank& rank = of(device);
  const GpuProgram& program = rank.program();
  const PiperKernelEntry& entry = program.role->kernels[kernel];
  return launch(rank, stream, action, program.functions[kernel], entry.blocks, entry.threads,
                arguments)
             ? 0
             : 1;
}

int call_clear(PiperDevice* device, PiperRank*, std::uint32_t stream, std::uint32_t action,
               void* at, std::uint64_t bytes) {
  GpuRank& rank = of(device);
  return rank.gpu->done(rank.gpu->driver->fill(cuda_stream_of_call(rank, stream), at, 0, bytes),
                        "cuMemsetD8Async", &rank, action)
             ? 0
             : 1;
}

int call_check(PiperDevice* device, PiperRank* active, std::uint32_t stream, std::uint32_t action,
               const PiperCheck* check, const std::int64_t* values) {
  GpuRank& rank = of(device);
  unsigned char* const to =
      rank.step_staging(active->step) + rank.staged_findings + rank.next_check++ * sizeof(Finding);
  const void* const arguments[] = {&values,        &check->count,  &check->bound,
                                   &check->ignore, &check->masked, &to};
  return launch(rank, stream, action, rank.gpu->kernels.check, 1, 256, arguments) ? 0 : 1;
}

int call_count(PiperDevice* device, PiperRank*, std::uint32_t stream, std::uint32_t action,
               const std::uint64_t* from, std::uint32_t num_from, std::uint64_t elements,
               std::int64_t ignore, std::uint64_t to) {
  GpuRank& rank = of(device);
  unsigned char* const result = rank.arena + to;
  for (std::uint32_t i = 0; i < num_from; ++i) {
    unsigned char* const values = rank.arena + from[i];
    const std::uint32_t adds = i > 0 ? 1 : 0;
    const void* const arguments[] = {&values, &elements, &ignore, &adds, &result};
    if (!launch(rank, stream, action, rank.gpu->kernels.count, 1, 256, arguments)) return 1;
  }
  return 0;
}

bool multiply(GpuRank& rank, std::uint32_t stream, std::uint32_t action, const PiperCall& call) {
  Gpu& gpu = *rank.gpu;
  PiperCall product = call;
  std::size_t bytes = product.workspace_bytes;
  std::align(PIPER_WORKSPACE_ALIGNMENT, 0, product.workspace, bytes);
  product.workspace_bytes = bytes;
  return gpu.done(
      gpu.driver->call(cuda_stream_of_call(rank, stream),
                       rank.program().planned[planned_at(*call.shape, call.end)], product),
      "cublasLtMatmul", &rank, action);
}

/// As runtime/cuda/device_kernels.h declares it.
struct AttendSizes {
  explicit AttendSizes(const PiperAttend& call)
      : batch(call.batch),
        seq(call.seq),
        keys(call.keys),
        heads(call.heads),
        kv_heads(call.kv_heads),
        width(call.width),
        value_width(call.value_width),
        scale(call.scale),
        causal(call.causal) {}
  std::int64_t batch, seq, keys, heads, kv_heads, width, value_width;
  double scale;
  std::uint32_t causal;
};

constexpr std::uint32_t kWarp = 32;

/// Checks the status of an attention of LibTorch; false after a failure.
bool attended(GpuRank& rank, std::uint32_t action, Status status) {
  Gpu& gpu = *rank.gpu;
  if (status != kAttentionRefused && status != kAttentionOverrun)
    return gpu.done(status, "attention of LibTorch", &rank, action);
  if (status == kAttentionRefused && gpu.device_failed()) return false;
  const char* const hint =
      "`PIPER_CUDA_ATTENTION=builtin` plans for kernels of piper, slow for long sequences";
  gpu.fail_at(rank, action, status == kAttentionOverrun ? kWorkspaceOverrun : kLibraryFailed,
              gpu.driver->text_of(status), hint);
  return false;
}

bool attend_by_library(GpuRank& rank, std::uint32_t stream, std::uint32_t action,
                       const PiperCall& call) {
  return attended(rank, action,
                  rank.gpu->driver->call(cuda_stream_of_call(rank, stream), nullptr, call));
}

bool attend(GpuRank& rank, std::uint32_t stream, std::uint32_t action, const PiperCall& call) {
  const PiperAttend& of = call.shape->of.attend;
  if (of.form != PIPER_ATTEND_BUILTIN) return attend_by_library(rank, stream, action, call);
  const AttendSizes sizes(of);
  const void* const arguments[] = {&sizes,      &call.in[0],  &call.in[1],
                                   &call.in[2], &call.out[0], &call.out[1]};
  const auto queries = static_cast<std::uint64_t>(of.batch * of.heads * of.seq);
  return launch(rank, stream, action, rank.gpu->kernels.attend.at(of.dtype), queries, kWarp,
                arguments);
}

bool attend_grad(GpuRank& rank, std::uint32_t stream, std::uint32_t action, const PiperCall& call) {
  const PiperAttend& of = call.shape->of.attend;
  if (of.form != PIPER_ATTEND_BUILTIN) return attend_by_library(rank, stream, action, call);
  const OwnKernels& kernels = rank.gpu->kernels;
  const AttendSizes sizes(of);
  const void* const* const in = call.in;
  const void* const of_queries[] = {&sizes, &in[0], &in[1], &in[2],
                                    &in[3], &in[4], &in[5], &call.out[0]};
  const void* const of_keys[] = {&sizes, &in[0], &in[1],       &in[2],      &in[3],
                                 &in[4], &in[5], &call.out[1], &call.out[2]};
  const auto queries = static_cast<std::uint64_t>(of.batch * of.heads * of.seq),
             keys = static_cast<std::uint64_t>(of.batch * of.kv_heads * of.keys);
  return launch(rank, stream, action, kernels.attend_dq.at(of.dtype), queries, kWarp, of_queries) &&
         launch(rank, stream, action, kernels.attend_dkv.at(of.dtype), keys, kWarp, of_keys);
}

int call_call(PiperDevice* device, PiperRank*, std::uint32_t stream, std::uint32_t action,
              const PiperCall* call) {
  GpuRank& rank = of(device);
  const auto enqueue = [&] {
    switch (static_cast<PiperCallKind>(call->shape->kind)) {
      case PIPER_CALL_GEMM: return multiply(rank, stream, action, *call);
      case PIPER_CALL_ATTEND: return attend(rank, stream, action, *call);
      case PIPER_CALL_ATTEND_GRAD: return attend_grad(rank, stream, action, *call);
    }
    return false;
  };
  // The scan of the role has refused unknown kinds.
  return rank.gpu->times.in_call(rank, stream, action, call_family(call->shape->kind), enqueue) ? 0
                                                                                                : 1;
}

int call_load(PiperDevice* device, PiperRank* active, std::uint32_t stream, std::uint32_t action,
              std::uint32_t, std::uint64_t, std::uint64_t, std::uint64_t to) {
  GpuRank& rank = of(device);
  Gpu& gpu = *rank.gpu;
  const ScannedLoad& load = rank.program().loads[rank.next_load++];
  const std::uint64_t offset = rank.staged_at(load);
  const CudaStream cuda_stream = cuda_stream_of_call(rank, stream);
  if (load.carried()) {
    const Status moved = gpu.move(cuda_stream, rank.carried + offset, rank.arena + to, load.bytes);
    return gpu.done(moved, "cuLaunchKernel", &rank, action) ? 0 : 1;
  }
  const Status copied = gpu.driver->copy(cuda_stream, rank.arena + to,
                                         rank.step_staging(active->step) + offset, load.bytes);
  return gpu.done(copied, "cuMemcpyAsync", &rank, action) ? 0 : 1;
}

int call_report(PiperDevice* device, PiperRank* active, std::uint32_t stream, std::uint32_t action,
                std::uint32_t, const std::uint64_t* from, std::uint32_t num_from,
                std::uint32_t dtype, std::uint32_t counted) {
  GpuRank& rank = of(device);
  Gpu& gpu = *rank.gpu;
  unsigned char* to = rank.step_staging(active->step) + rank.staged_reports +
                      rank.program().scan->reports[rank.next_report++].offset;
  for (std::uint32_t i = 0; i < num_from; ++i, to += 8) {
    const std::uint64_t bytes = counted != 0 && i + 1 == num_from ? 8 : element_bytes(dtype);
    if (!gpu.done(gpu.move(cuda_stream_of_call(rank, stream), rank.arena + from[i], to, bytes),
                  "cuLaunchKernel", &rank, action))
      return 1;
  }
  return 0;
}

int call_communicate(PiperDevice* device, PiperRank*, std::uint32_t stream, std::uint32_t action,
                     std::uint32_t position) {
  GpuRank& rank = of(device);
  return rank.gpu->exchange->arrive(rank, stream, action, position);
}

}  // namespace

PiperDevice device_of(GpuRank& rank) {
  return {.abi_version = PIPER_DEVICE_ABI_VERSION,
          .draw = rank.carried + GpuRank::kStagedDraw,
          .device = &rank,
          .begin = call_begin,
          .end = call_end,
          .kernel = call_kernel,
          .clear = call_clear,
          .check = call_check,
          .count = call_count,
          .call = call_call,
          .load = call_load,
          .report = call_report,
          .communicate = call_communicate};
}

}  // namespace piper::runtime::cuda
