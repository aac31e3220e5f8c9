// A libcuda.so.1 that runs no kernel, and notices when its rules are broken, as CUDA's documentation
// has them: streams, events, captures, memory, contexts of threads. Copies and fills of moderate
// size are done when they are enqueued. Writes lines to the file that STUB_CUDA_LOG names:
// `RULE ...` for a broken rule, and when the context is released the number of calls and of objects
// that are left.
//
// STUB_CUDA_DIES=N: after N launches the context has failed, and every call returns
// CUDA_ERROR_LAUNCH_FAILED.

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

using Address = unsigned long long;

constexpr int kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kInvalidHandle = 400,
              kNotFound = 500, kLaunchFailed = 719;
constexpr std::size_t kMemory = std::size_t{139} << 30, kAlignment = 256;
// Larger copies are not done: a program of a real size has gigabytes, and nothing reads them.
constexpr std::size_t kMaxCopied = std::size_t{64} << 20;

struct Stream {
  int capture = 0;  // the number of the capture that it takes part in; 0: none
  bool joined = true;
};
struct Event {
  bool has_times = false, recorded = false;
  int capture = 0;
  Stream* by = nullptr;
};
struct Function {
  std::string name;
};

class Stub {
 public:
  Stub() {
    const char* const path = std::getenv("STUB_CUDA_LOG");
    log_ = path == nullptr ? stderr : std::fopen(path, "a");
    const char* const dies = std::getenv("STUB_CUDA_DIES");
    if (dies != nullptr) spared_ = std::strtoll(dies, nullptr, 10);
  }
  static Stub& stub() {
    static Stub* const only = new Stub;
    return *only;
  }

  /// Counts a call. The status that it returns at once, or success.
  int called(const char* name, bool captures = true) {
    ++counts_[name];
    if (!has_context && needs_context(name))
      rule(std::string(name) + " on a thread without context");
    if (!captures && capture != 0) rule(std::string(name) + " while a stream is captured");
    return spared_ == 0 ? kLaunchFailed : kSuccess;
  }
  void launched() {
    if (spared_ > 0) --spared_;
  }
  void rule(const std::string& text) {
    std::fprintf(log_, "RULE %s\n", text.c_str());
    std::fflush(log_);
  }

  /// Work on a stream.
  void work(void* handle, const char* name) {
    auto* const stream = static_cast<Stream*>(handle);
    if (!streams.contains(stream))
      return rule(std::string(name) + " on a stream that does not exist");
    if (capture == 0) return;
    if (stream->capture != capture) rule(std::string(name) + " on a stream outside of the capture");
    stream->joined = false;
    ++nodes;
  }
  bool holds(const std::map<Address, std::size_t>& memory, Address at, std::size_t bytes) const {
    const auto after = memory.upper_bound(at);
    return after != memory.begin() &&
           at + bytes <= std::prev(after)->first + std::prev(after)->second;
  }
  void needs_memory(const char* name, Address at, std::size_t bytes) {
    if (bytes == 0) rule(std::string(name) + " of 0 bytes");
    if (!holds(device, at, bytes) && !holds(host, at, bytes))
      rule(std::string(name) + " touches memory that was not allocated");
  }

  void report() const {
    for (const auto& [name, count] : counts_)
      std::fprintf(log_, "CALLS %s %llu\n", name.c_str(), static_cast<unsigned long long>(count));
    const std::size_t left = streams.size() + events.size() + graphs.size() + executables.size() +
                             modules.size() + device.size() + host.size();
    std::fprintf(log_, "LEFT %zu\n", left);
    std::fflush(log_);
  }

  std::recursive_mutex mutex;
  static inline thread_local bool has_context = false;
  std::set<Stream*> streams;
  std::set<Event*> events;
  std::set<void*> graphs, executables, modules;
  std::map<Address, std::size_t> device, host;
  std::size_t allocated = 0;
  int capture = 0, captures = 0;  // the open capture; the number of all
  Stream* origin = nullptr;
  std::uint64_t nodes = 0;
  int contexts = 0;

 private:
  static bool needs_context(const std::string& name) {
    return name.starts_with("cuMem") || name.starts_with("cuStream") ||
           name.starts_with("cuEvent") || name.starts_with("cuLaunch") ||
           name.starts_with("cuModule") || name.starts_with("cuGraph");
  }
  std::FILE* log_ = nullptr;
  std::int64_t spared_ = -1;  // launches until the context fails; below 0: it never does
  std::map<std::string, std::uint64_t> counts_;
};

Stub& stub() { return Stub::stub(); }

template <typename T>
void* memory_of(T address) {
  return reinterpret_cast<void*>(address);
}
Address reserve(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes + kAlignment, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? 0 : reinterpret_cast<Address>(memory);
}
int release(std::map<Address, std::size_t>& memory, Address at, const char* name) {
  const auto found = memory.find(at);
  if (found == memory.end()) {
    stub().rule(std::string(name) + " of memory that was not allocated");
    return kInvalidValue;
  }
  munmap(memory_of(at), found->second + kAlignment);
  memory.erase(found);
  return kSuccess;
}
template <typename T>
int drop(std::set<T*>& objects, void* object, const char* name) {
  if (objects.erase(static_cast<T*>(object)) == 0) {
    stub().rule(std::string(name) + " of an object that does not exist");
    return kInvalidHandle;
  }
  return kSuccess;
}

}  // namespace

// The first statements of a call: its number, and the status of a context that has failed.
#define CALLED(...)                                                                              \
  const std::scoped_lock lock(stub().mutex);                                                     \
  if (const int failed = stub().called(__func__ __VA_OPT__(, ) __VA_ARGS__); failed != kSuccess) \
  return failed
#define NOT_IN_A_CAPTURE false

// ---- the driver and its device

EXPORTED int cuInit(unsigned) { return kSuccess; }
EXPORTED int cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
EXPORTED int cuDeviceGetCount(int* count) {
  *count = 1;
  return kSuccess;
}
EXPORTED int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return kSuccess;
}
EXPORTED int cuDeviceGetName(char* name, int length, int) {
  std::strncpy(name, "NVIDIA H200 (a stub that runs nothing)", static_cast<std::size_t>(length));
  return kSuccess;
}
EXPORTED int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? 9 : attribute == 16 ? 132 : 0;
  return kSuccess;
}
EXPORTED int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = kMemory;
  return kSuccess;
}
EXPORTED int cuDeviceGetPCIBusId(char* id, int length, int) {
  std::strncpy(id, "0000:19:00.0", static_cast<std::size_t>(length));
  return kSuccess;
}
EXPORTED int cuDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return kSuccess;
}
EXPORTED int cuDeviceGetP2PAttribute(int* value, int, int, int) {
  *value = 0;
  return kSuccess;
}
EXPORTED int cuDevicePrimaryCtxRetain(void** context, int) {
  CALLED();
  *context = &stub();
  ++stub().contexts;
  return kSuccess;
}
EXPORTED int cuDevicePrimaryCtxRelease_v2(int) {
  CALLED();
  if (--stub().contexts == 0) stub().report();
  return kSuccess;
}
EXPORTED int cuCtxSetCurrent(void* context) {
  CALLED();
  Stub::has_context = context != nullptr;
  return kSuccess;
}
EXPORTED int cuCtxGetStreamPriorityRange(int* lowest, int* greatest) {
  *lowest = 0;
  *greatest = -5;
  return kSuccess;
}
EXPORTED int cuGetErrorName(int error, const char** text) {
  *text = error == kLaunchFailed ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR_OF_THE_STUB";
  return kSuccess;
}
EXPORTED int cuGetErrorString(int, const char** text) {
  *text = "in words";
  return kSuccess;
}

// NVRTC looks for it if there is a libcuda, and does not check that there is the function.
EXPORTED int cuGetExportTable(const void** table, const void*) {
  *table = nullptr;
  return kNotFound;
}

// ---- memory

EXPORTED int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  CALLED(NOT_IN_A_CAPTURE);
  *total = kMemory;
  *free = kMemory - stub().allocated - (std::size_t{1} << 29);
  return kSuccess;
}
EXPORTED int cuMemAlloc_v2(Address* address, std::size_t bytes) {
  CALLED(NOT_IN_A_CAPTURE);
  if (bytes == 0) stub().rule("cuMemAlloc of 0 bytes");
  *address = bytes > kMemory - stub().allocated ? 0 : reserve(bytes);
  if (*address == 0) return kOutOfMemory;
  stub().device[*address] = bytes;
  stub().allocated += bytes;
  return kSuccess;
}
EXPORTED int cuMemFree_v2(Address address) {
  CALLED(NOT_IN_A_CAPTURE);
  const auto found = stub().device.find(address);
  if (found != stub().device.end()) stub().allocated -= found->second;
  return release(stub().device, address, "cuMemFree");
}
EXPORTED int cuMemHostAlloc(void** address, std::size_t bytes, unsigned) {
  CALLED(NOT_IN_A_CAPTURE);
  if (bytes == 0) stub().rule("cuMemHostAlloc of 0 bytes");
  const Address memory = reserve(bytes);
  if (memory == 0) return kOutOfMemory;
  stub().host[memory] = bytes;
  *address = memory_of(memory);
  return kSuccess;
}
EXPORTED int cuMemFreeHost(void* address) {
  CALLED(NOT_IN_A_CAPTURE);
  return release(stub().host, reinterpret_cast<Address>(address), "cuMemFreeHost");
}
EXPORTED int cuMemcpyAsync(Address to, Address from, std::size_t bytes, void* stream) {
  CALLED();
  stub().work(stream, "cuMemcpyAsync");
  stub().needs_memory("cuMemcpyAsync", to, bytes);
  stub().needs_memory("cuMemcpyAsync", from, bytes);
  if (stub().capture == 0 && bytes <= kMaxCopied)
    std::memmove(memory_of(to), memory_of(from), bytes);
  return kSuccess;
}
EXPORTED int cuMemsetD8Async(Address to, unsigned char byte, std::size_t bytes, void* stream) {
  CALLED();
  stub().work(stream, "cuMemsetD8Async");
  stub().needs_memory("cuMemsetD8Async", to, bytes);
  if (stub().capture == 0 && bytes <= kMaxCopied) std::memset(memory_of(to), byte, bytes);
  return kSuccess;
}

// ---- streams and events

EXPORTED int cuStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  CALLED(NOT_IN_A_CAPTURE);
  if (flags != 1) stub().rule("a stream waits for the default stream");
  if (priority > 0 || priority < -5) stub().rule("a priority out of range");
  *stream = *stub().streams.insert(new Stream).first;
  return kSuccess;
}
EXPORTED int cuStreamDestroy_v2(void* stream) {
  CALLED(NOT_IN_A_CAPTURE);
  return drop(stub().streams, stream, "cuStreamDestroy");
}
EXPORTED int cuStreamWriteValue32_v2(void* stream, Address to, unsigned value, unsigned) {
  CALLED(NOT_IN_A_CAPTURE);
  stub().work(stream, "cuStreamWriteValue32");
  stub().needs_memory("cuStreamWriteValue32", to, sizeof value);
  std::memcpy(memory_of(to), &value, sizeof value);
  return kSuccess;
}
EXPORTED int cuEventCreate(void** event, unsigned flags) {
  CALLED();
  *event = *stub().events.insert(new Event{.has_times = (flags & 2) == 0}).first;
  return kSuccess;
}
EXPORTED int cuEventDestroy_v2(void* event) {
  CALLED();
  return drop(stub().events, event, "cuEventDestroy");
}
EXPORTED int cuEventRecord(void* event_handle, void* stream_handle) {
  CALLED();
  auto* const event = static_cast<Event*>(event_handle);
  auto* const stream = static_cast<Stream*>(stream_handle);
  if (!stub().events.contains(event) || !stub().streams.contains(stream)) {
    stub().rule("cuEventRecord of an event or a stream that does not exist");
    return kInvalidHandle;
  }
  if (stream->capture != stub().capture)
    stub().rule("cuEventRecord on a stream outside of the capture");
  event->recorded = true;
  event->capture = stream->capture;
  event->by = stream;
  return kSuccess;
}
EXPORTED int cuEventQuery(void* handle) {
  CALLED(NOT_IN_A_CAPTURE);
  auto* const event = static_cast<Event*>(handle);
  if (!stub().events.contains(event)) stub().rule("cuEventQuery of an event that does not exist");
  if (event->capture != 0) stub().rule("cuEventQuery of an event of a capture");
  return kSuccess;
}
EXPORTED int cuEventElapsedTime(float* milliseconds, void* from, void* to) {
  CALLED(NOT_IN_A_CAPTURE);
  static float passed = 0;
  for (void* const handle : {from, to}) {
    const auto* const event = static_cast<Event*>(handle);
    if (!event->has_times) stub().rule("cuEventElapsedTime of an event without times");
    if (!event->recorded) stub().rule("cuEventElapsedTime of an event that was never recorded");
  }
  *milliseconds = passed += 0.05F;
  return kSuccess;
}
EXPORTED int cuStreamWaitEvent(void* stream_handle, void* event_handle, unsigned) {
  CALLED();
  auto* const stream = static_cast<Stream*>(stream_handle);
  auto* const event = static_cast<Event*>(event_handle);
  if (!event->recorded) stub().rule("cuStreamWaitEvent of an event that was never recorded");
  if (event->capture == 0) {
    if (stream->capture != 0)
      stub().rule("a captured stream waits for an event that was recorded outside of the capture");
    return kSuccess;
  }
  if (event->capture != stub().capture) {
    stub().rule("cuStreamWaitEvent of an event of another capture");
    return kInvalidValue;
  }
  if (stream->capture == 0) stream->capture = stub().capture;
  event->by->joined = true;
  stream->joined = false;
  return kSuccess;
}

// ---- graphs

EXPORTED int cuStreamBeginCapture_v2(void* stream, int) {
  CALLED(NOT_IN_A_CAPTURE);
  stub().capture = ++stub().captures;
  stub().origin = static_cast<Stream*>(stream);
  stub().origin->capture = stub().capture;
  stub().nodes = 0;
  return kSuccess;
}
EXPORTED int cuStreamEndCapture(void* handle, void** graph) {
  CALLED();
  if (handle != stub().origin) stub().rule("a capture ends on another stream");
  for (Stream* const stream : stub().streams) {
    if (stream != stub().origin && stream->capture == stub().capture && !stream->joined)
      stub().rule("a capture ends while a stream has not been joined");
    stream->capture = 0;
    stream->joined = true;
  }
  stub().capture = 0;
  *graph = *stub().graphs.insert(new std::uint64_t(stub().nodes)).first;
  return kSuccess;
}
EXPORTED int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  CALLED(NOT_IN_A_CAPTURE);
  if (!stub().graphs.contains(graph)) stub().rule("an instance of a graph that does not exist");
  *executable = *stub().executables.insert(new char).first;
  return kSuccess;
}
EXPORTED int cuGraphDestroy(void* graph) {
  CALLED();
  return drop(stub().graphs, graph, "cuGraphDestroy");
}
EXPORTED int cuGraphLaunch(void* executable, void* stream) {
  CALLED(NOT_IN_A_CAPTURE);
  stub().work(stream, "cuGraphLaunch");
  if (!stub().executables.contains(executable))
    stub().rule("a launch of a graph that does not exist");
  stub().launched();
  return kSuccess;
}
EXPORTED int cuGraphExecDestroy(void* executable) {
  CALLED(NOT_IN_A_CAPTURE);
  return drop(stub().executables, executable, "cuGraphExecDestroy");
}

// ---- kernels

EXPORTED int cuModuleLoadData(void** module, const void*) {
  CALLED(NOT_IN_A_CAPTURE);
  *module = *stub().modules.insert(new char).first;
  return kSuccess;
}
EXPORTED int cuModuleUnload(void* module) {
  CALLED(NOT_IN_A_CAPTURE);
  return drop(stub().modules, module, "cuModuleUnload");
}
EXPORTED int cuModuleGetFunction(void** function, void* module, const char* name) {
  CALLED(NOT_IN_A_CAPTURE);
  // Every module has every function: the first is asked.
  if (!stub().modules.contains(module)) return kNotFound;
  *function = new Function{name};
  return kSuccess;
}
EXPORTED int cuFuncLoad(void*) {
  CALLED(NOT_IN_A_CAPTURE);
  return kSuccess;
}
EXPORTED int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                            unsigned block_x, unsigned block_y, unsigned block_z,
                            unsigned shared_bytes, void* stream, void** arguments, void**) {
  CALLED();
  const std::string& name = static_cast<Function*>(function)->name;
  stub().work(stream, name.c_str());
  if (grid_x == 0 || grid_x > 0x7FFFFFFF || grid_y != 1 || grid_z != 1 || block_x == 0 ||
      block_x > 1024 || block_y != 1 || block_z != 1 || shared_bytes > 48 << 10)
    stub().rule("a launch of " + name + " that no device runs");
  if (arguments == nullptr) stub().rule("a launch of " + name + " without arguments");
  stub().launched();
  return kSuccess;
}
