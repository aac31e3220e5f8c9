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

template <typename Operand, typename T>
int multiply_in(const PiperCall& call) {
  multiply(call.shape->of.gemm, static_cast<const Operand*>(call.in[0]),
           static_cast<const Operand*>(call.in[1]), static_cast<T*>(call.out[0]),
           call.end == PIPER_END_ADDS);
  return kLibraryDone;
}

int multiply_call(const PiperCall& call, LibraryReport* report) {
  if (call.end > PIPER_END_ADDS) return refuse(report, kNoSuchEnd, call.end);
  const std::uint32_t dtype = call.shape->of.gemm.dtype;
  switch (static_cast<PiperDType>(dtype)) {
    case PIPER_F64: return multiply_in<double, double>(call);
    case PIPER_F32: return multiply_in<float, float>(call);
    case PIPER_BF16: return multiply_in<piper_bf16, float>(call);
    case PIPER_I64: break;
  }
  return refuse(report, kDType, dtype);
}

template <typename T>
int attend_in(const PiperCall& call, LibraryReport* report) {
  const PiperAttend& of = call.shape->of.attend;
  const std::uint64_t needed = static_cast<std::uint64_t>(of.keys) * sizeof(T);
  if (needed > call.workspace_bytes) {
    report->value = static_cast<std::int64_t>(needed - call.workspace_bytes);
    return kLibraryOverrun;
  }
  const auto in = [&](std::size_t i) { return static_cast<const T*>(call.in[i]); };
  attend(of, in(0), in(1), in(2), static_cast<T*>(call.out[0]), static_cast<T*>(call.out[1]),
         static_cast<T*>(call.workspace));
  return kLibraryDone;
}

int attend_call(const PiperCall& call, LibraryReport* report) {
  const std::uint32_t dtype = call.shape->of.attend.dtype;
  switch (static_cast<PiperDType>(dtype)) {
    case PIPER_F64: return attend_in<double>(call, report);
    case PIPER_F32: return attend_in<float>(call, report);
    case PIPER_BF16: return attend_widened(attend_call, call, report);
    case PIPER_I64: break;
  }
  return refuse(report, kDType, dtype);
}

template <typename T>
int attend_grad_in(const PiperCall& call) {
  const auto in = [&](std::size_t i) { return static_cast<const T*>(call.in[i]); };
  const auto out = [&](std::size_t i) { return static_cast<T*>(call.out[i]); };
  attend_grad(call.shape->of.attend, in(0), in(1), in(2), in(3), in(4), in(5), out(0), out(1),
              out(2));
  return kLibraryDone;
}

int attend_grad_call(const PiperCall& call, LibraryReport* report) {
  const std::uint32_t dtype = call.shape->of.attend.dtype;
  switch (static_cast<PiperDType>(dtype)) {
    case PIPER_F64: return attend_grad_in<double>(call);
    case PIPER_F32: return attend_grad_in<float>(call);
    case PIPER_BF16: return attend_grad_widened(attend_grad_call, call, report);
    case PIPER_I64: break;
  }
  return refuse(report, kDType, dtype);
}

int library_call(const PiperCall* call, LibraryReport* report) {
  switch (static_cast<PiperCallKind>(call->shape->kind)) {
    case PIPER_CALL_GEMM: return multiply_call(*call, report);
    case PIPER_CALL_ATTEND: return attend_call(*call, report);
    case PIPER_CALL_ATTEND_GRAD: return attend_grad_call(*call, report);
  }
  return refuse(report, kUnknownLibraryCall, call->shape->kind);
}

constexpr LibraryCalls kCalls = {.abi_version = PIPER_ABI_VERSION,
                                 .name = "builtin",
                                 .choose = [](Math) { return 0; },
                                 .begin_thread = [](std::uint32_t) {},
                                 .call = library_call,
                                 .skip_destructors = 0};

}  // namespace

const LibraryCalls& builtin_library_calls() { return kCalls; }

}  // namespace piper::runtime
