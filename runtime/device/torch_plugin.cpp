// Library calls (runtime/calls.def) by LibTorch, as a plugin of C functions: the only file that
// includes LibTorch.
//
// Tensors are views of planned memory. Attention has no out-variant, so while it runs a hook serves
// LibTorch's allocations on this thread: results at their planned addresses, the rest from the
// planned workspace. f64, grouped key heads and values of another width take the explicit form,
// product by product, which is deterministic and allocates nothing. Products are MKL's or oneDNN's
// (product_choice.h). oneDNN's allocations come from memory that the thread keeps, because only
// oneDNN knows their size, which depends on the processor.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward_ops.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_ops.h>
#include <ATen/ops/addmm_ops.h>
#include <ATen/ops/baddbmm_ops.h>
#include <ATen/ops/bmm_ops.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm_ops.h>
#include <ATen/Parallel.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "runtime/device/library_calls.h"
#include "runtime/device/planned_memory.h"
#include "runtime/device/product_choice.h"
#include "runtime/device/scalar_type.h"
#include "runtime/device/widen.h"
#include "runtime/dtypes.h"

// Exported, but in no header: MKL's product of bf16 matrices, whose sums and result are f32.
extern "C" void cblas_gemm_bf16bf16f32(int layout, int transpose_a, int transpose_b, int m, int n,
                                       int k, float alpha, const std::uint16_t* a, int lda,
                                       const std::uint16_t* b, int ldb, float beta, float* c,
                                       int ldc);
namespace at::native {
void mkldnn_matmul(const at::Tensor& a, const at::Tensor& b, const at::Tensor& result, float beta,
                   float alpha);
}

namespace piper::runtime {
namespace {

// ---- planned memory
// ---------------------------------------------------------------------------------------------------

thread_local PlannedMemory* planned = nullptr;

void keep(void*) {}

class PlannedAllocator final : public c10::Allocator {
 public:
  explicit PlannedAllocator(c10::Allocator* other) : other_(other) {}
  c10::DataPtr allocate(std::size_t bytes) override {
    if (!planned) return other_->allocate(bytes);
    if (bytes == 0) return {nullptr, c10::Device(c10::DeviceType::CPU)};
    void* const memory = planned->take(bytes);
    return {memory, memory, keep, c10::Device(c10::DeviceType::CPU)};
  }
  // For memory that is allocated and freed within one call.
  c10::DeleterFnPtr raw_deleter() const override { return planned ? keep : other_->raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  c10::Allocator* other_;
};

class PlannedScope {
 public:
  explicit PlannedScope(PlannedMemory& memory) { planned = &memory; }
  ~PlannedScope() { planned = nullptr; }
};

// ---- threads
// ----------------------------------------------------------------------------------------------------------

thread_local std::optional<c10::InferenceMode> inference;

void begin_thread(std::uint32_t threads) {
  at::set_num_threads(static_cast<int>(threads));
  inference.emplace(true);
}

int refuse(LibraryReport* report, const char* error, std::int64_t value = 0) {
  report->error = error;
  report->value = value;
  return kLibraryError;
}

at::Tensor view(const void* data, at::IntArrayRef sizes, at::IntArrayRef strides,
                std::uint32_t dtype) {
  return at::from_blob(const_cast<void*>(data), sizes, strides,
                       at::TensorOptions().dtype(scalar_type(dtype)));
}

// ---- matrix products
// --------------------------------------------------------------------------------------------------

// The three views of one shape of product; only their addresses change from call to call.
struct ProductViews {
  PiperGemm call{
      .batch = -1, .m = 0, .n = 0, .k = 0, .transpose_a = 0, .transpose_b = 0, .dtype = 0};
  at::Tensor a, b, c;

  void make(const PiperGemm& other) {
    call = other;
    a = matrix(call.m, call.k, call.transpose_a);
    b = matrix(call.k, call.n, call.transpose_b);
    c = matrix(call.m, call.n, 0);
  }
  at::Tensor matrix(std::int64_t rows, std::int64_t columns, std::uint32_t transposed) const {
    const std::int64_t down = transposed ? 1 : columns, along = transposed ? rows : 1;
    if (call.batch == 1) return view(nullptr, {rows, columns}, {down, along}, call.dtype);
    return view(nullptr, {call.batch, rows, columns}, {rows * columns, down, along}, call.dtype);
  }
};

// The views of a product with a shape: all of it, or a panel of its rows and the last panel. They
// are made at the first product of the thread with a shape of this number, and again if another
// program with other shapes follows.
struct ShapeViews {
  ProductViews panel, last;

  // The views at these addresses, of all of the call's rows or of the last ones.
  const ProductViews& at(const PiperGemm& rows, bool is_last, const void* a, const void* b,
                         void* c);
};

ShapeViews& views_of(const PiperCallShape& shape) {
  thread_local std::vector<ShapeViews> by_number;
  if (shape.number >= by_number.size()) by_number.resize(std::size_t{shape.number} + 1);
  return by_number[shape.number];
}

void point(const at::Tensor& tensor, const void* data) {
  tensor.unsafeGetTensorImpl()->unsafe_storage().set_data_ptr_noswap(
      {const_cast<void*>(data), c10::Device(c10::DeviceType::CPU)});
}

std::atomic<Math> math{Math::automatic};

int choose(Math chosen) {
  if (chosen == Math::onednn && !this_processor().avx512) return 1;
  math.store(chosen, std::memory_order_relaxed);
  return 0;
}

const ProductViews& ShapeViews::at(const PiperGemm& rows, bool is_last, const void* a,
                                   const void* b, void* c) {
  ProductViews& views = is_last ? last : panel;
  if (!piper_same_gemm(&views.call, &rows)) views.make(rows);
  point(views.a, a);
  point(views.b, b);
  point(views.c, c);
  return views;
}

struct Moved : std::exception {};

void multiply_one(const ProductViews& views, bool accumulate) {
  at::Tensor c = views.c;
  if (views.call.batch == 1) {
    if (accumulate) {
      at::_ops::addmm_out::call(c, views.a, views.b, 1, 1, c);
    } else {
      at::_ops::mm_out::call(views.a, views.b, c);
    }
  } else if (accumulate) {
    at::_ops::baddbmm_out::call(c, views.a, views.b, 1, 1, c);
  } else {
    at::_ops::bmm_out::call(views.a, views.b, c);
  }
}

// Panel by panel of rows, if that is faster.
void multiply_mkl(const PiperCall& call) {
  const PiperGemm& of = call.shape->of.gemm;
  const std::int64_t rows = rows_per_call(of, static_cast<std::uint32_t>(at::get_num_threads()));
  const auto element = static_cast<std::int64_t>(element_bytes(of.dtype));
  const auto* from = static_cast<const unsigned char*>(call.in[0]);
  auto* to = static_cast<unsigned char*>(call.out[0]);
  ShapeViews& all = views_of(*call.shape);
  std::int64_t done = 0;
  do {
    PiperGemm panel = of;
    panel.m = std::min(rows, of.m - done);
    unsigned char* const result = to + done * of.n * element;
    const ProductViews& views =
        all.at(panel, panel.m != rows, from + done * of.k * element, call.in[1], result);
    multiply_one(views, call.end == PIPER_END_ADDS);
    if (views.c.const_data_ptr() != result) throw Moved();
    done += rows;
  } while (done < of.m);
}

// The largest amount that a product of the thread needed.
struct KeptMemory {
  struct Free {
    void operator()(unsigned char* memory) const { std::free(memory); }
  };
  std::unique_ptr<unsigned char, Free> data;
  std::uint64_t bytes = 0;

  void grow(std::uint64_t missing) {
    constexpr std::uint64_t kPage = 4096;
    const std::uint64_t wanted = (bytes + missing + kPage) / kPage * kPage;
    data.reset();
    bytes = 0;
    data.reset(static_cast<unsigned char*>(std::aligned_alloc(kPage, wanted)));
    if (!data) throw std::bad_alloc();
    bytes = wanted;
  }
};

// oneDNN takes all memory before it writes anything, so a product that had too little is started
// again.
void multiply_onednn(const PiperCall& call) {
  const ProductViews& views =
      views_of(*call.shape).at(call.shape->of.gemm, false, call.in[0], call.in[1], call.out[0]);
  thread_local KeptMemory kept;
  for (;;) {
    PlannedMemory memory{.next = kept.data.get(), .left = kept.bytes};
    try {
      const PlannedScope scope(memory);
      at::native::mkldnn_matmul(views.a, views.b, views.c, call.end == PIPER_END_ADDS ? 1 : 0, 1);
      if (views.c.const_data_ptr() != call.out[0]) throw Moved();
      return;
    } catch (const Moved&) {
      throw;
    } catch (const std::exception&) {
      if (memory.missing == 0) throw;
    }
    kept.grow(memory.missing);
  }
}

// MKL chooses by the processor: AMX and AVX-512 if supported, else widened operands. Nothing is
// rounded before c is.
void multiply_bf16(const PiperCall& call) {
  constexpr int kRows = 101, kPlain = 111, kTransposed = 112;  // of CBLAS
  const PiperGemm& of = call.shape->of.gemm;
  const auto* left = static_cast<const std::uint16_t*>(call.in[0]);
  const auto* right = static_cast<const std::uint16_t*>(call.in[1]);
  auto* to = static_cast<float*>(call.out[0]);
  const auto whole = [](std::int64_t extent) { return static_cast<int>(extent); };
  for (std::int64_t i = 0; i < of.batch;
       ++i, left += of.m * of.k, right += of.k * of.n, to += of.m * of.n) {
    cblas_gemm_bf16bf16f32(
        kRows, of.transpose_a ? kTransposed : kPlain, of.transpose_b ? kTransposed : kPlain,
        whole(of.m), whole(of.n), whole(of.k), 1, left, whole(of.transpose_a ? of.m : of.k), right,
        whole(of.transpose_b ? of.k : of.n), call.end == PIPER_END_ADDS ? 1 : 0, to, whole(of.n));
  }
}

int multiply_call(const PiperCall& call, LibraryReport* report) {
  const PiperGemm& of = call.shape->of.gemm;
  if (call.end > PIPER_END_ADDS) return refuse(report, kNoSuchEnd, call.end);
  if (of.dtype == PIPER_BF16) {
    constexpr std::int64_t kMax = std::numeric_limits<int>::max();
    if (std::min({of.m, of.n, of.k}) < 1 || std::max({of.m, of.n, of.k}) > kMax)
      return refuse(report, "LibTorch refused a matrix product");
    multiply_bf16(call);
    return kLibraryDone;
  }
  if (of.dtype != PIPER_F32 && of.dtype != PIPER_F64)
    return refuse(report, "LibTorch multiplies f32, f64 and bf16", of.dtype);
  try {
    static const Processor processor = this_processor();
    switch (choose_product(of, math.load(std::memory_order_relaxed), processor)) {
      case ProductLibrary::onednn: multiply_onednn(call); break;
      case ProductLibrary::mkl: multiply_mkl(call); break;
    }
    return kLibraryDone;
  } catch (const Moved&) {
    return refuse(report, "LibTorch moved the result of a matrix product");
  } catch (const std::bad_alloc&) {
    return refuse(report, "LibTorch found no memory for a matrix product");
  } catch (const std::exception&) {
    return refuse(report, "LibTorch refused a matrix product");
  }
}

// ---- attention
// ----------------------------------------------------------------------------------------------------------

// [batch][heads][positions][width], LibTorch's order, over memory [batch][positions][heads][width].
at::Tensor heads_view(const void* data, std::int64_t batch, std::int64_t positions,
                      std::int64_t heads, std::int64_t width, std::uint32_t dtype) {
  return view(data, {batch, heads, positions, width},
              {positions * heads * width, width, heads * width, 1}, dtype);
}

bool has_flash(const PiperAttend& call) {
  return call.dtype == PIPER_F32 && call.heads == call.kv_heads && call.width == call.value_width &&
         (!call.causal || call.seq == call.keys);
}

// Moves a result to its planned address, where it already is unless LibTorch used that memory for
// something else.
bool settle(const at::Tensor& tensor, void* planned_at, std::uint64_t bytes,
            const PlannedMemory& memory) {
  const void* const data = tensor.const_data_ptr();
  if (data == planned_at) return true;
  for (const auto& result : memory.results) {
    if (result.at == data) return false;  // the result lies at the address of another one
  }
  std::memcpy(planned_at, data, bytes);
  return true;
}

int run_flash(const PiperCall& request, PlannedMemory& memory, LibraryReport* report) {
  const PiperAttend& call = request.shape->of.attend;
  const void *const q = request.in[0], *const k = request.in[1], *const v = request.in[2];
  void *const out = request.out[0], *const lse = request.out[1];
  const at::Tensor query = heads_view(q, call.batch, call.seq, call.heads, call.width, call.dtype);
  const at::Tensor key = heads_view(k, call.batch, call.keys, call.heads, call.width, call.dtype);
  const at::Tensor value = heads_view(v, call.batch, call.keys, call.heads, call.width, call.dtype);
  const std::uint64_t out_bytes = static_cast<std::uint64_t>(query.nbytes());
  const std::uint64_t lse_bytes =
      static_cast<std::uint64_t>(call.batch * call.heads * call.seq) * sizeof(float);
  memory.results = {{{out, out_bytes}, {}, {}}};
  const PlannedScope scope(memory);
  const auto [result, sums] = at::_ops::_scaled_dot_product_flash_attention_for_cpu::call(
      query, key, value, 0.0, call.causal != 0, std::nullopt, call.scale);
  if (!result.transpose(1, 2).is_contiguous())
    return refuse(report, "LibTorch gave attention in an unknown layout");
  if (!settle(result, out, out_bytes, memory))
    return refuse(report, "LibTorch moved the result of attention");
  // [batch][heads][seq]; LibTorch keeps them as [batch][seq][heads].
  const float* const from = sums.const_data_ptr<float>();
  float* const to = static_cast<float*>(lse);
  if (sums.is_contiguous()) {
    std::memcpy(to, from, lse_bytes);
    return kLibraryDone;
  }
  const std::int64_t b_stride = sums.stride(0), h_stride = sums.stride(1),
                     s_stride = sums.stride(2);
  for (std::int64_t b = 0; b < call.batch; ++b) {
    for (std::int64_t h = 0; h < call.heads; ++h) {
      for (std::int64_t s = 0; s < call.seq; ++s)
        to[(b * call.heads + h) * call.seq + s] = from[b * b_stride + h * h_stride + s * s_stride];
    }
  }
  return kLibraryDone;
}

int run_flash_grad(const PiperCall& request, PlannedMemory& memory, LibraryReport* report) {
  const PiperAttend& call = request.shape->of.attend;
  const void *const q = request.in[0], *const k = request.in[1], *const v = request.in[2];
  const void *const out = request.in[3], *const lse = request.in[4], *const dout = request.in[5];
  void *const dq = request.out[0], *const dk = request.out[1], *const dv = request.out[2];
  const at::Tensor query = heads_view(q, call.batch, call.seq, call.heads, call.width, call.dtype);
  const at::Tensor key = heads_view(k, call.batch, call.keys, call.heads, call.width, call.dtype);
  const at::Tensor value = heads_view(v, call.batch, call.keys, call.heads, call.width, call.dtype);
  const at::Tensor result =
      heads_view(out, call.batch, call.seq, call.heads, call.width, call.dtype);
  const at::Tensor change =
      heads_view(dout, call.batch, call.seq, call.heads, call.width, call.dtype);
  const at::Tensor sums = view(lse, {call.batch, call.heads, call.seq},
                               {call.heads * call.seq, call.seq, 1}, call.dtype);
  const std::uint64_t query_bytes = static_cast<std::uint64_t>(query.nbytes()),
                      key_bytes = static_cast<std::uint64_t>(key.nbytes());
  memory.results = {{{dq, query_bytes}, {dk, key_bytes}, {dv, key_bytes}}};
  const PlannedScope scope(memory);
  const auto [grad_query, grad_key, grad_value] =
      at::_ops::_scaled_dot_product_flash_attention_for_cpu_backward::call(
          change, query, key, value, result, sums, 0.0, call.causal != 0, std::nullopt, call.scale);
  for (const at::Tensor* tensor : {&grad_query, &grad_key, &grad_value}) {
    if (!tensor->transpose(1, 2).is_contiguous())
      return refuse(report, "LibTorch gave a gradient of attention in an unknown layout");
  }
  if (!settle(grad_query, dq, query_bytes, memory) || !settle(grad_key, dk, key_bytes, memory) ||
      !settle(grad_value, dv, key_bytes, memory)) {
    return refuse(report, "LibTorch moved a gradient of attention");
  }
  return kLibraryDone;
}

// The explicit form, one (batch, head) after the other. Matrices are row-major with a row stride.
template <typename T>
struct Written {
  const PiperCall& request;
  const PiperAttend& call = request.shape->of.attend;

  struct Matrix {
    const void* data;
    std::int64_t rows, columns, stride;
  };
  at::Tensor tensor(const Matrix& m) const {
    return view(m.data, {m.rows, m.columns}, {m.stride, 1}, call.dtype);
  }
  void multiply(const Matrix& a, bool transpose_a, const Matrix& b, bool transpose_b,
                const Matrix& c, bool accumulate) const {
    at::Tensor left = tensor(a), right = tensor(b), out = tensor(c);
    if (transpose_a) left = left.t();
    if (transpose_b) right = right.t();
    at::_ops::addmm_out::call(out, left, right, accumulate ? 1 : 0, 1, out);
  }
  Matrix queries(const void* q, std::int64_t b, std::int64_t h, std::int64_t width) const {
    return {static_cast<const T*>(q) + (b * call.seq * call.heads + h) * width, call.seq, width,
            call.heads * width};
  }
  Matrix keys(const void* k, std::int64_t b, std::int64_t h, std::int64_t width) const {
    const std::int64_t group = h / (call.heads / call.kv_heads);
    return {static_cast<const T*>(k) + (b * call.keys * call.kv_heads + group) * width, call.keys,
            width, call.kv_heads * width};
  }
  std::int64_t end(std::int64_t s) const {
    return call.causal ? std::clamp<std::int64_t>(s + 1 + call.keys - call.seq, 0, call.keys)
                       : call.keys;
  }

  void forward(T* scores) const {
    const void *const q = request.in[0], *const k = request.in[1], *const v = request.in[2];
    void* const out = request.out[0];
    T* const lse = static_cast<T*>(request.out[1]);
    const Matrix weights{scores, call.seq, call.keys, call.keys};
    for (std::int64_t b = 0; b < call.batch; ++b) {
      for (std::int64_t h = 0; h < call.heads; ++h) {
        multiply(queries(q, b, h, call.width), false, keys(k, b, h, call.width), true, weights,
                 false);
        for (std::int64_t s = 0; s < call.seq; ++s) {
          T* const row = scores + s * call.keys;
          const std::int64_t seen = end(s);
          T largest = -std::numeric_limits<T>::infinity();
          for (std::int64_t t = 0; t < seen; ++t) {
            row[t] *= static_cast<T>(call.scale);
            largest = std::max(largest, row[t]);
          }
          T sum = 0;
          for (std::int64_t t = 0; t < seen; ++t) sum += row[t] = std::exp(row[t] - largest);
          for (std::int64_t t = 0; t < seen; ++t) row[t] /= sum;
          std::fill(row + seen, row + call.keys, T(0));
          lse[(b * call.heads + h) * call.seq + s] = largest + std::log(sum);
        }
        multiply(weights, false, keys(v, b, h, call.value_width), false,
                 queries(out, b, h, call.value_width), false);
      }
    }
  }

  void backward(T* scores) const {
    const void *const q = request.in[0], *const k = request.in[1], *const v = request.in[2];
    const void *const out = request.in[3], *const dout = request.in[5];
    const T* const lse = static_cast<const T*>(request.in[4]);
    void *const dq = request.out[0], *const dk = request.out[1], *const dv = request.out[2];
    T* const changes = scores + call.seq * call.keys;
    const Matrix weights{scores, call.seq, call.keys, call.keys},
        gradient{changes, call.seq, call.keys, call.keys};
    const std::int64_t group = call.heads / call.kv_heads;
    for (std::int64_t b = 0; b < call.batch; ++b) {
      for (std::int64_t h = 0; h < call.heads; ++h) {
        const Matrix query = queries(q, b, h, call.width), key = keys(k, b, h, call.width);
        const Matrix result = queries(out, b, h, call.value_width),
                     change = queries(dout, b, h, call.value_width);
        // The first of several query heads on one key head writes, later ones add.
        const bool later = h % group != 0;
        multiply(query, false, key, true, weights, false);
        for (std::int64_t s = 0; s < call.seq; ++s) {
          T* const row = scores + s * call.keys;
          const std::int64_t seen = end(s);
          const T total = lse[(b * call.heads + h) * call.seq + s];
          for (std::int64_t t = 0; t < seen; ++t)
            row[t] = std::exp(row[t] * static_cast<T>(call.scale) - total);
          std::fill(row + seen, row + call.keys, T(0));
        }
        multiply(weights, true, change, false, keys(dv, b, h, call.value_width), later);
        multiply(change, false, keys(v, b, h, call.value_width), true, gradient, false);
        for (std::int64_t s = 0; s < call.seq; ++s) {
          const T* const left = static_cast<const T*>(result.data) + s * result.stride;
          const T* const right = static_cast<const T*>(change.data) + s * change.stride;
          T inner = 0;
          for (std::int64_t i = 0; i < call.value_width; ++i) inner += left[i] * right[i];
          for (std::int64_t t = 0; t < call.keys; ++t) {
            T& x = changes[s * call.keys + t];
            x = scores[s * call.keys + t] * (x - inner) * static_cast<T>(call.scale);
          }
        }
        multiply(gradient, false, key, false, queries(dq, b, h, call.width), false);
        multiply(gradient, true, query, false, keys(dk, b, h, call.width), later);
      }
    }
  }
};

// Takes `count` values for the scores of the explicit form.
template <typename T>
T* scores_of(PlannedMemory& memory, std::int64_t count) {
  return static_cast<T*>(memory.take(static_cast<std::uint64_t>(count) * sizeof(T)));
}

template <typename Body>
int guarded(PlannedMemory& memory, LibraryReport* report, const Body& body) {
  try {
    return body();
  } catch (const Overrun&) {
  } catch (const std::bad_alloc&) {
    return refuse(report, "LibTorch found no memory for attention");
  } catch (const std::exception&) {
    if (memory.missing == 0) return refuse(report, "LibTorch refused an attention");
  }
  report->value = static_cast<std::int64_t>(memory.missing);
  return kLibraryOverrun;
}

constexpr const char* kAttendedTypes = "LibTorch's attention takes f32, f64 and bf16";

int attend_call(const PiperCall& call, LibraryReport* report) {
  const PiperAttend& of = call.shape->of.attend;
  if (of.dtype == PIPER_BF16) return attend_widened(attend_call, call, report);
  if (of.dtype != PIPER_F32 && of.dtype != PIPER_F64)
    return refuse(report, kAttendedTypes, of.dtype);
  PlannedMemory memory{.next = static_cast<unsigned char*>(call.workspace),
                       .left = call.workspace_bytes};
  return guarded(memory, report, [&] {
    if (has_flash(of)) return run_flash(call, memory, report);
    const std::int64_t scores = of.seq * of.keys;
    if (of.dtype == PIPER_F64) {
      Written<double>{call}.forward(scores_of<double>(memory, scores));
    } else {
      Written<float>{call}.forward(scores_of<float>(memory, scores));
    }
    return static_cast<int>(kLibraryDone);
  });
}

int attend_grad_call(const PiperCall& call, LibraryReport* report) {
  const PiperAttend& of = call.shape->of.attend;
  if (of.dtype == PIPER_BF16) return attend_grad_widened(attend_grad_call, call, report);
  if (of.dtype != PIPER_F32 && of.dtype != PIPER_F64)
    return refuse(report, kAttendedTypes, of.dtype);
  PlannedMemory memory{.next = static_cast<unsigned char*>(call.workspace),
                       .left = call.workspace_bytes};
  return guarded(memory, report, [&] {
    if (has_flash(of)) return run_flash_grad(call, memory, report);
    const std::int64_t scores = 2 * of.seq * of.keys;
    if (of.dtype == PIPER_F64) {
      Written<double>{call}.backward(scores_of<double>(memory, scores));
    } else {
      Written<float>{call}.backward(scores_of<float>(memory, scores));
    }
    return static_cast<int>(kLibraryDone);
  });
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
                                 .name = "LibTorch",
                                 .choose = choose,
                                 .begin_thread = begin_thread,
                                 .call = library_call,
                                 .skip_destructors = 1};

}  // namespace

extern "C" __attribute__((visibility("default"))) const LibraryCalls* piper_library_calls() {
  static PlannedAllocator allocator(c10::GetCPUAllocator());
  static const bool installed = (c10::SetCPUAllocator(&allocator, 1), true);
  return installed ? &kCalls : nullptr;
}

}  // namespace piper::runtime
