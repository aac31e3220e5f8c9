#pragma once
// A driver that runs no kernel: it records the requests as a trace, which hazards.h checks:
// operations on streams with the bytes that they read and write, events, graphs.
//
// Guarantees: the trace has the order of the calls. Copies and fills are done at once, so the
// tables from which kernels read their pointers exist; all other memory is zero or copied. A kernel
// of a program touches all of each buffer that it is given (`operands_of`), one of the runtime's
// own the bytes of its arguments, a library call the shapes of its call and all of its workspace.
// An access outside the allocated memory fails the test.
//
//   const KernelOperands operands = operands_of(*job);
//   Trace trace;
//   RecordingDriver driver(operands, trace);

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/device_program/job.h"
#include "tests/cuda/test_driver.h"

namespace piper::test {

/// An argument of a kernel. Without bytes it is no pointer.
struct KernelOperand {
  std::uint64_t bytes = 0;
  bool writes = false;
};
using KernelOperands = std::map<std::string, std::vector<KernelOperand>>;
/// The operands of the kernels of a job's programs, by name.
KernelOperands operands_of(const backend::Job& job);

struct MemoryAccess {
  std::uint64_t begin = 0, end = 0;
  bool writes = false;
};

struct TraceCall {
  enum class Kind : std::uint8_t {
    work,       // touches accesses [first_access, end_access)
    record,     // `of`: the event
    wait,       // `of`: the event
    host_wait,  // `of`: the event
    graph,      // a launch; `of`: Trace::graphs
  } kind = Kind::work;
  std::uint32_t stream = 0, of = 0;
  std::uint32_t first_access = 0, end_access = 0;
  const char* what = "";  // `copy`, `fused_gelu`
  // Actions of the stream that have ended before, since its creation or the start of the capture.
  std::uint32_t action = 0;
};

struct TracedGraph {
  std::uint32_t origin = 0;  // the stream
  std::vector<TraceCall> calls;
};

struct Trace {
  std::vector<TraceCall> calls;
  std::vector<TracedGraph> graphs;
  std::vector<MemoryAccess> accesses;
  std::uint32_t num_streams = 0, num_events = 0;
  std::vector<runtime::cuda::Priority> priorities;  // per stream
  std::deque<std::string> names;                    // of kernels
};

/// Memory that an operation reads or writes.
struct Touched {
  const void* at = nullptr;
  std::uint64_t bytes = 0;
  bool writes = false;
};

class RecordingDriver : public TestDriver {
 public:
  RecordingDriver(const KernelOperands& operands, Trace& trace)
      : operands_(operands), trace_(trace) {}

  std::string device_name() const override { return "a device that runs nothing"; }
  int processors() const override { return 132; }
  std::string text_of(Status status) const override { return "status " + std::to_string(status); }
  Status free_bytes(std::uint64_t* bytes) override;
  std::uint64_t library_bytes() const override { return 0; }
  Status allocate(std::uint64_t bytes, unsigned char** to) override;
  Status allocate_host(std::uint64_t bytes, unsigned char** to) override {
    return allocate(bytes, to);
  }
  Status create_stream(Priority priority, CudaStream* created) override;
  Status create_event(Event* created) override;
  Status create_timer(Event* created) override { return create_event(created); }
  Status record(Event event, CudaStream stream) override;
  Status wait(CudaStream stream, Event event) override;
  Status query(Event event) override;
  Status elapsed(Event from, Event to, double* seconds) override;
  Status copy(CudaStream stream, void* to, const void* from, std::uint64_t bytes) override;
  Status fill(CudaStream stream, void* to, unsigned char byte, std::uint64_t bytes) override;
  Status write(CudaStream stream, std::uint32_t* to, std::uint32_t value) override;
  Status launch(CudaStream stream, Function function, std::uint64_t blocks, std::uint32_t threads,
                const void* const* arguments) override;
  Status call(CudaStream stream, PlannedCall planned, const PiperCall& call) override;
  Status begin_capture(CudaStream stream) override;
  Status end_capture(CudaStream stream, Graph* created) override;
  Status launch_graph(CudaStream stream, Graph graph) override;
  void drop_graphs() override {}
  Status load(const std::string& image, Module* created) override;
  Status find(Module module, const char* name, Function* found) override;
  Status plan_call(const PiperCallShape& shape, std::uint32_t end, std::uint64_t workspace,
                   PlannedCall* created) override;
  bool open_attention(bool, std::string&) override { return true; }

  /// An operation outside the executor's calls. `what` stays valid.
  Status touch(CudaStream stream, const char* what, const std::vector<Touched>& list);

 private:
  struct RecordedFunction {
    const std::string* name = nullptr;
    const std::vector<KernelOperand>* operands = nullptr;  // null: one of the runtime's own
  };
  struct RecordedProduct {
    PiperCallShape shape{};
    std::uint32_t end = PIPER_END_WRITES;
    std::uint64_t workspace = 0;
  };

  void reads(const void* at, std::uint64_t bytes) { touches(at, bytes, false); }
  void writes(const void* at, std::uint64_t bytes) { touches(at, bytes, true); }
  void touches(const void* at, std::uint64_t bytes, bool writes);
  /// Records the accesses of one of the runtime's own kernels.
  void own_kernel(const std::string& name, const void* const* arguments);
  void product(PlannedCall planned, const PiperCall& call);
  void attention(const PiperCall& call);
  /// A call on a stream, with the accesses announced by `reads` and `writes` since the last one, if
  /// any.
  Status put(TraceCall::Kind kind, std::uint32_t stream, std::uint32_t of, const char* what);
  Status work(CudaStream stream, const char* what) {
    return put(TraceCall::Kind::work, number(stream), 0, what);
  }

  /// Handles are numbers from 1.
  template <typename Handle>
  static Handle handle(std::size_t number) {
    return reinterpret_cast<Handle>(number + 1);
  }
  template <typename Handle>
  static std::uint32_t number(Handle handle) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(handle) - 1);
  }

  const KernelOperands& operands_;
  Trace& trace_;
  std::map<std::uint64_t, std::uint64_t> ranges_;  // allocated memory: begin, end
  std::vector<std::unique_ptr<unsigned char[]>> memory_;
  std::vector<RecordedFunction> functions_;
  std::vector<RecordedProduct> products_;
  std::vector<std::uint32_t> actions_;  // per stream
  std::uint32_t first_access_ = 0;      // of the next call
  bool capturing_ = false;
};

}  // namespace piper::test
