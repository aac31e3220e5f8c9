#pragma once
// The runtime's interface to CUDA, kept so small that tests have a driver of their own
// (tests/cuda/host_driver.h), which runs the same kernels on the host.
//
// Guarantees of an implementation: every call with a stream enqueues and returns; work of one
// stream runs in order; `wait` holds up later work of its stream until the work before the event's
// last `record` has ended (an event that was never recorded holds up nothing). All handles are
// released with the driver. One thread calls.
//
//   Failure failure;
//   std::unique_ptr<Driver> driver = open_gpu({.cublas_lt = "/usr/local/cuda/lib64/libcublasLt.so.13"}, failure);   // gpu_driver.h

#include <cstdint>
#include <string>

#include "runtime/abi.h"

namespace piper::runtime::cuda {

/// A CUresult; for a product, beyond kProductStatus, a cublasStatus_t; or an attention that
/// LibTorch refused, or that wanted more than its workspace: text_of explains the last one.
using Status = int;
inline constexpr Status kSuccess = 0, kOutOfDeviceMemory = 2, kNotReady = 600,
                        kProductStatus = 100000, kAttentionRefused = 200000,
                        kAttentionOverrun = 200001;

/// Whether a status is of a library: it does not tell whether the device has failed.
inline bool is_of_library(Status status) { return status >= kProductStatus; }

/// The limit of one launch.
inline constexpr std::uint64_t kMaxBlocks = 0x7FFFFFFF;

using CudaStream = struct StreamObject*;
using Event = struct EventObject*;
using Module = struct ModuleObject*;
using Function = struct FunctionObject*;
using PlannedCall = struct PlannedCallObject*;
using Graph = struct GraphObject*;

/// The priority of a stream's work when the device has room for one: later ones first, as far as
/// the device distinguishes them. Graphs have one, too.
enum class Priority : std::uint8_t { compute, communication, high };

class Driver {
 public:
  virtual ~Driver() = default;

  /// `NVIDIA H200 (sm_90)`.
  virtual std::string device_name() const = 0;
  /// Multiprocessors of the GPU.
  virtual int processors() const = 0;
  /// `CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered`.
  virtual std::string text_of(Status status) const = 0;

  // ---- memory
  virtual Status free_bytes(std::uint64_t* bytes) = 0;
  /// About the amount of free memory that libraries take for their kernels when they are first
  /// used.
  virtual std::uint64_t library_bytes() const = 0;
  /// At a multiple of 256 bytes. Not initialised.
  virtual Status allocate(std::uint64_t bytes, unsigned char** to) = 0;
  /// Memory of the host that the device reads and writes under the same address; zeros.
  virtual Status allocate_host(std::uint64_t bytes, unsigned char** to) = 0;

  // ---- streams and events
  virtual Status create_stream(Priority priority, CudaStream* created) = 0;
  virtual Status create_event(Event* created) = 0;
  /// An event whose records have times.
  virtual Status create_timer(Event* created) = 0;
  virtual Status record(Event event, CudaStream cuda_stream) = 0;
  virtual Status wait(CudaStream cuda_stream, Event event) = 0;
  /// kSuccess: the work before the last record has ended. kNotReady. Otherwise the device has
  /// failed, and runs nothing more.
  virtual Status query(Event event) = 0;

  /// Seconds from the last record of a timer to that of another; both have ended.
  virtual Status elapsed(Event from, Event to, double* seconds) = 0;

  // ---- work on a stream
  /// Host memory must come from `allocate_host`, and keeps its bytes until the copy has ended.
  virtual Status copy(CudaStream cuda_stream, void* to, const void* from, std::uint64_t bytes) = 0;
  virtual Status fill(CudaStream cuda_stream, void* to, unsigned char byte,
                      std::uint64_t bytes) = 0;
  /// Writes a word of `allocate_host`.
  virtual Status write(CudaStream cuda_stream, std::uint32_t* to, std::uint32_t value) = 0;
  /// `arguments`: a pointer to each argument, which is read before the call returns. At most
  /// kMaxBlocks.
  virtual Status launch(CudaStream cuda_stream, Function function, std::uint64_t blocks,
                        std::uint32_t threads, const void* const* arguments) = 0;
  /// Makes a library call; for attention LibTorch's, by its form. `planned`: of the call's shape
  /// and end, null for attention. The workspace has at least the bytes of the plan; that of a
  /// product begins at a multiple of PIPER_WORKSPACE_ALIGNMENT. Nothing else is allocated.
  virtual Status call(CudaStream cuda_stream, PlannedCall planned, const PiperCall& call) = 0;

  // ---- graphs
  /// Work enqueued from now on on the stream, and on streams that wait for its events, becomes a
  /// graph and does not run. Meanwhile nothing is queried, and no such stream waits for an event
  /// that was recorded elsewhere.
  virtual Status begin_capture(CudaStream cuda_stream) = 0;
  /// Ends the capture, whatever the status. The first stream has waited for all others that took
  /// part. Every launch uses the addresses of the capture.
  virtual Status end_capture(CudaStream cuda_stream, Graph* created) = 0;
  virtual Status launch_graph(CudaStream cuda_stream, Graph graph) = 0;
  /// Drops all graphs, a running one when it has ended. A thread of CUDA's later releases the
  /// objects they kept alive, such as NCCL's communicators.
  virtual void drop_graphs() = 0;

  /// The device hangs, and releasing anything would wait for it: nothing is released from now on.
  virtual void abandon() {}

  // ---- before the first step
  virtual Status load(const std::string& image, Module* created) = 0;
  /// The function of that name. Its code is then on the device, so no launch has to wait for it; a
  /// missing function is a status, too.
  virtual Status find(Module module, const char* name, Function* found) = 0;
  /// Chooses the algorithm of such products for good: one that needs at most `workspace` bytes.
  /// `end`: a PiperCallEnd.
  virtual Status plan_call(const PiperCallShape& shape, std::uint32_t end, std::uint64_t workspace,
                           PlannedCall* created) = 0;
  /// For calls whose form is LibTorch's. `deterministic`: gradients are added in one order. False, with the missing file and where it was looked for.
  virtual bool open_attention(bool deterministic, std::string& reason) = 0;
};

}  // namespace piper::runtime::cuda
