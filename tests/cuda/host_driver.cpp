#include "tests/cuda/host_driver.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>

#include "backend/cuda/attention.h"
#include "runtime/device/library_calls.h"
#include "runtime/kernel_math.h"
#include "tests/support/test_call.h"

namespace piper::test {

namespace cuda = runtime::cuda;
using cuda::Status;

namespace {

constexpr Status kInvalidValue = 1, kNotFound = 500, kIllegalAddress = 700;
constexpr int kExecutionFailed = 13;  // a cublasStatus_t
// of captures
constexpr Status kUnsupported = 900, kUnjoined = 904, kIsolation = 905, kCapturedEvent = 907;
constexpr std::size_t kAlignment = 256;

/// As host_call.h packs it.
struct PackedKernel {
  std::size_t bytes;
  int meets;
  void (*pack)(const void* const* arguments, unsigned char* to);
  void (*run)(const unsigned char* packed);
};

}  // namespace

struct HostDriver::Work {
  std::function<void()> run;
  HostEvent* waits = nullptr;  // until it has been recorded so often
  std::uint64_t version = 0;
  bool hangs = false;
  std::function<HostTries()> begin = {};  // in place of `run`
  HostTries tries = {};                   // once it has begun
};
struct HostDriver::HostStream {
  std::uint32_t number = 0;
  std::deque<Work> work;
  const HostGraph* captured = nullptr;  // the graph of which its work becomes a part
  std::set<std::size_t> last;           // nodes that precede the next one
};
struct HostDriver::HostEvent {
  std::uint32_t number = 0;
  std::uint64_t recorded = 0, completed = 0;  // versions
  std::uint64_t time = 0;                     // of the last one that completed
  const HostGraph* captured = nullptr;        // of which capture the last record is a part
  std::set<std::size_t> after;                // nodes
};
struct HostDriver::HostGraph {
  struct Node {
    std::function<void()> run;
    std::set<std::size_t> after;
    bool hangs = false;
    std::function<HostTries()> begin = {};
  };
  std::vector<Node> nodes;
  HostStream* origin = nullptr;
  std::vector<std::shared_ptr<void>> kept;
  bool dropped = false;
  void drop() {
    kept.clear();
    dropped = true;
  }
};
struct HostDriver::GraphRun {
  explicit GraphRun(const HostGraph& graph)
      : graph(graph),
        missing(graph.nodes.size()),
        next(graph.nodes.size()),
        tries(graph.nodes.size()) {
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      missing[n] = graph.nodes[n].after.size();
      if (missing[n] == 0) ready.push_back(n);
      for (const std::size_t before : graph.nodes[n].after) next[before].push_back(n);
    }
  }
  const HostGraph& graph;
  std::vector<std::size_t> missing, ready;
  std::vector<std::vector<std::size_t>> next;
  std::vector<HostTries> tries;
  std::size_t ran = 0;
};
struct HostDriver::HostModule {
  void* library = nullptr;
  std::unique_ptr<HostGrid> grid;
};
struct HostDriver::HostFunction {
  std::string name;
  const PackedKernel* kernel = nullptr;
  HostGrid* grid = nullptr;
  bool faults = false, hangs = false;
};
struct HostDriver::HostProduct {
  PiperCallShape shape{};
  std::uint32_t end = PIPER_END_WRITES;
  std::uint64_t workspace = 0;
};

namespace {

/// A library may write all of its workspace: other data there is lost.
void spoil(void* workspace, std::uint64_t bytes) {
  if (bytes > 0) std::memset(workspace, 0x7E, bytes);
}

template <typename T, typename Handle>
T* real(Handle handle) {
  return reinterpret_cast<T*>(handle);
}

}  // namespace

HostDriver::HostDriver(HostOptions options)
    : options_(std::move(options)), random_(options_.seed * 0x9E3779B97F4A7C15u + 1) {}

HostDriver::~HostDriver() {
  for (const auto& module : modules_) dlclose(module->library);
}

std::string HostDriver::text_of(Status status) const {
  switch (status) {
    case kInvalidValue: return "CUDA_ERROR_INVALID_VALUE: invalid argument";
    case cuda::kOutOfDeviceMemory: return "CUDA_ERROR_OUT_OF_MEMORY: out of memory";
    case kNotFound: return "CUDA_ERROR_NOT_FOUND: named symbol not found";
    case kUnsupported:
      return "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: operation not permitted when stream is capturing";
    case cuda::kAttentionRefused: return "LibTorch refused an attention";
    case cuda::kAttentionOverrun:
      return "a library call wanted `" + std::to_string(options_.attention_wants) +
             "` bytes more than its planned workspace";
    case kIllegalAddress:
      return "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered";
    default: return "CUDA_ERROR " + std::to_string(status);
  }
}

std::uint64_t HostDriver::draw() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_;
}

Status HostDriver::refusal(const char* function) {
  if (failed_ != cuda::kSuccess) return failed_;
  if (options_.refused.empty() || options_.refused != function) return cuda::kSuccess;
  return counts_[function]++ == options_.refused_call ? options_.refused_status : cuda::kSuccess;
}

Status HostDriver::free_bytes(std::uint64_t* bytes) {
  *bytes = options_.memory - allocated_;
  return refusal("cuMemGetInfo");
}

Status HostDriver::allocate(std::uint64_t bytes, unsigned char** to) {
  if (const Status refused = refusal("cuMemAlloc")) return refused;
  if (bytes > options_.memory - allocated_) return cuda::kOutOfDeviceMemory;
  allocated_ += bytes;
  unsigned char* const base = memory_.emplace_back(new unsigned char[bytes + kAlignment]).get();
  const std::size_t past = reinterpret_cast<std::uintptr_t>(base) % kAlignment;
  *to = base + (kAlignment - past);
  allocations_[*to] = bytes;
  std::memset(*to, 0xA5, bytes);  // unwritten memory is visibly wrong
  return cuda::kSuccess;
}

bool HostDriver::holds(const void* at, std::uint64_t bytes) const {
  const auto* const first = static_cast<const unsigned char*>(at);
  const auto after = allocations_.upper_bound(first);
  if (after == allocations_.begin()) return false;
  const auto& [begin, size] = *std::prev(after);
  return static_cast<std::uint64_t>(first - begin) + bytes <= size;
}

Status HostDriver::allocate_host(std::uint64_t bytes, unsigned char** to) {
  if (const Status refused = refusal("cuMemHostAlloc")) return refused;
  unsigned char* const base = memory_.emplace_back(new unsigned char[bytes + kAlignment]()).get();
  *to = base + (kAlignment - reinterpret_cast<std::uintptr_t>(base) % kAlignment);
  return cuda::kSuccess;
}

Status HostDriver::create_stream(Priority, CudaStream* made) {
  if (const Status refused = refusal("cuStreamCreateWithPriority")) return refused;
  auto& stream = streams_.emplace_back(std::make_unique<HostStream>());
  stream->number = static_cast<std::uint32_t>(streams_.size() - 1);
  *made = reinterpret_cast<CudaStream>(stream.get());
  return cuda::kSuccess;
}

Status HostDriver::create_event(Event* made) {
  if (const Status refused = refusal("cuEventCreate")) return refused;
  auto& event = events_.emplace_back(std::make_unique<HostEvent>());
  event->number = static_cast<std::uint32_t>(events_.size() - 1);
  *made = reinterpret_cast<Event>(event.get());
  return cuda::kSuccess;
}

Status HostDriver::enqueue(CudaStream handle, HostCall call, std::function<void()> run,
                           HostEvent* event, std::uint64_t version) {
  auto* const stream = real<HostStream>(handle);
  if (stream->captured != nullptr) {
    capture_->nodes.push_back({std::move(run), stream->last});
    stream->last = {capture_->nodes.size() - 1};
    return cuda::kSuccess;
  }
  call.stream = stream->number;
  if (options_.calls != nullptr) options_.calls->push_back(std::move(call));
  stream->work.push_back({std::move(run), event, version});
  // The device does not wait until the host has nothing more to enqueue.
  while (draw() % 4 == 0 && step()) {}
  return cuda::kSuccess;
}

void HostDriver::tick() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  time_ =
      std::max(time_ + 1, static_cast<std::uint64_t>(
                              std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()));
}

bool HostDriver::step() {
  if (failed_ != cuda::kSuccess) return false;
  std::vector<HostStream*> ready;
  for (const auto& stream : streams_) {
    if (stream->work.empty()) continue;
    const Work& next = stream->work.front();
    if (!next.hangs && (next.waits == nullptr || next.waits->completed >= next.version))
      ready.push_back(stream.get());
  }
  while (!ready.empty()) {
    std::swap(ready[draw() % ready.size()], ready.back());
    HostStream& stream = *ready.back();
    ready.pop_back();
    Work& next = stream.work.front();
    if (next.begin) {
      if (!next.tries) next.tries = next.begin();
      const HostProgress progress = next.tries();
      if (progress == HostProgress::none) continue;
      if (progress == HostProgress::done) stream.work.pop_front();
      tick();
      return true;
    }
    const Work work = std::move(next);
    stream.work.pop_front();
    tick();
    if (work.run) work.run();
    return true;
  }
  return false;
}

Status HostDriver::enqueue_comm(CudaStream handle, std::function<HostTries()> begin,
                                std::shared_ptr<void> kept) {
  auto* const stream = real<HostStream>(handle);
  if (const Status status = enqueue(handle, {.kind = HostCall::Kind::comm}, {})) return status;
  if (stream->captured != nullptr) {
    capture_->nodes.back().begin = std::move(begin);
    capture_->kept.push_back(std::move(kept));
  } else {
    // Work enqueued before may have run, and does nothing.
    stream->work.push_back({.run = {}, .begin = std::move(begin)});
  }
  return cuda::kSuccess;
}

Status HostDriver::record(Event handle, CudaStream stream) {
  if (const Status refused = refusal("cuEventRecord")) return refused;
  auto* const event = real<HostEvent>(handle);
  event->captured = real<HostStream>(stream)->captured;
  if (event->captured != nullptr) {
    event->after = real<HostStream>(stream)->last;
    return cuda::kSuccess;
  }
  const std::uint64_t version = ++event->recorded;
  return enqueue(stream,
                 {.kind = HostCall::Kind::record, .event = event->number, .version = version},
                 [this, event, version] {
                   event->completed = std::max(event->completed, version);
                   event->time = time_;
                 });
}

Status HostDriver::wait(CudaStream stream, Event handle) {
  if (const Status refused = refusal("cuStreamWaitEvent")) return refused;
  if (options_.deaf) return cuda::kSuccess;
  auto* const event = real<HostEvent>(handle);
  auto* const on = real<HostStream>(stream);
  if (event->captured != nullptr) {
    if (event->captured != capture_) return kCapturedEvent;
    on->captured = capture_;
    on->last.insert(event->after.begin(), event->after.end());
    return cuda::kSuccess;
  }
  if (on->captured != nullptr) return invalidate(kIsolation);
  return enqueue(stream,
                 {.kind = HostCall::Kind::wait, .event = event->number, .version = event->recorded},
                 {}, event, event->recorded);
}

Status HostDriver::query(Event handle) {
  if (const Status refused = refusal("cuEventQuery")) return refused;
  const auto* const event = real<HostEvent>(handle);
  if (capture_ != nullptr) return invalidate(kUnsupported);
  while (event->completed < event->recorded && step()) {}
  if (failed_ != cuda::kSuccess) return failed_;
  return event->completed < event->recorded ? cuda::kNotReady : cuda::kSuccess;
}

Status HostDriver::elapsed(Event from, Event to, double* seconds) {
  if (const Status refused = refusal("cuEventElapsedTime")) return refused;
  const auto *const first = real<HostEvent>(from), *const last = real<HostEvent>(to);
  if (first->recorded == 0 || last->recorded == 0 || first->completed < first->recorded ||
      last->completed < last->recorded)
    return kInvalidValue;
  *seconds = 1e-9 * (static_cast<double>(last->time) - static_cast<double>(first->time));
  return cuda::kSuccess;
}

Status HostDriver::copy(CudaStream stream, void* to, const void* from, std::uint64_t bytes) {
  if (const Status refused = refusal("cuMemcpyAsync")) return refused;
  return enqueue(stream, {.kind = HostCall::Kind::copy}, [=] { std::memcpy(to, from, bytes); });
}

Status HostDriver::fill(CudaStream stream, void* to, unsigned char byte, std::uint64_t bytes) {
  if (const Status refused = refusal("cuMemsetD8Async")) return refused;
  return enqueue(stream, {.kind = HostCall::Kind::fill}, [=] { std::memset(to, byte, bytes); });
}

Status HostDriver::write(CudaStream stream, std::uint32_t* to, std::uint32_t value) {
  if (const Status refused = refusal("cuStreamWriteValue32")) return refused;
  return enqueue(stream, {.kind = HostCall::Kind::write},
                 [=] { __atomic_store_n(to, value, __ATOMIC_RELEASE); });
}

Status HostDriver::launch(CudaStream stream, Function handle, std::uint64_t blocks,
                          std::uint32_t threads, const void* const* arguments) {
  if (const Status refused = refusal("cuLaunchKernel")) return refused;
  if (options_.at_launch) options_.at_launch();
  const auto* const function = real<HostFunction>(handle);
  std::vector<unsigned char> packed(function->kernel->bytes);
  function->kernel->pack(arguments, packed.data());
  const backend::cuda::Launch grid{static_cast<std::int64_t>(blocks), threads,
                                   function->kernel->meets != 0};
  enqueue(stream, {.kind = HostCall::Kind::launch, .function = function->name},
          [this, function, grid, packed = std::move(packed)] {
            if (function->faults && options_.spared-- == 0) {
              failed_ = kIllegalAddress;
              return;
            }
            function->grid->run(grid, [&] { function->kernel->run(packed.data()); });
          });
  if (!function->hangs) return cuda::kSuccess;
  if (capture_ != nullptr) {
    capture_->nodes.back().hangs = true;
  } else {
    real<HostStream>(stream)->work.push_back(
        {.run = {}, .waits = nullptr, .version = 0, .hangs = true});
  }
  return cuda::kSuccess;
}

Status HostDriver::call(CudaStream stream, PlannedCall planned, const PiperCall& call) {
  switch (static_cast<PiperCallKind>(call.shape->kind)) {
    case PIPER_CALL_GEMM: return multiply(stream, planned, call);
    case PIPER_CALL_ATTEND:
    case PIPER_CALL_ATTEND_GRAD: return attend(stream, call);
  }
  return kInvalidValue;
}

Status HostDriver::multiply(CudaStream stream, PlannedCall planned, const PiperCall& call) {
  // Libraries do not return CUDA's status.
  if (failed_ != cuda::kSuccess) return cuda::kProductStatus + kExecutionFailed;
  if (const Status refused = refusal("cublasLtMatmul")) return refused;
  const auto* const product = real<HostProduct>(planned);
  if (reinterpret_cast<std::uintptr_t>(call.workspace) % kAlignment != 0 ||
      call.workspace_bytes < product->workspace || call.end != product->end ||
      !piper_same_shape(call.shape, &product->shape))
    return kInvalidValue;
  return enqueue(stream, {.kind = HostCall::Kind::multiply}, [product, request = TestCall(call)] {
    const PiperCall wanted = request.get();
    spoil(wanted.workspace, product->workspace);
    TestCall loops = request;
    std::vector<float> sums;
    if (product->end == PIPER_END_ROUNDS) {
      const PiperGemm& gemm = product->shape.of.gemm;
      sums.resize(static_cast<std::size_t>(gemm.batch * gemm.m * gemm.n));
      loops.set_result(sums.data());
      loops.set_end(PIPER_END_WRITES);
    }
    runtime::LibraryReport report;
    EXPECT_EQ(test::call(runtime::builtin_library_calls(), loops, &report), runtime::kLibraryDone);
    std::copy(sums.begin(), sums.end(), static_cast<piper_bf16*>(wanted.out[0]));
  });
}

bool HostDriver::open_attention(bool, std::string& reason) {
  reason = options_.no_attention;
  return reason.empty();
}

/// Like LibTorch, it may write all of the workspace, and no byte outside; the host's own
/// temporaries lie elsewhere.
Status HostDriver::attend(CudaStream stream, const PiperCall& call) {
  const bool gradient = call.shape->kind == PIPER_CALL_ATTEND_GRAD;
  if (failed_ != cuda::kSuccess) return cuda::kAttentionRefused;
  if (const Status refused = refusal(gradient ? "attention_grad" : "attention")) return refused;
  if (backend::cuda::attention_workspace(call.shape->of.attend, gradient) +
          options_.attention_wants >
      call.workspace_bytes)
    return cuda::kAttentionOverrun;
  return enqueue(stream, {.kind = HostCall::Kind::attend}, [request = TestCall(call)] {
    const PiperCall wanted = request.get();
    spoil(wanted.workspace, wanted.workspace_bytes);
    std::vector<unsigned char> own(piper_attend_workspace(&wanted.shape->of.attend));
    TestCall loops = request;
    loops.set_workspace(own.data(), own.size());
    runtime::LibraryReport report;
    EXPECT_EQ(test::call(runtime::builtin_library_calls(), loops, &report), runtime::kLibraryDone);
  });
}

Status HostDriver::invalidate(Status status) {
  capture_failed_ = status;
  return status;
}

Status HostDriver::begin_capture(CudaStream handle) {
  if (const Status refused = refusal("cuStreamBeginCapture")) return refused;
  if (capture_ != nullptr) return kUnsupported;
  capture_ = graphs_.emplace_back(std::make_unique<HostGraph>()).get();
  capture_->origin = real<HostStream>(handle);
  capture_->origin->captured = capture_;
  capture_failed_ = cuda::kSuccess;
  return cuda::kSuccess;
}

Status HostDriver::end_capture(CudaStream handle, Graph* made) {
  HostGraph* const graph = std::exchange(capture_, nullptr);
  EXPECT_TRUE(graph != nullptr && graph->origin == real<HostStream>(handle));
  Status status = capture_failed_;
  // All nodes come before the end of the first stream.
  std::vector<bool> joined(graph->nodes.size(), false);
  std::vector<std::size_t> open(graph->origin->last.begin(), graph->origin->last.end());
  while (!open.empty()) {
    const std::size_t node = open.back();
    open.pop_back();
    if (joined[node]) continue;
    joined[node] = true;
    open.insert(open.end(), graph->nodes[node].after.begin(), graph->nodes[node].after.end());
  }
  if (status == cuda::kSuccess && std::find(joined.begin(), joined.end(), false) != joined.end())
    status = kUnjoined;
  for (const auto& stream : streams_) {
    stream->captured = nullptr;
    stream->last.clear();
  }
  if (const Status refused = refusal("cuStreamEndCapture")) status = refused;
  if (status != cuda::kSuccess) graph->drop();
  *made = reinterpret_cast<Graph>(graph);
  return status;
}

void HostDriver::drop_graphs() {
  for (const auto& graph : graphs_) graph->drop();
}

Status HostDriver::launch_graph(CudaStream stream, Graph handle) {
  if (const Status refused = refusal("cuGraphLaunch")) return refused;
  const auto* const graph = real<HostGraph>(handle);
  if (graph->dropped) return kInvalidValue;
  if (const Status status = enqueue(stream, {.kind = HostCall::Kind::graph}, {})) return status;
  real<HostStream>(stream)->work.push_back(
      {.run = {}, .begin = [this, graph] {
         return [this, running = std::make_shared<GraphRun>(*graph)] { return run(*running); };
       }});
  return cuda::kSuccess;
}

HostProgress HostDriver::run(GraphRun& run) {
  bool moved = false;
  std::vector<std::size_t> waiting;
  while (!run.ready.empty() && failed_ == cuda::kSuccess) {
    std::swap(run.ready[draw() % run.ready.size()], run.ready.back());
    const std::size_t node = run.ready.back();
    run.ready.pop_back();
    const HostGraph::Node& at = run.graph.nodes[node];
    HostProgress progress = HostProgress::done;
    if (at.begin) {
      if (!run.tries[node]) run.tries[node] = at.begin();
      progress = run.tries[node]();
    } else if (at.run) {
      at.run();
    }
    moved |= progress != HostProgress::none;
    if (progress != HostProgress::done) {
      waiting.push_back(node);
      continue;
    }
    if (at.hangs) continue;
    ++run.ran;
    for (const std::size_t after : run.next[node]) {
      if (--run.missing[after] == 0) run.ready.push_back(after);
    }
  }
  run.ready.insert(run.ready.end(), waiting.begin(), waiting.end());
  if (run.ran == run.graph.nodes.size() || failed_ != cuda::kSuccess) return HostProgress::done;
  return moved ? HostProgress::some : HostProgress::none;
}

Status HostDriver::load(const std::string& image, Module* made) {
  if (const Status refused = refusal("cuModuleLoadData")) return refused;
  void* const library = dlopen(image.c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  if (library == nullptr) return kInvalidValue;
  auto& module = modules_.emplace_back(std::make_unique<HostModule>());
  module->library = library;
  module->grid = std::make_unique<HostGrid>(library);
  *made = reinterpret_cast<Module>(module.get());
  return cuda::kSuccess;
}

Status HostDriver::find(Module handle, const char* name, Function* found) {
  if (const Status refused = refusal("cuModuleGetFunction")) return refused;
  auto* const module = real<HostModule>(handle);
  const auto* const kernel = static_cast<const PackedKernel*>(
      dlsym(module->library, (std::string("host_") + name).c_str()));
  if (kernel == nullptr) return kNotFound;
  auto& function = functions_.emplace_back(std::make_unique<HostFunction>());
  *function = {name, kernel, module->grid.get(), options_.fault == name, options_.hangs == name};
  *found = reinterpret_cast<Function>(function.get());
  return cuda::kSuccess;
}

Status HostDriver::plan_call(const PiperCallShape& shape, std::uint32_t end,
                             std::uint64_t workspace, PlannedCall* request) {
  if (const Status refused = refusal("cublasLtMatmulAlgoGetHeuristic")) return refused;
  auto& product = products_.emplace_back(std::make_unique<HostProduct>());
  *product = {shape, end, workspace};
  *request = reinterpret_cast<PlannedCall>(product.get());
  return cuda::kSuccess;
}

}  // namespace piper::test
