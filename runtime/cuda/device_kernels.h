#pragma once
// Kernels that the runtime itself starts, in CUDA C++: progress, small copies, first values, checks
// of indices, counts, sums of the loopback transport, attention. Compiled by NVRTC behind backend/cuda/prelude.h, and
// by a host compiler behind tests/cuda/host_shim.h. Warps are blocks of 32 threads: no kernel
// depends on gridDim.

// The result of a check; in memory of the host.
struct piper_finding {
  uint64_t found;
  int64_t position, value;
};

// One thread: adds `more` to the number of ended actions, which is in memory of the device, and
// writes the sum into memory of the host.
extern "C" __global__ void __launch_bounds__(32, 1)
    piper_advance(uint32_t* ended, uint32_t* word, uint32_t more) {
  *(volatile uint32_t*)word = *ended += more;
}

// Blocks of 256, `stride` threads in all: copies bytes.
extern "C" __global__ void __launch_bounds__(256, 4)
    piper_move(const unsigned char* from, unsigned char* to, uint64_t bytes, uint64_t stride) {
  const uint64_t thread = (uint64_t)blockIdx.x * 256 + threadIdx.x;
  const uint64_t tiles = (((uint64_t)from | (uint64_t)to) % 16 == 0) ? bytes / 16 : 0;
  for (uint64_t i = thread; i < tiles; i += stride)
    piper_write(to + 16 * i, piper_read<16>(from + 16 * i));
  for (uint64_t i = 16 * tiles + thread; i < bytes; i += stride) to[i] = from[i];
}

// Blocks of 256, `stride` threads in all: to[i] = the first value of element first + i of a
// parameter.
template <class T>
PIPER_DEVICE void piper_put_first_values(piper_random_key key, uint32_t kind, double scale,
                                         uint64_t first, uint64_t elements, uint64_t stride,
                                         T* to) {
  for (uint64_t i = (uint64_t)blockIdx.x * 256 + threadIdx.x; i < elements; i += stride)
    to[i] = (T)piper_first_value(kind, scale, key, first + i);
}
#define PIPER_FIRST_VALUES(suffix, T)                                                              \
  extern "C" __global__ void __launch_bounds__(256, 4)                                             \
      piper_initialise_##suffix(piper_random_key key, uint32_t kind, double scale, uint64_t first, \
                                uint64_t elements, uint64_t stride, T* to) {                       \
    piper_put_first_values(key, kind, scale, first, elements, stride, to);                         \
  }
PIPER_FIRST_VALUES(f32, float)
PIPER_FIRST_VALUES(f64, double)
PIPER_FIRST_VALUES(bf16, piper_bf16)
PIPER_FIRST_VALUES(i64, int64_t)

// One block of 256: finds the first of `count` numbers outside [0, bound) that is not `ignore`, if
// `masked`. Writes nothing if there is none.
extern "C" __global__ void __launch_bounds__(256, 1)
    piper_check(const int64_t* values, int64_t count, int64_t bound, int64_t ignore,
                uint32_t masked, piper_finding* to) {
  __shared__ int64_t partial[8];
  int64_t first = count;
  for (int64_t i = threadIdx.x; i < count; i += 256) {
    const int64_t value = values[i];
    if ((uint64_t)value < (uint64_t)bound || (masked && value == ignore)) continue;
    first = i;
    break;
  }
  if (!__syncthreads_or(first < count)) return;
  first = piper_join_row<piper_first, 256>(first, partial);
  if (threadIdx.x != 0) return;
  to->position = first;
  to->value = values[first];
  to->found = 1;
}

// One block of 256: counts the numbers among `elements` that are not `ignore`.
extern "C" __global__ void __launch_bounds__(256, 1)
    piper_count(const int64_t* values, uint64_t elements, int64_t ignore, uint32_t adds,
                double* to) {
  __shared__ int64_t partial[8];
  int64_t counted = 0;
  for (uint64_t i = threadIdx.x; i < elements; i += 256) counted += values[i] != ignore;
  counted = piper_join_row<piper_sum, 256>(counted, partial);
  if (threadIdx.x == 0) *to = (adds ? *to : 0.0) + (double)counted;
}

// Blocks of 256, `stride` threads in all: out[m][i] = the sum of in[m][i], the members one after
// the other, added to the one `out` if `adds`. Outputs may be inputs.
template <class T>
PIPER_DEVICE void piper_sum_members(const T* const* in, uint32_t num_in, T* const* out,
                                    uint32_t num_out, uint64_t elements, uint64_t stride,
                                    uint32_t adds) {
  for (uint64_t i = (uint64_t)blockIdx.x * 256 + threadIdx.x; i < elements; i += stride) {
    T sum = in[0][i];
    for (uint32_t m = 1; m < num_in; ++m) sum = sum + in[m][i];
    for (uint32_t m = 0; m < num_out; ++m) out[m][i] = adds ? (T)(out[m][i] + sum) : sum;
  }
}
extern "C" __global__ void __launch_bounds__(256, 2)
    piper_sum_f32(const float* const* in, uint32_t num_in, float* const* out, uint32_t num_out,
                  uint64_t elements, uint64_t stride, uint32_t adds) {
  piper_sum_members(in, num_in, out, num_out, elements, stride, adds);
}
extern "C" __global__ void __launch_bounds__(256, 2)
    piper_sum_f64(const double* const* in, uint32_t num_in, double* const* out, uint32_t num_out,
                  uint64_t elements, uint64_t stride, uint32_t adds) {
  piper_sum_members(in, num_in, out, num_out, elements, stride, adds);
}
extern "C" __global__ void __launch_bounds__(256, 2)
    piper_sum_bf16(const piper_bf16* const* in, uint32_t num_in, piper_bf16* const* out,
                   uint32_t num_out, uint64_t elements, uint64_t stride, uint32_t adds) {
  piper_sum_members(in, num_in, out, num_out, elements, stride, adds);
}
extern "C" __global__ void __launch_bounds__(256, 2)
    piper_sum_i64(const int64_t* const* in, uint32_t num_in, int64_t* const* out, uint32_t num_out,
                  uint64_t elements, uint64_t stride, uint32_t adds) {
  piper_sum_members(in, num_in, out, num_out, elements, stride, adds);
}

// ---- attention: exact, deterministic, a warp per row; slower than a library
// ------------------------------------------------------
//
// Layouts are those of PiperAttend (runtime/abi.h). T is the element in memory, S the type of sums:
// float for piper_bf16. Scores are recomputed for every use, 32 keys or queries at once.
struct piper_attend_sizes {
  int64_t batch, seq, keys, heads, kv_heads, width, value_width;
  double scale;
  uint32_t causal;
};

template <class S, class T> PIPER_DEVICE S piper_dot(const T* a, const T* b, int64_t n) {
  S sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += (S)a[i] * (S)b[i];
  return sum;
}
// Query s attends to the keys before this one.
PIPER_DEVICE int64_t piper_keys_seen(const piper_attend_sizes& z, int64_t s) {
  if (!z.causal) return z.keys;
  const int64_t end = s + 1 + z.keys - z.seq;
  return end < 0 ? 0 : end > z.keys ? z.keys : end;
}

// Block (batch, head, query): out and lse.
template <class S, class T>
PIPER_DEVICE void piper_attend_row(const piper_attend_sizes& z, const T* q, const T* k, const T* v,
                                   T* out, S* lse, S* weights) {
  const int64_t s = blockIdx.x % z.seq, h = blockIdx.x / z.seq % z.heads,
                b = blockIdx.x / z.seq / z.heads;
  const int64_t g = h / (z.heads / z.kv_heads), end = piper_keys_seen(z, s);
  const int lane = threadIdx.x;
  const T* const query = q + ((b * z.seq + s) * z.heads + h) * z.width;
  const T* const key = k + (b * z.keys * z.kv_heads + g) * z.width;
  const T* const value = v + (b * z.keys * z.kv_heads + g) * z.value_width;
  T* const row = out + ((b * z.seq + s) * z.heads + h) * z.value_width;
  const S scale = (S)z.scale;
  S largest = -piper_infinity((S)0);
  for (int64_t t = lane; t < end; t += 32)
    largest =
        piper_max(largest, scale * piper_dot<S>(query, key + t * z.kv_heads * z.width, z.width));
  largest = piper_join_warp<piper_largest, 32>(largest);
  S sum = 0;
  for (int64_t t = lane; t < end; t += 32)
    sum +=
        piper_exp(scale * piper_dot<S>(query, key + t * z.kv_heads * z.width, z.width) - largest);
  sum = piper_join_warp<piper_sum, 32>(sum);
  if (lane == 0) lse[(b * z.heads + h) * z.seq + s] = largest + piper_log(sum);
  for (int64_t u0 = 0; u0 < z.value_width; u0 += 32) {
    const int64_t u = u0 + lane;
    S total = 0;
    for (int64_t t0 = 0; t0 < end; t0 += 32) {
      const int64_t t = t0 + lane;
      __syncthreads();
      weights[lane] =
          t < end ? piper_exp(scale * piper_dot<S>(query, key + t * z.kv_heads * z.width, z.width) -
                              largest) /
                        sum
                  : (S)0;
      __syncthreads();
      const int64_t last = end - t0 < 32 ? end - t0 : 32;
      if (u < z.value_width) {
        for (int64_t i = 0; i < last; ++i)
          total += weights[i] * (S)value[(t0 + i) * z.kv_heads * z.value_width + u];
      }
    }
    if (u < z.value_width) row[u] = (T)total;
  }
}

// Recomputes the weights of a query and their gradients. `inner`: a query's row of the output times
// the row of its gradient.
template <class S, class T> struct piper_attend_of {
  const piper_attend_sizes& z;
  const T *q, *k, *v, *out, *dout;
  const S* lse;
  int64_t b;
  PIPER_MEMBER S inner(int64_t s, int64_t h) const {
    const int64_t at = ((b * z.seq + s) * z.heads + h) * z.value_width;
    return piper_dot<S>(out + at, dout + at, z.value_width);
  }
  // The weight of key t for query s of head h, and the gradient of its score times the scale.
  PIPER_MEMBER void weigh(int64_t s, int64_t h, int64_t t, S inner, S* weight, S* change) const {
    const int64_t g = h / (z.heads / z.kv_heads), query = (b * z.seq + s) * z.heads + h,
                  key = (b * z.keys + t) * z.kv_heads + g;
    const S score = (S)z.scale * piper_dot<S>(q + query * z.width, k + key * z.width, z.width);
    *weight = piper_exp(score - lse[(b * z.heads + h) * z.seq + s]);
    *change = *weight *
              (piper_dot<S>(dout + query * z.value_width, v + key * z.value_width, z.value_width) -
               inner) *
              (S)z.scale;
  }
};

// Block (batch, head, query): dq.
template <class S, class T>
PIPER_DEVICE void piper_attend_dq_row(const piper_attend_of<S, T>& of, int64_t h, int64_t s, T* dq,
                                      S* changes) {
  const piper_attend_sizes& z = of.z;
  const int64_t g = h / (z.heads / z.kv_heads), end = piper_keys_seen(z, s);
  const int lane = threadIdx.x;
  const S inner = of.inner(s, h);
  for (int64_t u0 = 0; u0 < z.width; u0 += 32) {
    const int64_t u = u0 + lane;
    S total = 0;
    for (int64_t t0 = 0; t0 < end; t0 += 32) {
      S weight = 0, change = 0;
      if (t0 + lane < end) of.weigh(s, h, t0 + lane, inner, &weight, &change);
      __syncthreads();
      changes[lane] = change;
      __syncthreads();
      const int64_t last = end - t0 < 32 ? end - t0 : 32;
      if (u < z.width) {
        for (int64_t i = 0; i < last; ++i)
          total += changes[i] * (S)of.k[((of.b * z.keys + t0 + i) * z.kv_heads + g) * z.width + u];
      }
    }
    if (u < z.width) dq[((of.b * z.seq + s) * z.heads + h) * z.width + u] = total;
  }
}

// Block (batch, key head, key): dk and dv, from the queries that attend to the key, head after head
// of the group.
template <class S, class T>
PIPER_DEVICE void piper_attend_dkv_row(const piper_attend_of<S, T>& of, int64_t g, int64_t t, T* dk,
                                       T* dv, S* changes, S* weights) {
  const piper_attend_sizes& z = of.z;
  const int64_t group = z.heads / z.kv_heads,
                most = z.width > z.value_width ? z.width : z.value_width;
  const int64_t behind = t - (z.keys - z.seq), first = !z.causal || behind < 0 ? 0 : behind;
  const int lane = threadIdx.x;
  for (int64_t u0 = 0; u0 < most; u0 += 32) {
    const int64_t u = u0 + lane;
    S to_key = 0, to_value = 0;
    for (int64_t h = g * group; h < (g + 1) * group; ++h) {
      for (int64_t s0 = first; s0 < z.seq; s0 += 32) {
        S weight = 0, change = 0;
        if (s0 + lane < z.seq) of.weigh(s0 + lane, h, t, of.inner(s0 + lane, h), &weight, &change);
        __syncthreads();
        changes[lane] = change;
        weights[lane] = weight;
        __syncthreads();
        const int64_t last = z.seq - s0 < 32 ? z.seq - s0 : 32;
        for (int64_t i = 0; i < last; ++i) {
          const int64_t query = (of.b * z.seq + s0 + i) * z.heads + h;
          if (u < z.width) to_key += changes[i] * (S)of.q[query * z.width + u];
          if (u < z.value_width) to_value += weights[i] * (S)of.dout[query * z.value_width + u];
        }
      }
    }
    const int64_t key = (of.b * z.keys + t) * z.kv_heads + g;
    if (u < z.width) dk[key * z.width + u] = to_key;
    if (u < z.value_width) dv[key * z.value_width + u] = to_value;
  }
}

#define PIPER_ATTENTION(suffix, T, S)                                                             \
  extern "C" __global__ void __launch_bounds__(32, 16) piper_attend_##suffix(                     \
      const piper_attend_sizes z, const T* q, const T* k, const T* v, T* out, S* lse) {           \
    __shared__ S weights[32];                                                                     \
    piper_attend_row(z, q, k, v, out, lse, weights);                                              \
  }                                                                                               \
  extern "C" __global__ void __launch_bounds__(32, 16)                                            \
      piper_attend_dq_##suffix(const piper_attend_sizes z, const T* q, const T* k, const T* v,    \
                               const T* out, const S* lse, const T* dout, T* dq) {                \
    __shared__ S changes[32];                                                                     \
    const int64_t s = blockIdx.x % z.seq, h = blockIdx.x / z.seq % z.heads,                       \
                  b = blockIdx.x / z.seq / z.heads;                                               \
    piper_attend_dq_row(piper_attend_of<S, T>{z, q, k, v, out, dout, lse, b}, h, s, dq, changes); \
  }                                                                                               \
  extern "C" __global__ void __launch_bounds__(32, 16)                                            \
      piper_attend_dkv_##suffix(const piper_attend_sizes z, const T* q, const T* k, const T* v,   \
                                const T* out, const S* lse, const T* dout, T* dk, T* dv) {        \
    __shared__ S changes[32], weights[32];                                                        \
    const int64_t g = blockIdx.x % z.kv_heads, t = blockIdx.x / z.kv_heads % z.keys,              \
                  b = blockIdx.x / z.kv_heads / z.keys;                                           \
    piper_attend_dkv_row(piper_attend_of<S, T>{z, q, k, v, out, dout, lse, b}, g, t, dk, dv,      \
                         changes, weights);                                                       \
  }
PIPER_ATTENTION(f32, float, float)
PIPER_ATTENTION(f64, double, double)
PIPER_ATTENTION(bf16, piper_bf16, float)
