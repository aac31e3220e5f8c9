#pragma once
// The prelude of generated CUDA kernels, after runtime/kernel_math.h: types for which NVRTC has no
// header, pieces of memory that one thread moves at once, and joining partial results in the order
// of `Lanes` (backend/kernel/kernel.h). Compiled by NVRTC, and by a host compiler after
// tests/cuda/host_shim.h.

typedef int int32_t;
typedef long long int64_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;

#define PIPER_DEVICE __device__ static __forceinline__

// The key of kernels with random numbers; the runtime writes it into device memory before a step,
// so that a captured graph need not change.
struct piper_draw {
  uint64_t seed, step;
};

template <class T, int count>
struct alignas(sizeof(T) * count < 16 ? sizeof(T) * count : 16) piper_tile {
  T at[count];
};
template <int count, class T>
PIPER_DEVICE piper_tile<T, count> piper_read(const T* from) {
  return *(const piper_tile<T, count>*)from;
}
template <class T, int count>
PIPER_DEVICE void piper_write(T* to, const piper_tile<T, count>& tile) {
  *(piper_tile<T, count>*)to = tile;
}

// An index out of range was reported by an earlier check; it must not be followed.
PIPER_DEVICE int64_t piper_within(int64_t index, int64_t count) {
  return (uint64_t)index < (uint64_t)count ? index : 0;
}

struct piper_sum {
  template <class T> PIPER_DEVICE T join(T low, T high) { return low + high; }
};
struct piper_largest {
  template <class T> PIPER_DEVICE T join(T low, T high) { return low >= high ? low : high; }
};
struct piper_first {
  template <class T> PIPER_DEVICE T join(T low, T high) { return low <= high ? low : high; }
};

// The lanes of a row that are in one warp; they are neighbours and may be fewer than 32.
template <int lanes> PIPER_DEVICE uint32_t piper_row_mask() {
  return lanes >= 32 ? 0xffffffffu
                     : ((1u << (lanes & 31)) - 1u) << (threadIdx.x & 31u & ~(unsigned)(lanes - 1));
}
// Every lane gets the result.
template <class Join, int lanes, class T> PIPER_DEVICE T piper_join_warp(T value) {
  const uint32_t mask = piper_row_mask<lanes>();
#pragma unroll
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    const T other = __shfl_xor_sync(mask, value, distance, 32);
    value = (threadIdx.x & distance) != 0 ? Join::join(other, value) : Join::join(value, other);
  }
  return value;
}
// `partial` has room for one value per warp, and is used only for this join.
template <class Join, int lanes, class T> PIPER_DEVICE T piper_join_row(T value, T* partial) {
  if (lanes <= 32) return piper_join_warp<Join, (lanes < 32 ? lanes : 32)>(value);
  value = piper_join_warp<Join, 32>(value);
  if ((threadIdx.x & 31) == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  constexpr int warps = lanes <= 32 ? 1 : lanes / 32;
  value = partial[threadIdx.x & (warps - 1)];
  // Warps of a row: every group of `warps` lanes has all of their values.
#pragma unroll
  for (int distance = warps / 2; distance > 0; distance /= 2) {
    const T other = __shfl_xor_sync(0xffffffffu, value, distance, 32);
    value = (threadIdx.x & distance) != 0 ? Join::join(other, value) : Join::join(value, other);
  }
  return value;
}

// ---- the positions of an index in the order of its values
// ------------------------------------------------------

template <int digits> struct piper_order_state {
  // Positions with a smaller digit, and those of tiles that are done.
  uint32_t before[digits];
  uint32_t sums[digits];
  uint32_t last[32], carry;  // the last first place of each warp, and of the tiles before
};

// Exclusive prefix sums of `before` in log steps. Needs at least one warp of threads.
template <int threads, int digits>
PIPER_DEVICE void piper_sums_below(piper_order_state<digits>& state) {
  uint32_t* from = state.before;
  uint32_t* to = state.sums;
  for (int distance = 1; distance < digits; distance *= 2) {
    for (int d = threadIdx.x; d < digits; d += threads)
      to[d] = from[d] + (d >= distance ? from[d - distance] : 0u);
    __syncthreads();
    uint32_t* const kept = from;
    from = to;
    to = kept;
  }
  // `from` has inclusive sums.
  for (int d = threadIdx.x; d < digits; d += threads) to[d] = d == 0 ? 0u : from[d - 1];
  __syncthreads();
  if (to != state.before) {
    for (int d = threadIdx.x; d < digits; d += threads) state.before[d] = to[d];
    __syncthreads();
  }
}

// A block sorts positions by the digits of their index, lowest digit first (stable). Then
// order[positions...] has the number of each position among those of its index.
template <int threads, int passes, class Index>
PIPER_DEVICE void piper_order(int64_t positions, int64_t* order, Index index_of) {
  constexpr int digits = 256, warps = threads / 32;
  __shared__ piper_order_state<digits> state;
  __shared__ uint32_t counts[warps][digits];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const uint32_t lower = (1u << lane) - 1u;
  int64_t* from = order;
  int64_t* to = order;
#pragma unroll 1
  for (int pass = 0; pass < passes; ++pass) {
    from = to;
    to = (passes - 1 - pass) % 2 == 0 ? order : order + positions;
    for (int d = threadIdx.x; d < digits; d += threads) state.before[d] = 0u;
    __syncthreads();
    for (int64_t q = threadIdx.x; q < positions; q += threads)
      atomicAdd(&state.before[(index_of(q) >> (8 * pass)) & (digits - 1)], 1u);
    __syncthreads();
    piper_sums_below<threads>(state);
    for (int64_t q0 = 0; q0 < positions; q0 += threads) {
      const bool here = q0 + threadIdx.x < positions;
      const int64_t position = here ? (pass == 0 ? q0 + threadIdx.x : from[q0 + threadIdx.x]) : 0;
      const int digit = here ? (int)(index_of(position) >> (8 * pass)) & (digits - 1) : 0;
      uint32_t same = __ballot_sync(0xffffffffu, here);
      for (int bit = 1; bit < digits; bit *= 2) {
        const uint32_t set = __ballot_sync(0xffffffffu, (digit & bit) != 0);
        same &= (digit & bit) != 0 ? set : ~set;
      }
      for (int d = lane; d < digits; d += 32) counts[warp][d] = 0u;
      __syncwarp();
      if (here && (same & lower) == 0u) counts[warp][digit] = (uint32_t)__popc(same);
      __syncthreads();
      for (int d = threadIdx.x; d < digits; d += threads) {
        uint32_t next = state.before[d];
        for (int w = 0; w < warps; ++w) {
          const uint32_t count = counts[w][d];
          counts[w][d] = next;
          next += count;
        }
        state.before[d] = next;
      }
      __syncthreads();
      if (here) to[counts[warp][digit] + (uint32_t)__popc(same & lower)] = position;
      __syncthreads();
    }
  }
  if (threadIdx.x == 0) state.carry = 0u;
  for (int64_t q0 = 0; q0 < positions; q0 += threads) {
    const int64_t q = q0 + threadIdx.x;
    const bool first = q < positions && (q == 0 || index_of(order[q]) != index_of(order[q - 1]));
    const uint32_t firsts = __ballot_sync(0xffffffffu, first) & (lower | 1u << lane);
    uint32_t begin =
        firsts == 0u ? 0xffffffffu : (uint32_t)(q0 + warp * 32 + 31 - __clz((int)firsts));
    if (lane == 31) state.last[warp] = begin;
    __syncthreads();
    for (int w = warp - 1; begin == 0xffffffffu && w >= 0; --w) begin = state.last[w];
    if (begin == 0xffffffffu) begin = state.carry;
    __syncthreads();
    if (threadIdx.x == threads - 1) state.carry = begin;
    if (q < positions) order[positions + q] = q - begin;
    __syncthreads();
  }
}

// The number of places from `slot` on, at most `limit`, that belong to the same index: their
// numbers are consecutive.
template <class I> PIPER_DEVICE I piper_run(const int64_t* place, I positions, I slot, I limit) {
  I low = 1, high = positions - slot < limit ? positions - slot : limit;
  while (low < high) {
    const I middle = (low + high + 1) / 2;
    if (place[slot + middle - 1] == place[slot] + middle - 1) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}
