#pragma once
/* What generated CUDA kernels stand on, beside runtime/kernel_math.h: types that NVRTC has no header for, pieces of memory that one thread moves at once, and
 * joining partial results in the order of `Lanes` (backend/kernel/kernel.h). Compiled by NVRTC, and by a host compiler behind tests/cuda/host_shim.h. */

typedef int int32_t;
typedef long long int64_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;

#define PIPER_DEVICE __device__ static __forceinline__

/* What kernels with random numbers read; the runtime writes it into device memory before a step, so that a captured graph need not change. */
struct piper_draw {
  uint64_t seed, step;
};

template <class T, int count> struct alignas(sizeof(T) * count < 16 ? sizeof(T) * count : 16) piper_piece {
  T at[count];
};
template <int count, class T> PIPER_DEVICE piper_piece<T, count> piper_read(const T* from) { return *(const piper_piece<T, count>*)from; }
template <class T, int count> PIPER_DEVICE void piper_write(T* to, const piper_piece<T, count>& piece) { *(piper_piece<T, count>*)to = piece; }

/* An index that lies outside was reported by a check before; it must not be followed. */
PIPER_DEVICE int64_t piper_within(int64_t index, int64_t count) { return (uint64_t)index < (uint64_t)count ? index : 0; }

struct piper_sum {
  template <class T> PIPER_DEVICE T join(T low, T high) { return low + high; }
};
struct piper_largest {
  template <class T> PIPER_DEVICE T join(T low, T high) { return low >= high ? low : high; }
};
struct piper_first {
  template <class T> PIPER_DEVICE T join(T low, T high) { return low <= high ? low : high; }
};

/* The lanes of a row are neighbours: those of a warp that hold it, which may be fewer than 32. */
template <int lanes> PIPER_DEVICE uint32_t piper_row_mask() {
  return lanes >= 32 ? 0xffffffffu : ((1u << (lanes & 31)) - 1u) << (threadIdx.x & 31u & ~(unsigned)(lanes - 1));
}
/* Every lane gets the result. */
template <class Join, int lanes, class T> PIPER_DEVICE T piper_join_warp(T value) {
  const uint32_t mask = piper_row_mask<lanes>();
#pragma unroll
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    const T other = __shfl_xor_sync(mask, value, distance, 32);
    value = (threadIdx.x & distance) != 0 ? Join::join(other, value) : Join::join(value, other);
  }
  return value;
}
/* `partial` has room for one value per warp, and is used for this join alone. */
template <class Join, int lanes, class T> PIPER_DEVICE T piper_join_row(T value, T* partial) {
  if (lanes <= 32) return piper_join_warp<Join, (lanes < 32 ? lanes : 32)>(value);
  value = piper_join_warp<Join, 32>(value);
  if ((threadIdx.x & 31) == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  constexpr int warps = lanes <= 32 ? 1 : lanes / 32;
  value = partial[threadIdx.x & (warps - 1)];
  /* Warps of a row: every group of as many lanes holds all of their values. */
#pragma unroll
  for (int distance = warps / 2; distance > 0; distance /= 2) {
    const T other = __shfl_xor_sync(0xffffffffu, value, distance, 32);
    value = (threadIdx.x & distance) != 0 ? Join::join(other, value) : Join::join(value, other);
  }
  return value;
}
