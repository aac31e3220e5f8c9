#pragma once
// A driver for tests: streams are queues that run in a random order drawn from a seed, events hold
// them up, memory is the host's, and kernels are CUDA C++ that the host's compiler built with
// host_shim.h. Work that events do not order runs in many orders, so a missing event shows as a
// different result.
//
//   HostDriver driver({.seed = 3, .fault = "fused_gelu"});

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/kernel_set.h"
#include "tests/cuda/host_grid.h"
#include "tests/cuda/test_driver.h"

namespace piper::test {

/// The calls of the driver, in order.
struct HostCall {
  enum class Kind : std::uint8_t {
    record,
    wait,
    copy,
    fill,
    write,
    launch,
    multiply,
    attend,
    graph,
    comm
  } kind = Kind::record;
  std::uint32_t stream = 0;
  std::uint32_t event = 0;  // record, wait
  // The number of records of the event so far; wait: 0 if there is none.
  std::uint64_t version = 0;
  std::string function = {};  // launch
};

struct HostOptions {
  std::uint64_t seed = 1;
  std::uint64_t memory = std::uint64_t{1} << 32;
  int processors = 132;
  // The function of CUDA whose call number `refused_call` returns `refused_status`.
  std::string refused = {};
  std::uint64_t refused_call = 0;
  runtime::cuda::Status refused_status = 1;
  std::string fault = {};                  // the kernel that makes the device fail
  std::uint64_t spared = 0;                // its launches before that
  std::string hangs = {};                  // the kernel that never ends
  std::function<void()> at_launch = {};    // called at every launch
  bool deaf = false;                       // ignores waits: as if every event were missing
  std::string no_attention = {};           // the reason why there is no LibTorch; empty: there is
  std::uint64_t attention_wants = 0;       // bytes more than the plan has
  std::vector<HostCall>* calls = nullptr;  // null: calls are not recorded
};

/// Work that does not end at once: its progress is polled.
enum class HostProgress : std::uint8_t { none, some, done };
using HostTries = std::function<HostProgress()>;

class HostDriver final : public TestDriver {
 public:
  explicit HostDriver(HostOptions options);
  ~HostDriver() override;

  std::string device_name() const override { return "the host's stand-in for a GPU"; }
  int processors() const override { return options_.processors; }
  std::string text_of(Status status) const override;
  Status free_bytes(std::uint64_t* bytes) override;
  std::uint64_t library_bytes() const override { return 0; }
  Status allocate(std::uint64_t bytes, unsigned char** to) override;
  Status allocate_host(std::uint64_t bytes, unsigned char** to) override;
  Status create_stream(Priority priority, CudaStream* created) override;
  Status create_event(Event* created) override;
  Status record(Event event, CudaStream stream) override;
  Status wait(CudaStream stream, Event event) override;
  Status create_timer(Event* created) override { return create_event(created); }
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
  void drop_graphs() override;
  /// The image is the path of an object.
  Status load(const std::string& image, Module* created) override;
  Status find(Module module, const char* name, Function* found) override;
  Status plan_call(const PiperCallShape& shape, std::uint32_t end, std::uint64_t workspace,
                   PlannedCall* created) override;
  bool open_attention(bool deterministic, std::string& reason) override;

  /// Work that waits for other processes. `begin` is called at its turn, in each run of a graph
  /// that contains it; that graph keeps `keep_alive` until it is dropped.
  Status enqueue_comm(CudaStream stream, std::function<HostTries()> begin,
                      std::shared_ptr<void> keep_alive);

  /// Whether these bytes lie in one allocation of the device.
  bool holds(const void* at, std::uint64_t bytes) const;

 private:
  struct HostStream;
  struct HostEvent;
  struct HostModule;
  struct HostFunction;
  struct HostProduct;
  struct HostGraph;
  struct GraphRun;
  struct Work;

  Status multiply(CudaStream stream, PlannedCall planned, const PiperCall& call);
  /// An attention or its gradient.
  Status attend(CudaStream stream, const PiperCall& call);
  /// The status with which this call of a function is to fail, or success.
  Status refusal(const char* function);
  Status enqueue(CudaStream stream, HostCall call, std::function<void()> run,
                 HostEvent* event = nullptr, std::uint64_t version = 0);
  /// The capture is invalid: it yields no graph.
  Status invalidate(Status status);
  /// The nodes of a graph, in a random order among those that their dependencies allow.
  HostProgress run(GraphRun& run);
  /// Runs the first item of a stream that can run; false if none can.
  bool step();
  void tick();
  std::uint64_t draw();

  HostOptions options_;
  std::uint64_t random_;
  std::uint64_t allocated_ = 0;
  // of the device: where they begin, and their bytes
  std::map<const unsigned char*, std::uint64_t> allocations_;
  std::uint64_t time_ = 0;                       // nanoseconds: every operation takes at least one
  Status failed_ = runtime::cuda::kSuccess;      // the device's
  std::map<std::string, std::uint64_t> counts_;  // of calls, by function
  std::vector<std::unique_ptr<unsigned char[]>> memory_;
  std::vector<std::unique_ptr<HostStream>> streams_;
  std::vector<std::unique_ptr<HostEvent>> events_;
  std::vector<std::unique_ptr<HostModule>> modules_;
  std::vector<std::unique_ptr<HostFunction>> functions_;
  std::vector<std::unique_ptr<HostProduct>> products_;
  std::vector<std::unique_ptr<HostGraph>> graphs_;
  HostGraph* capture_ = nullptr;  // the open capture
  Status capture_failed_ = runtime::cuda::kSuccess;
};

/// Builds kernels in CUDA C++ into an object that HostDriver loads: those of programs, and the
/// runtime's own. Fails the test if the build fails.
std::string build_host_image(const backend::cuda::KernelSet& kernels, const std::string& folder);
std::string build_own_host_image(const std::string& folder);

}  // namespace piper::test
