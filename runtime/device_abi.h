#pragma once
/* What the enqueuing function of a role calls (`piper build --device cuda`): a device that takes work in the order of the plan and runs it later.
 *
 * Every call begins with the device, the rank, the queue (the stream's number in the program) and the action, enqueues and returns; nonzero is failure, and
 * the device knows why. Between `begin` and `end` of an action nothing of another action is enqueued. Pointers are addresses in the rank's arena on the device.
 * A workspace is what the plan has for that one call; it has 0 bytes where the call needs none.
 *
 *   const PiperEnqueue* const role = piper_enqueue_v1();
 *   role->enqueue(role, &device, &rank, 0, role->num_actions);   // one step
 */
#include "runtime/abi.h"

#define PIPER_DEVICE_ABI_VERSION 5u

/* Where libraries of CUDA want their workspaces and pieces of them to begin. Buffers lie at multiples of 64: the plan has so many bytes more, and the call begins at the next multiple. */
#define PIPER_WORKSPACE_ALIGNMENT 256u
/* Workspaces of LibTorch's flash attention are planned for GPUs of up to so many multiprocessors, by whose number it splits its work. Data centre GPUs up to B300 have no more (H100
 * and H200: 132, B200: 148). */
#define PIPER_MOST_PROCESSORS 160

#ifdef __cplusplus
extern "C" {
#endif

/* What becomes of the sums of a matrix product. Products of bf16 are added up in f32: c is of f32, and of bf16 where the sums are rounded, once. */
typedef enum PiperGemmEnd { PIPER_GEMM_WRITES = 0, PIPER_GEMM_ADDS = 1, PIPER_GEMM_ROUNDS = 2 } PiperGemmEnd;

/* One number of bf16 in memory, of runtime/kernel_math.h: here only pointed to. */
struct piper_bf16;

/* What a check of indices refuses: a number outside [0, bound) that is not `ignore`, where `masked`. */
typedef struct PiperCheck {
  PiperPlace where;
  const char* message;
  int64_t count, bound, ignore;
  uint32_t masked;
} PiperCheck;

typedef struct PiperDevice PiperDevice;
struct PiperDevice {
  uint32_t abi_version;
  const void* draw;            /* device memory: seed and step, two u64, that random numbers are keyed by */
  void* device;                /* the device's own; a rank has a PiperDevice of its own */
  /* Waits for the ends of actions on other queues, one step ago where `distance` is 1. */
  int (*begin)(PiperDevice* device, PiperRank* rank, uint32_t queue, uint32_t action, const PiperWait* waits, uint32_t num_waits);
  int (*end)(PiperDevice* device, PiperRank* rank, uint32_t queue, uint32_t action);
  /* Number `kernel` of PiperEnqueue::kernels; a pointer to each argument. */
  int (*kernel)(PiperDevice* device, PiperRank* rank, uint32_t queue, uint32_t action, uint32_t kernel, const void* const* arguments);
  int (*clear)(PiperDevice* device, PiperRank* rank, uint32_t queue, uint32_t action, void* at, uint64_t bytes);
  /* The first failing position is read back with the action's end. Later kernels do not follow an index that lies outside. */
  int (*check)(PiperDevice* device, PiperRank* rank, uint32_t queue, uint32_t action, const PiperCheck* check, const int64_t* values);
  /* How many of `elements` numbers at each of `from` are not `ignore`, as a double. */
  int (*count)(PiperDevice* device, PiperRank* rank, uint32_t queue, uint32_t action, const uint64_t* from, uint32_t num_from, uint64_t elements, int64_t ignore, uint64_t to);
  /* `end`: a PiperGemmEnd. */
  int (*gemm)(PiperDevice* device, PiperRank* rank, uint32_t queue, uint32_t action, const PiperGemm* call, const void* a, const void* b, void* c, uint32_t end,
              void* workspace, uint64_t workspace_bytes);
  int (*attend)(PiperDevice* device, PiperRank* rank, uint32_t queue, uint32_t action, const PiperAttend* call, const void* q, const void* k, const void* v, void* out, void* lse,
                void* workspace, uint64_t workspace_bytes);
  int (*attend_grad)(PiperDevice* device, PiperRank* rank, uint32_t queue, uint32_t action, const PiperAttend* call, const void* q, const void* k, const void* v, const void* out,
                     const void* lse, const void* dout, void* dq, void* dk, void* dv, void* workspace, uint64_t workspace_bytes);
  int (*load)(PiperDevice* device, PiperRank* rank, uint32_t queue, uint32_t action, uint32_t input, uint64_t first, uint64_t samples, uint64_t to);
  /* Numbers of `dtype` at `from`; where `counted` the last one is a double. They are handed over when they have come. */
  int (*report)(PiperDevice* device, PiperRank* rank, uint32_t queue, uint32_t action, uint32_t subject, const uint64_t* from, uint32_t num_from, uint32_t dtype, uint32_t counted);
  /* Entry `position` of the queue's communications. */
  int (*communicate)(PiperDevice* device, PiperRank* rank, uint32_t queue, uint32_t action, uint32_t position);
};

/* A function of kernels.cu and how it is started. */
typedef struct PiperKernelEntry {
  const char* name;
  uint64_t blocks;
  uint32_t threads, num_arguments;
} PiperKernelEntry;

typedef struct PiperEnqueue {
  uint32_t abi_version;
  uint32_t num_actions, num_kernels;
  const PiperKernelEntry* kernels;
  /* Per action its place in the one linear order of all actions of all roles; ascending. The members of a communication have neighbouring places. */
  const uint32_t* places;
  /* Enqueues the actions [first, last) in issue order; nonzero where a call failed. */
  int (*enqueue)(const struct PiperEnqueue* role, PiperDevice* device, PiperRank* rank, uint32_t first, uint32_t last);
  const void* context;         /* of `enqueue` */
} PiperEnqueue;

#ifdef __cplusplus
}
#endif
