#pragma once
// The parts of CUDA C++ that C++ lacks, for generated kernels that a host compiler builds. No
// standard header: the prelude has integer types of its own.

#define __device__
#define __global__
#define __shared__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(threads, blocks)

struct piper_shim_place {
  unsigned x;
};
// Set by the test before anything runs; blocks run one after the other.
struct piper_shim_calls {
  piper_shim_place thread, block;
  unsigned long long (*exchange)(unsigned mask, unsigned long long value, int distance);
  unsigned (*ballot)(unsigned mask, int value);
  int (*block_or)(int value);
};
extern "C" {
piper_shim_calls* piper_shim;
}
#define threadIdx (piper_shim->thread)
#define blockIdx (piper_shim->block)

template <class T> static T __shfl_xor_sync(unsigned mask, T value, int distance, int) {
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  bits = piper_shim->exchange(mask, bits, distance);
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
static inline unsigned __ballot_sync(unsigned mask, int value) {
  return piper_shim->ballot(mask, value);
}
static inline int __syncthreads_or(int value) { return piper_shim->block_or(value); }
static inline void __syncthreads() { piper_shim->block_or(0); }
static inline void __syncwarp() { piper_shim->ballot(0xffffffffu, 0); }
static inline int __popc(unsigned value) { return __builtin_popcount(value); }
static inline int __clz(int value) { return value == 0 ? 32 : __builtin_clz((unsigned)value); }
template <class T> static T atomicAdd(T* at, T value) {
  const T old = *at;
  *at = old + value;
  return old;
}
template <class T> static T atomicMin(T* at, T value) {
  const T old = *at;
  if (value < old) *at = value;
  return old;
}
