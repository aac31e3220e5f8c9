// A libcuda.so.1 for tests: two GPUs that a link joins. Work is done when it is enqueued, kernels
// and graphs are not run.
#include "tests/cuda/test_libcuda.h"

#include <cstdlib>
#include <cstring>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

piper::test::TestLibcuda seen;
constexpr int kSuccess = 0, kInvalidDevice = 101, kNotFound = 500;
constexpr std::size_t kBytes = std::size_t{80} << 30;

template <typename... Numbers>
int called(const char* name, Numbers... numbers) {
  std::string line = name;
  ((line += " " + std::to_string(numbers)), ...);
  seen.calls.push_back(std::move(line));
  return kSuccess;
}
/// Handles are memory of the host.
int make(void** made, std::size_t bytes = 1) {
  *made = std::malloc(bytes);
  ++seen.objects;
  return kSuccess;
}
int drop(void* object) {
  std::free(object);
  --seen.objects;
  return kSuccess;
}
void* pointer(unsigned long long address) { return reinterpret_cast<void*>(address); }
std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

EXPORTED piper::test::TestLibcuda* test_libcuda() { return &seen; }

// ---- the driver and its devices

EXPORTED int cuInit(unsigned) {
  seen.max_connections = variable("CUDA_DEVICE_MAX_CONNECTIONS");
  seen.module_loading = variable("CUDA_MODULE_LOADING");
  return kSuccess;
}
EXPORTED int cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
EXPORTED int cuDeviceGetCount(int* count) {
  *count = 2;
  return kSuccess;
}
EXPORTED int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return kSuccess;
}
EXPORTED int cuDeviceGetName(char* name, int length, int) {
  std::strncpy(name, "GPU of the tests", static_cast<std::size_t>(length));
  return kSuccess;
}
EXPORTED int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? 9 : attribute == 16 ? 132 : 0;
  return kSuccess;
}
EXPORTED int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = kBytes;
  return kSuccess;
}
EXPORTED int cuDeviceGetPCIBusId(char* id, int length, int device) {
  std::strncpy(id, device == 0 ? "0000:19:00.0" : "0000:3b:00.0", static_cast<std::size_t>(length));
  return kSuccess;
}
EXPORTED int cuDeviceCanAccessPeer(int* can, int, int) {
  *can = 1;
  return kSuccess;
}
EXPORTED int cuDeviceGetP2PAttribute(int* value, int attribute, int device, int other) {
  *value = attribute == 3 ? 1 : 0;
  return device == other ? kInvalidDevice : kSuccess;
}
EXPORTED int cuDevicePrimaryCtxRetain(void** context, int) {
  *context = &seen;
  ++seen.objects;
  return kSuccess;
}
EXPORTED int cuDevicePrimaryCtxRelease_v2(int) {
  --seen.objects;
  return kSuccess;
}
EXPORTED int cuCtxSetCurrent(void*) { return kSuccess; }
EXPORTED int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return kSuccess;
}
EXPORTED int cuGetErrorName(int error, const char** text) {
  *text = error == 1 ? "CUDA_ERROR_INVALID_VALUE" : "CUDA_ERROR_OF_THE_TESTS";
  return kSuccess;
}
EXPORTED int cuGetErrorString(int, const char** text) {
  *text = "in words";
  return kSuccess;
}

// ---- memory

EXPORTED int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  *free = *total = kBytes;
  return kSuccess;
}
EXPORTED int cuMemAlloc_v2(unsigned long long* address, std::size_t bytes) {
  void* made = nullptr;
  make(&made, bytes);
  *address = reinterpret_cast<unsigned long long>(made);
  return kSuccess;
}
EXPORTED int cuMemFree_v2(unsigned long long address) { return drop(pointer(address)); }
EXPORTED int cuMemHostAlloc(void** address, std::size_t bytes, unsigned) {
  return make(address, bytes);
}
EXPORTED int cuMemFreeHost(void* address) { return drop(address); }
EXPORTED int cuMemcpyAsync(unsigned long long to, unsigned long long from, std::size_t bytes,
                           void*) {
  std::memcpy(pointer(to), pointer(from), bytes);
  return kSuccess;
}
EXPORTED int cuMemsetD8Async(unsigned long long to, unsigned char byte, std::size_t bytes, void*) {
  std::memset(pointer(to), byte, bytes);
  return kSuccess;
}

// ---- streams and events

EXPORTED int cuStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  called("cuStreamCreateWithPriority", flags, priority);
  return make(stream);
}
EXPORTED int cuStreamDestroy_v2(void* stream) { return drop(stream); }
EXPORTED int cuStreamWaitEvent(void*, void*, unsigned flags) {
  return called("cuStreamWaitEvent", flags);
}
EXPORTED int cuStreamWriteValue32_v2(void*, unsigned long long to, unsigned value, unsigned) {
  std::memcpy(pointer(to), &value, sizeof value);
  return kSuccess;
}
EXPORTED int cuEventCreate(void** event, unsigned flags) {
  called("cuEventCreate", flags);
  return make(event);
}
EXPORTED int cuEventDestroy_v2(void* event) { return drop(event); }
EXPORTED int cuEventRecord(void*, void*) { return kSuccess; }
EXPORTED int cuEventQuery(void*) { return kSuccess; }
EXPORTED int cuEventElapsedTime(float* milliseconds, void*, void*) {
  *milliseconds = 1.5F;
  return kSuccess;
}

// ---- kernels and graphs

EXPORTED int cuModuleLoadData(void** module, const void*) { return make(module); }
EXPORTED int cuModuleUnload(void* module) { return drop(module); }
EXPORTED int cuModuleGetFunction(void** function, void* module, const char* name) {
  *function = module;
  return std::strcmp(name, "missing") == 0 ? kNotFound : called("cuModuleGetFunction");
}
EXPORTED int cuFuncLoad(void*) { return called("cuFuncLoad"); }
EXPORTED int cuLaunchKernel(void*, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                            unsigned block_x, unsigned block_y, unsigned block_z,
                            unsigned shared_bytes, void*, void**, void**) {
  return called("cuLaunchKernel", grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes);
}
EXPORTED int cuStreamBeginCapture_v2(void*, int mode) {
  return called("cuStreamBeginCapture", mode);
}
EXPORTED int cuStreamEndCapture(void*, void** graph) { return make(graph); }
EXPORTED int cuGraphInstantiateWithFlags(void** executable, void*, unsigned long long flags) {
  called("cuGraphInstantiateWithFlags", flags);
  return make(executable);
}
EXPORTED int cuGraphDestroy(void* graph) { return drop(graph); }
EXPORTED int cuGraphLaunch(void*, void*) { return called("cuGraphLaunch"); }
EXPORTED int cuGraphExecDestroy(void* executable) {
  called("cuGraphExecDestroy");
  return drop(executable);
}
