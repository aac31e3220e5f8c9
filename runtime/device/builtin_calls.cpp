// Piper's own loops. Sums run in a fixed order, in the dtype of the result for products (in blocks
// that stay in cache), in f64 for the sums of softmax.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/device/library_calls.h"
#include "runtime/device/widen.h"

namespace piper::runtime {
namespace {

constexpr std::int64_t kBlock = 64;

template <typename Operand, typename T>
void multiply(const PiperGemm& call, const Operand* a, const Operand* b, T* c, bool accumulate) {
  const std::int64_t m = call.m, n = call.n, k = call.k;
  for (std::int64_t batch = 0; batch < call.batch; ++batch, a += m * k, b += k * n, c += m * n) {
    if (!accumulate) std::memset(c, 0, static_cast<std::size_t>(m * n) * sizeof(T));
    const auto at = [&](std::int64_t i, std::int64_t l) {
      return static_cast<T>(call.transpose_a ? a[l * m + i] : a[i * k + l]);
    };
    for (std::int64_t l0 = 0; l0 < k; l0 += kBlock) {
      const std::int64_t l1 = std::min(k, l0 + kBlock);
      for (std::int64_t i = 0; i < m; ++i) {
        T* const row = c + i * n;
        if (!call.transpose_b) {
          for (std::int64_t l = l0; l < l1; ++l) {
            const T factor = at(i, l);
            const Operand* const other = b + l * n;
            for (std::int64_t j = 0; j < n; ++j) row[j] += factor * static_cast<T>(other[j]);
          }
        } else {
          for (std::int64_t j = 0; j < n; ++j) {
            T sum = 0;
            for (std::int64_t l = l0; l < l1; ++l) sum += at(i, l) * static_cast<T>(b[j * k + l]);
            row[j] += sum;
          }
        }
      }
    }
  }
}

// Positions in q[batch][seq][heads][width] and k[batch][keys][kv_heads][width]: query head h reads
// key head h / (heads / kv_heads).
struct Heads {
  const PiperAttend& call;
  std::int64_t q(std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t width) const {
    return ((b * call.seq + s) * call.heads + h) * width;
  }
  std::int64_t k(std::int64_t b, std::int64_t t, std::int64_t h, std::int64_t width) const {
    return ((b * call.keys + t) * call.kv_heads + h / (call.heads / call.kv_heads)) * width;
  }
  std::int64_t lse(std::int64_t b, std::int64_t h, std::int64_t s) const {
    return (b * call.heads + h) * call.seq + s;
  }
  // Query s attends to keys before this one; the queries are aligned with the end of the keys.
  std::int64_t end(std::int64_t s) const {
    return call.causal ? std::clamp<std::int64_t>(s + 1 + call.keys - call.seq, 0, call.keys)
                       : call.keys;
  }
};

template <typename T>
T dot(const T* a, const T* b, std::int64_t n) {
  T sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

template <typename T>
void attend(const PiperAttend& call, const T* q, const T* k, const T* v, T* out, T* lse,
            T* scores) {
  const Heads at{call};
  for (std::int64_t b = 0; b < call.batch; ++b) {
    for (std::int64_t h = 0; h < call.heads; ++h) {
      for (std::int64_t s = 0; s < call.seq; ++s) {
        const std::int64_t end = at.end(s);
        T largest = -std::numeric_limits<T>::infinity();
        for (std::int64_t t = 0; t < end; ++t) {
          scores[t] = static_cast<T>(call.scale) *
                      dot(q + at.q(b, s, h, call.width), k + at.k(b, t, h, call.width), call.width);
          largest = std::max(largest, scores[t]);
        }
        double sum = 0;
        for (std::int64_t t = 0; t < end; ++t)
          sum += std::exp(static_cast<double>(scores[t] - largest));
        lse[at.lse(b, h, s)] = static_cast<T>(static_cast<double>(largest) + std::log(sum));
        T* const row = out + at.q(b, s, h, call.value_width);
        std::fill_n(row, call.value_width, T(0));
        for (std::int64_t t = 0; t < end; ++t) {
          const T weight = static_cast<T>(std::exp(static_cast<double>(scores[t] - largest)) / sum);
          const T* const value = v + at.k(b, t, h, call.value_width);
          for (std::int64_t i = 0; i < call.value_width; ++i) row[i] += weight * value[i];
        }
      }
    }
  }
}

template <typename T>
void attend_grad(const PiperAttend& call, const T* q, const T* k, const T* v, const T* out,
                 const T* lse, const T* dout, T* dq, T* dk, T* dv) {
  const Heads at{call};
  const std::int64_t width = call.width, value_width = call.value_width;
  std::fill_n(dq, call.batch * call.seq * call.heads * width, T(0));
  std::fill_n(dk, call.batch * call.keys * call.kv_heads * width, T(0));
  std::fill_n(dv, call.batch * call.keys * call.kv_heads * value_width, T(0));
  for (std::int64_t b = 0; b < call.batch; ++b) {
    for (std::int64_t h = 0; h < call.heads; ++h) {
      for (std::int64_t s = 0; s < call.seq; ++s) {
        const std::int64_t query = at.q(b, s, h, width), result = at.q(b, s, h, value_width);
        const T inner = dot(out + result, dout + result, value_width);
        for (std::int64_t t = 0; t < at.end(s); ++t) {
          const std::int64_t key = at.k(b, t, h, width), value = at.k(b, t, h, value_width);
          const T score = static_cast<T>(call.scale) * dot(q + query, k + key, width);
          const T weight =
              static_cast<T>(std::exp(static_cast<double>(score - lse[at.lse(b, h, s)])));
          const T change = weight * (dot(dout + result, v + value, value_width) - inner) *
                           static_cast<T>(call.scale);
          for (std::int64_t i = 0; i < value_width; ++i) dv[value + i] += weight * dout[result + i];
          for (std::int64_t i = 0; i < width; ++i) {
            dq[query + i] += change * k[key + i];
            dk[key + i] += change * q[query + i];
          }
        }
      }
    }
  }
}

int refuse(LibraryReport* report, const char* error, std::int64_t value) {
  report->error = error;
  report->value = value;
  return kLibraryError;
}

constexpr const char* kDType = "matrix products and attention know f32, f64 and bf16";

int gemm_call(const PiperGemm* call, const void* a, const void* b, void* c,
              std::uint32_t accumulate, LibraryReport* report) {
  if (call->dtype == PIPER_F32) {
    multiply(*call, static_cast<const float*>(a), static_cast<const float*>(b),
             static_cast<float*>(c), accumulate != 0);
  } else if (call->dtype == PIPER_F64) {
    multiply(*call, static_cast<const double*>(a), static_cast<const double*>(b),
             static_cast<double*>(c), accumulate != 0);
  } else if (call->dtype == PIPER_BF16) {
    multiply(*call, static_cast<const piper_bf16*>(a), static_cast<const piper_bf16*>(b),
             static_cast<float*>(c), accumulate != 0);
  } else {
    return refuse(report, kDType, call->dtype);
  }
  return kLibraryDone;
}

template <typename T>
int attend_in(const PiperAttend& call, const void* q, const void* k, const void* v, void* out,
              void* lse, void* workspace, std::uint64_t workspace_bytes, LibraryReport* report) {
  const std::uint64_t needed = static_cast<std::uint64_t>(call.keys) * sizeof(T);
  if (needed > workspace_bytes) {
    report->value = static_cast<std::int64_t>(needed - workspace_bytes);
    return kLibraryOverrun;
  }
  attend(call, static_cast<const T*>(q), static_cast<const T*>(k), static_cast<const T*>(v),
         static_cast<T*>(out), static_cast<T*>(lse), static_cast<T*>(workspace));
  return kLibraryDone;
}

int attend_call(const PiperAttend* call, const void* q, const void* k, const void* v, void* out,
                void* lse, void* workspace, std::uint64_t workspace_bytes, LibraryReport* report) {
  switch (static_cast<PiperDType>(call->dtype)) {
    case PIPER_F64:
      return attend_in<double>(*call, q, k, v, out, lse, workspace, workspace_bytes, report);
    case PIPER_F32:
      return attend_in<float>(*call, q, k, v, out, lse, workspace, workspace_bytes, report);
    case PIPER_BF16:
      return attend_widened(attend_call, *call, q, k, v, out, lse, workspace, workspace_bytes,
                            report);
    case PIPER_I64: break;
  }
  return refuse(report, kDType, call->dtype);
}

int attend_grad_call(const PiperAttend* call, const void* q, const void* k, const void* v,
                     const void* out, const void* lse, const void* dout, void* dq, void* dk,
                     void* dv, void* workspace, std::uint64_t workspace_bytes,
                     LibraryReport* report) {
  if (call->dtype == PIPER_BF16)
    return attend_grad_widened(attend_grad_call, *call, q, k, v, out, lse, dout, dq, dk, dv,
                               workspace, workspace_bytes, report);
  if (call->dtype == PIPER_F32) {
    attend_grad(*call, static_cast<const float*>(q), static_cast<const float*>(k),
                static_cast<const float*>(v), static_cast<const float*>(out),
                static_cast<const float*>(lse), static_cast<const float*>(dout),
                static_cast<float*>(dq), static_cast<float*>(dk), static_cast<float*>(dv));
  } else if (call->dtype == PIPER_F64) {
    attend_grad(*call, static_cast<const double*>(q), static_cast<const double*>(k),
                static_cast<const double*>(v), static_cast<const double*>(out),
                static_cast<const double*>(lse), static_cast<const double*>(dout),
                static_cast<double*>(dq), static_cast<double*>(dk), static_cast<double*>(dv));
  } else {
    return refuse(report, kDType, call->dtype);
  }
  return kLibraryDone;
}

constexpr LibraryCalls kCalls = {.abi_version = PIPER_ABI_VERSION,
                                 .name = "builtin",
                                 .choose = [](Math) { return 0; },
                                 .begin_thread = [](std::uint32_t) {},
                                 .gemm = gemm_call,
                                 .attend = attend_call,
                                 .attend_grad = attend_grad_call,
                                 .skip_destructors = 0};

}  // namespace

const LibraryCalls& builtin_library_calls() { return kCalls; }

}  // namespace piper::runtime
