#include "runtime/cuda/gpu_driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/cuda/cublas_lt.h"
#include "runtime/cuda/torch_attention.h"
#include "runtime/shared_library.h"

namespace piper::runtime::cuda {

namespace {

constexpr unsigned kMapped = 3;        // CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP
constexpr unsigned kNonBlocking = 1;   // CU_STREAM_NON_BLOCKING
constexpr unsigned kWithoutTimes = 2;  // CU_EVENT_DISABLE_TIMING
constexpr int kOfThisThread = 1;       // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
// CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY: that of the stream on which each was captured.
constexpr unsigned long long kPriorityOfNodes = 8;
constexpr Status kInvalidValue = 1;      // CUDA_ERROR_INVALID_VALUE
constexpr int kProcessors = 16;          // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
constexpr int kMajor = 75, kMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR

struct CudaFunctions {
#define CUDA_FUNCTION(symbol, parameters) int(*symbol) parameters = nullptr;
#include "runtime/cuda/driver_functions.def"
#undef CUDA_FUNCTION

  /// The name of a function that the library lacks, or null.
  const char* find(void* library) {
    LibraryFunctions of(library), late(library);
#define CUDA_FUNCTION(symbol, parameters) of.get(symbol, #symbol);
#define CUDA_LATE_FUNCTION(symbol, parameters) late.get(symbol, #symbol);
#include "runtime/cuda/driver_functions.def"
#undef CUDA_FUNCTION
    return of.missing();
  }
};

template <typename T>
unsigned long long address(T* at) {
  return reinterpret_cast<unsigned long long>(at);
}

class GpuDriver final : public Driver {
 public:
  GpuDriver(const CudaFunctions& functions, TorchChoice torch)
      : cuda_(functions), torch_choice_(std::move(torch)) {}

  ~GpuDriver() override {
    if (abandoned_) {
      static_cast<void>(products_.release());
      return;
    }
    products_.reset();
    drop_graphs();
    for (void* module : modules_) cuda_.cuModuleUnload(module);
    for (void* event : events_) cuda_.cuEventDestroy_v2(event);
    for (void* cuda_stream : streams_) cuda_.cuStreamDestroy_v2(cuda_stream);
    for (void* memory : host_memory_) cuda_.cuMemFreeHost(memory);
    for (const unsigned long long memory : memory_) cuda_.cuMemFree_v2(memory);
    if (context_ != nullptr) cuda_.cuDevicePrimaryCtxRelease_v2(device_);
  }

  /// The first call that failed, with its status.
  std::pair<Status, const char*> open(int ordinal) {
    Status status = cuda_.cuDeviceGet(&device_, ordinal);
    if (status != kSuccess) return {status, "cuDeviceGet"};
    char text[256] = {};
    int major = 0, minor = 0;
    cuda_.cuDeviceGetName(text, sizeof text - 1, device_);
    cuda_.cuDeviceGetAttribute(&major, kMajor, device_);
    cuda_.cuDeviceGetAttribute(&minor, kMinor, device_);
    cuda_.cuDeviceGetAttribute(&processors_, kProcessors, device_);
    name_ = std::string(text) + " (sm_" + std::to_string(major) + std::to_string(minor) + ")";
    status = cuda_.cuDevicePrimaryCtxRetain(&context_, device_);
    if (status != kSuccess) {
      context_ = nullptr;
      return {status, "cuDevicePrimaryCtxRetain"};
    }
    status = cuda_.cuCtxSetCurrent(context_);
    if (status != kSuccess) return {status, "cuCtxSetCurrent"};
    cuda_.cuCtxGetStreamPriorityRange(&least_priority_, &greatest_priority_);
    return {kSuccess, nullptr};
  }
  bool open_products(const std::string& path, std::string& reason) {
    return (products_ = CublasLt::open(path, reason)) != nullptr;
  }

  std::string device_name() const override { return name_; }
  int processors() const override { return processors_; }
  std::string text_of(Status status) const override {
    if (status == kAttentionRefused || status == kAttentionOverrun) return torch_->error();
    if (is_of_library(status)) return products_->text_of(status - kProductStatus);
    const char *name = nullptr, *text = nullptr;
    cuda_.cuGetErrorName(status, &name);
    cuda_.cuGetErrorString(status, &text);
    return std::string(name != nullptr ? name : "CUresult " + std::to_string(status)) +
           (text != nullptr ? ": " + std::string(text) : "");
  }

  Status free_bytes(std::uint64_t* bytes) override {
    std::size_t free = 0, total = 0;
    const Status status = cuda_.cuMemGetInfo_v2(&free, &total);
    *bytes = free;
    return status;
  }
  /// Estimates: no GPU has been asked.
  std::uint64_t library_bytes() const override {
    constexpr std::uint64_t kMiB = 1 << 20, kProducts = 64 * kMiB, kAttention = 256 * kMiB;
    return kProducts + (torch_ != nullptr ? kAttention : 0);
  }
  Status allocate(std::uint64_t bytes, unsigned char** to) override {
    unsigned long long made = 0;
    const Status status = cuda_.cuMemAlloc_v2(&made, bytes);
    if (status == kSuccess) memory_.push_back(made);
    *to = reinterpret_cast<unsigned char*>(made);
    return status;
  }
  Status allocate_host(std::uint64_t bytes, unsigned char** to) override {
    void* made = nullptr;
    const Status status = cuda_.cuMemHostAlloc(&made, bytes, kMapped);
    if (status == kSuccess) {
      host_memory_.push_back(made);
      std::memset(made, 0, bytes);
    }
    *to = static_cast<unsigned char*>(made);
    return status;
  }

  Status create_stream(Priority priority, CudaStream* made) override {
    // Smaller numbers go first.
    const int number =
        std::max(greatest_priority_, priority == Priority::high
                                         ? greatest_priority_
                                         : least_priority_ - static_cast<int>(priority));
    return create(streams_, made, [&](void** to) {
      return cuda_.cuStreamCreateWithPriority(to, kNonBlocking, number);
    });
  }
  Status create_event(Event* made) override {
    return create(events_, made, [&](void** to) { return cuda_.cuEventCreate(to, kWithoutTimes); });
  }
  Status create_timer(Event* made) override {
    return create(events_, made, [&](void** to) { return cuda_.cuEventCreate(to, 0); });
  }
  Status elapsed(Event from, Event to, double* seconds) override {
    float milliseconds = 0;
    const Status status = cuda_.cuEventElapsedTime(&milliseconds, from, to);
    *seconds = 1e-3 * static_cast<double>(milliseconds);
    return status;
  }
  Status record(Event event, CudaStream cuda_stream) override {
    return cuda_.cuEventRecord(event, cuda_stream);
  }
  Status wait(CudaStream cuda_stream, Event event) override {
    return cuda_.cuStreamWaitEvent(cuda_stream, event, 0);
  }
  Status query(Event event) override { return cuda_.cuEventQuery(event); }

  Status copy(CudaStream cuda_stream, void* to, const void* from, std::uint64_t bytes) override {
    return cuda_.cuMemcpyAsync(address(to), address(from), bytes, cuda_stream);
  }
  Status fill(CudaStream cuda_stream, void* to, unsigned char byte, std::uint64_t bytes) override {
    return cuda_.cuMemsetD8Async(address(to), byte, bytes, cuda_stream);
  }
  Status write(CudaStream cuda_stream, std::uint32_t* to, std::uint32_t value) override {
    return cuda_.cuStreamWriteValue32_v2(cuda_stream, address(to), value, 0);
  }
  Status launch(CudaStream cuda_stream, Function function, std::uint64_t blocks,
                std::uint32_t threads, const void* const* arguments) override {
    if (blocks > kMaxBlocks) return kInvalidValue;
    return cuda_.cuLaunchKernel(function, static_cast<unsigned>(blocks), 1, 1, threads, 1, 1, 0,
                                cuda_stream, const_cast<void**>(arguments), nullptr);
  }
  Status call(CudaStream cuda_stream, PlannedCall planned, const PiperCall& call) override {
    switch (static_cast<PiperCallKind>(call.shape->kind)) {
      case PIPER_CALL_GEMM: return product_status(products_->multiply(planned, call, cuda_stream));
      case PIPER_CALL_ATTEND:
      case PIPER_CALL_ATTEND_GRAD: return torch_->call(cuda_stream, &call);
    }
    return kInvalidValue;
  }

  Status begin_capture(CudaStream cuda_stream) override {
    return cuda_.cuStreamBeginCapture_v2(cuda_stream, kOfThisThread);
  }
  Status end_capture(CudaStream cuda_stream, Graph* made) override {
    void* graph = nullptr;
    Status status = cuda_.cuStreamEndCapture(cuda_stream, &graph);
    if (status == kSuccess) {
      status = create(graphs_, made, [&](void** to) {
        return cuda_.cuGraphInstantiateWithFlags(to, graph, kPriorityOfNodes);
      });
    }
    if (graph != nullptr) cuda_.cuGraphDestroy(graph);
    return status;
  }
  Status launch_graph(CudaStream cuda_stream, Graph graph) override {
    return cuda_.cuGraphLaunch(graph, cuda_stream);
  }
  void drop_graphs() override {
    for (void* graph : std::exchange(graphs_, {})) cuda_.cuGraphExecDestroy(graph);
  }

  void abandon() override { abandoned_ = true; }

  Status load(const std::string& image, Module* made) override {
    return create(modules_, made,
                  [&](void** to) { return cuda_.cuModuleLoadData(to, image.data()); });
  }
  Status find(Module module, const char* name, Function* found) override {
    void* function = nullptr;
    const Status status = cuda_.cuModuleGetFunction(&function, module, name);
    *found = static_cast<Function>(function);
    return status != kSuccess || cuda_.cuFuncLoad == nullptr ? status : cuda_.cuFuncLoad(function);
  }
  Status plan_call(const PiperCallShape& shape, std::uint32_t end, std::uint64_t workspace,
                   PlannedCall* made) override {
    if (shape.kind != PIPER_CALL_GEMM) return kInvalidValue;
    return product_status(products_->plan(shape.of.gemm, end, workspace, made));
  }
  bool open_attention(bool deterministic, std::string& reason) override {
    return (torch_ = open_torch_attention(torch_choice_, deterministic, reason)) != nullptr;
  }

 private:
  static Status product_status(int status) {
    return status == 0 ? kSuccess : kProductStatus + status;
  }

  template <typename Handle, typename Create>
  static Status create(std::vector<void*>& list, Handle* made, const Create& create) {
    void* handle = nullptr;
    const Status status = create(&handle);
    if (status == kSuccess) list.push_back(handle);
    *made = static_cast<Handle>(handle);
    return status;
  }

  const CudaFunctions cuda_;
  int device_ = 0, processors_ = 0;
  void* context_ = nullptr;
  int least_priority_ = 0, greatest_priority_ = 0;
  std::string name_;
  bool abandoned_ = false;
  std::unique_ptr<CublasLt> products_;
  const TorchChoice torch_choice_;
  const TorchAttention* torch_ = nullptr;
  std::vector<void*> streams_, events_, modules_, graphs_, host_memory_;
  std::vector<unsigned long long> memory_;
};

Failure missing(std::string what) {
  return {
      .code = kCudaMissing,
      .message = std::move(what),
      .hint =
          "`piper doctor` lists what was found and what to install; `--device cpu` trains without a GPU"};
}

std::string spelled(int version) {
  return "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

void set_driver_defaults() {
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr && dlsym(library, "cuFuncLoad") == nullptr)
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
}

std::unique_ptr<Driver> open_gpu(const GpuChoice& choice, Failure& failure) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    failure = missing("there is no NVIDIA driver: " + loader_error());
    return nullptr;
  }
  CudaFunctions functions;
  const char* const lacking = functions.find(library);
  // A driver that is too old may lack functions, but not this one.
  int version = 0;
  if (functions.cuDriverGetVersion != nullptr) functions.cuDriverGetVersion(&version);
  if (version < choice.least_version || lacking != nullptr) {
    const std::string what =
        lacking != nullptr ? ", and lacks `" + std::string(lacking) + "`" : std::string();
    failure = {
        .code = kCudaTooOld,
        .message = "the NVIDIA driver knows " + spelled(version) + what +
                   "; the kernels are built for " + spelled(choice.least_version),
        .hint =
            "install a newer driver, or name an older toolkit in `PIPER_CUDA_PATH`, whose NVRTC then builds the kernels"};
    return nullptr;
  }
  constexpr Status kNoDevice = 100;
  int gpus = 0;
  const Status started = functions.cuInit(0);
  if (started == kSuccess) functions.cuDeviceGetCount(&gpus);
  if (started == kNoDevice || (started == kSuccess && gpus == 0)) {
    failure = missing("the NVIDIA driver lists no GPU");
    return nullptr;
  }
  auto driver = std::make_unique<GpuDriver>(functions, choice.torch);
  const auto [status, call] =
      started != kSuccess ? std::pair(started, "cuInit") : driver->open(choice.gpu);
  if (status != kSuccess) {
    failure = {.code = kCudaCallFailed,
               .message = std::string("`") + call + "` failed: " + driver->text_of(status)};
    return nullptr;
  }
  std::string reason = choice.no_cublas_lt;
  if (choice.cublas_lt.empty() || !driver->open_products(choice.cublas_lt, reason)) {
    failure = missing("cuBLASLt, which multiplies matrices, is not here: " + reason);
    return nullptr;
  }
  return driver;
}

}  // namespace piper::runtime::cuda
