#pragma once
// The interface that the enqueuing function of a role calls (`piper build --device cuda`): a device
// that takes work in the order of the plan and runs it later.
//
// Every call begins with the device, the rank, the queue (the stream's number in the program) and
// the action, enqueues and returns. A nonzero result is a failure, whose reason the device keeps.
// Between `begin` and `end` of an action nothing of another action is enqueued. Pointers are
// addresses in the rank's arena on the device. A workspace is the memory that the plan reserves for
// that one call; it has 0 bytes if the call needs none.
//
//   const PiperEnqueue* const role = piper_enqueue_v1();
//   role->enqueue(role, &device, &rank, 0, role->num_actions);   // one step
#include "runtime/abi.h"

#define PIPER_DEVICE_ABI_VERSION 7u

// The alignment that CUDA libraries want for their workspaces and pieces of them. Buffers lie at
// multiples of 64: the plan reserves this number of bytes more, and the call begins at the next
// multiple.
#define PIPER_WORKSPACE_ALIGNMENT 256u
// Workspaces of LibTorch's flash attention, which splits its work by the number of multiprocessors,
// are planned for GPUs with at most this number of them. Data centre GPUs up to B300 have no more
// (H100 and H200: 132, B200: 148).
#define PIPER_MOST_PROCESSORS 160

#ifdef __cplusplus
extern "C" {
#endif

// One bf16 number in memory, of runtime/kernel_math.h; only pointers to it appear here.
struct piper_bf16;

// A check of indices refuses a number outside [0, bound), except `ignore` if `masked`.
typedef struct PiperCheck {
  PiperSourceLocation where;
  const char* message;
  int64_t count, bound, ignore;
  uint32_t masked;
} PiperCheck;

typedef struct PiperDevice PiperDevice;
struct PiperDevice {
  uint32_t abi_version;
  // Device memory: seed and step, two u64, that random numbers are keyed by.
  const void* draw;
  void* device;  // the device's own; a rank has a PiperDevice of its own
  // Waits for the ends of actions on other streams; `distance` 1: of the step before.
  int (*begin)(PiperDevice* device, PiperRank* rank, uint32_t stream, uint32_t action,
               const PiperWait* waits, uint32_t num_waits);
  int (*end)(PiperDevice* device, PiperRank* rank, uint32_t stream, uint32_t action);
  // Number `kernel` of PiperEnqueue::kernels; a pointer to each argument.
  int (*kernel)(PiperDevice* device, PiperRank* rank, uint32_t stream, uint32_t action,
                uint32_t kernel, const void* const* arguments);
  int (*clear)(PiperDevice* device, PiperRank* rank, uint32_t stream, uint32_t action, void* at,
               uint64_t bytes);
  // The first failing position is read back with the action's end. Later kernels do not follow an
  // index that lies outside.
  int (*check)(PiperDevice* device, PiperRank* rank, uint32_t stream, uint32_t action,
               const PiperCheck* check, const int64_t* values);
  // Counts, as a double, which of the `elements` numbers at each of `from` are not `ignore`.
  int (*count)(PiperDevice* device, PiperRank* rank, uint32_t stream, uint32_t action,
               const uint64_t* from, uint32_t num_from, uint64_t elements, int64_t ignore,
               uint64_t to);
  int (*call)(PiperDevice* device, PiperRank* rank, uint32_t stream, uint32_t action,
              const PiperCall* call);
  int (*load)(PiperDevice* device, PiperRank* rank, uint32_t stream, uint32_t action,
              uint32_t input, uint64_t first, uint64_t samples, uint64_t to);
  // Numbers of `dtype` at `from`; if `counted` the last one is a double. They are handed over when
  // they have arrived.
  int (*report)(PiperDevice* device, PiperRank* rank, uint32_t stream, uint32_t action,
                uint32_t subject, const uint64_t* from, uint32_t num_from, uint32_t dtype,
                uint32_t counted);
  // Entry `position` of the stream's communications.
  int (*communicate)(PiperDevice* device, PiperRank* rank, uint32_t stream, uint32_t action,
                     uint32_t position);
};

// A function of kernels.cu and how it is started.
typedef struct PiperKernelEntry {
  const char* name;
  uint64_t blocks;
  uint32_t threads, num_arguments;
} PiperKernelEntry;

typedef struct PiperEnqueue {
  uint32_t abi_version;
  uint32_t num_actions, num_kernels;
  uint32_t num_shapes;  // the numbers of the shapes of library calls are below this
  const PiperKernelEntry* kernels;
  // The position of each action in the one linear order of all actions of all roles; ascending. The
  // members of a communication have neighbouring positions.
  const uint32_t* places;
  // Enqueues the actions [first, last) in issue order; nonzero if a call failed.
  int (*enqueue)(const struct PiperEnqueue* role, PiperDevice* device, PiperRank* rank,
                 uint32_t first, uint32_t last);
  const void* context;  // of `enqueue`
} PiperEnqueue;

#ifdef __cplusplus
}

// A library call of an enqueuing function.
template <unsigned num_in, unsigned num_out>
static inline int piper_call(PiperDevice* device, PiperRank* rank, uint32_t stream, uint32_t action,
                             const PiperCallShape* shape, const void* const (&in)[num_in],
                             void* const (&out)[num_out], uint32_t end = PIPER_END_WRITES,
                             void* workspace = 0, uint64_t workspace_bytes = 0) {
  const PiperCall call = {shape, in, out, workspace, workspace_bytes, end};
  return device->call(device, rank, stream, action, &call);
}
#endif
