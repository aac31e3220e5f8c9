// A libcublasLt.so for tests: matrices of the host, in columns, as the documentation of cuBLASLt
// has them. It multiplies by the algorithms that a test offers.
#include "tests/cuda/test_cublas_lt.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "runtime/kernel_math.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kSuccess = 0, kInvalidValue = 7, kNotSupported = 15;
constexpr int kReal32 = 0, kReal64 = 1, kBrain16 = 14;
constexpr int kCompute32 = 68, kCompute64 = 70;

piper::test::TestCublasLt seen;

struct Description {
  int compute = 0, scale = 0;
  std::map<int, std::int32_t> attributes = {};
};
struct Layout {
  int type = 0;
  std::uint64_t rows = 0, columns = 0;
  std::int64_t leading = 0, stride = 0;
  std::int32_t batch = 1;
};
struct Preference {
  std::uint64_t workspace = 0;
  std::uint32_t reductions = 7;
  std::uint32_t alignment[4] = {256, 256, 256, 256};
};
struct Algorithm {
  std::uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  std::size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

template <typename T, typename... Values>
int make(void** made, Values... values) {
  *made = new T{values...};
  ++seen.objects;
  return kSuccess;
}
template <typename T>
int drop(void* object) {
  delete static_cast<T*>(object);
  --seen.objects;
  return kSuccess;
}
template <typename T>
int put(T& to, const void* value, std::size_t bytes) {
  if (bytes != sizeof to) return kInvalidValue;
  std::memcpy(&to, value, bytes);
  return kSuccess;
}

double get(const void* data, int type, std::int64_t at) {
  if (type == kReal64) return static_cast<const double*>(data)[at];
  return type == kReal32 ? static_cast<const float*>(data)[at]
                         : static_cast<float>(static_cast<const piper_bf16*>(data)[at]);
}
void set(void* data, int type, std::int64_t at, double value) {
  if (type == kReal64) static_cast<double*>(data)[at] = value;
  if (type == kReal32) static_cast<float*>(data)[at] = static_cast<float>(value);
  if (type == kBrain16) static_cast<piper_bf16*>(data)[at] = static_cast<float>(value);
}
/// Element (row, column) of a matrix, or of its transpose.
std::int64_t place(const Layout& layout, std::int64_t batch, std::int64_t row, std::int64_t column,
                   bool transposed = false) {
  return batch * layout.stride +
         (transposed ? row * layout.leading + column : column * layout.leading + row);
}

}  // namespace

EXPORTED piper::test::TestCublasLt* test_cublas_lt() { return &seen; }

EXPORTED const char* cublasLtGetStatusString(int status) {
  return status == kNotSupported ? "the functionality requested is not supported"
                                 : "in the words of cuBLASLt";
}
EXPORTED int cublasLtCreate(void** handle) { return make<int>(handle, 0); }
EXPORTED int cublasLtDestroy(void* handle) { return drop<int>(handle); }

EXPORTED int cublasLtMatmulDescCreate(void** call, int compute, int scale) {
  return make<Description>(call, compute, scale);
}
EXPORTED int cublasLtMatmulDescDestroy(void* call) { return drop<Description>(call); }
EXPORTED int cublasLtMatmulDescSetAttribute(void* call, int attribute, const void* value,
                                            std::size_t bytes) {
  return put(static_cast<Description*>(call)->attributes[attribute], value, bytes);
}

EXPORTED int cublasLtMatrixLayoutCreate(void** layout, int type, std::uint64_t rows,
                                        std::uint64_t columns, std::int64_t leading) {
  return make<Layout>(layout, type, rows, columns, leading);
}
EXPORTED int cublasLtMatrixLayoutDestroy(void* layout) { return drop<Layout>(layout); }
EXPORTED int cublasLtMatrixLayoutSetAttribute(void* layout, int attribute, const void* value,
                                              std::size_t bytes) {
  Layout& of = *static_cast<Layout*>(layout);
  return attribute == 5   ? put(of.batch, value, bytes)
         : attribute == 6 ? put(of.stride, value, bytes)
                          : kInvalidValue;
}

EXPORTED int cublasLtMatmulPreferenceCreate(void** preference) {
  return make<Preference>(preference);
}
EXPORTED int cublasLtMatmulPreferenceDestroy(void* preference) {
  return drop<Preference>(preference);
}
EXPORTED int cublasLtMatmulPreferenceSetAttribute(void* preference, int attribute,
                                                  const void* value, std::size_t bytes) {
  Preference& of = *static_cast<Preference*>(preference);
  if (attribute == 1) return put(of.workspace, value, bytes);
  if (attribute == 3) return put(of.reductions, value, bytes);
  return attribute >= 5 && attribute <= 8 ? put(of.alignment[attribute - 5], value, bytes)
                                          : kInvalidValue;
}

EXPORTED int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*,
                                            void* preference, int most, Heuristic* found,
                                            int* count) {
  const Preference& wanted = *static_cast<Preference*>(preference);
  // Buffers of an arena lie at multiples of 64.
  if (std::any_of(wanted.alignment, wanted.alignment + 4,
                  [](std::uint32_t alignment) { return alignment > 64; }))
    return kInvalidValue;
  seen.reductions.push_back(wanted.reductions);
  const auto& offers = wanted.reductions == 0 ? seen.whole : seen.split;
  *count = 0;
  for (const auto& offer : offers) {
    if (*count < most)
      found[(*count)++] = {.algorithm = {{offer.number}},
                           .workspace = offer.workspace,
                           .state = offer.state,
                           .waves = 1,
                           .reserved = {}};
  }
  return *count == 0 ? kNotSupported : kSuccess;
}

EXPORTED int cublasLtMatmul(void*, void* call, const void* alpha, const void* a, void* layout_a,
                            const void* b, void* layout_b, const void* beta, const void* c,
                            void* layout_c, void* d, void* layout_d, const Algorithm* algorithm,
                            void* workspace, std::size_t workspace_bytes, void*) {
  for (const auto* offers : {&seen.whole, &seen.split}) {
    for (const auto& offer : *offers) {
      if (offer.number == algorithm->data[0] && (!offer.runs || workspace_bytes < offer.workspace))
        return kNotSupported;
    }
  }
  seen.ran.push_back(algorithm->data[0]);
  if (workspace_bytes > 0) std::memset(workspace, 0x7E, workspace_bytes);
  const Description& of = *static_cast<Description*>(call);
  const Layout &la = *static_cast<Layout*>(layout_a), &lb = *static_cast<Layout*>(layout_b),
               &lc = *static_cast<Layout*>(layout_c), &ld = *static_cast<Layout*>(layout_d);
  const auto attribute = [&](int number) {
    const auto found = of.attributes.find(number);
    return found != of.attributes.end() && found->second == 1;
  };
  const bool transpose_a = attribute(3), transpose_b = attribute(4);
  const bool wide = of.compute == kCompute64 && of.scale == kReal64;
  if (!wide && (of.compute != kCompute32 || of.scale != kReal32)) return kInvalidValue;
  const auto m = static_cast<std::int64_t>(ld.rows), n = static_cast<std::int64_t>(ld.columns),
             k = static_cast<std::int64_t>(transpose_a ? la.rows : la.columns);
  const bool fits = static_cast<std::int64_t>(transpose_a ? la.columns : la.rows) == m &&
                    static_cast<std::int64_t>(transpose_b ? lb.columns : lb.rows) == k &&
                    static_cast<std::int64_t>(transpose_b ? lb.rows : lb.columns) == n &&
                    la.batch == ld.batch && lb.batch == ld.batch && la.type == lb.type;
  if (!fits || lc.rows != ld.rows || lc.columns != ld.columns) return kInvalidValue;
  const double one = wide ? *static_cast<const double*>(alpha) : *static_cast<const float*>(alpha),
               adds = wide ? *static_cast<const double*>(beta) : *static_cast<const float*>(beta);
  for (std::int64_t batch = 0; batch < ld.batch; ++batch) {
    for (std::int64_t column = 0; column < n; ++column) {
      for (std::int64_t row = 0; row < m; ++row) {
        double sum = 0;
        for (std::int64_t i = 0; i < k; ++i)
          sum += get(a, la.type, place(la, batch, row, i, transpose_a)) *
                 get(b, lb.type, place(lb, batch, i, column, transpose_b));
        const double before = adds != 0 ? get(c, lc.type, place(lc, batch, row, column)) : 0;
        set(d, ld.type, place(ld, batch, row, column), one * sum + adds * before);
      }
    }
  }
  return kSuccess;
}
