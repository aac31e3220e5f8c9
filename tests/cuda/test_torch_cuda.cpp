// A libtorch_cuda.so for tests: memory of the host under the name of CUDA. It allocates in the
// order of LibTorch 2.11's kernels, from the allocator that it was given, writes all of that, and
// computes with the loops of the runtime.

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/device/library_calls.h"
#include "tests/cuda/test_torch_cuda.h"
#include "tests/support/test_call.h"

struct CUstream_st;

// ---- the allocator

namespace c10::cuda::CUDACachingAllocator {
struct CUDAAllocator {
  std::function<void*(std::size_t, int, CUstream_st*)> take;
  std::function<void(void*, std::size_t, int, CUstream_st*)> keep;
};
}  // namespace c10::cuda::CUDACachingAllocator

using c10::cuda::CUDACachingAllocator::CUDAAllocator;

namespace {

std::shared_ptr<CUDAAllocator> allocator;
piper::test::TorchCudaCalls calls;
c10::Stream current(c10::Stream::DEFAULT, c10::Device(c10::DeviceType::CUDA, 0));

}  // namespace

namespace torch::cuda::CUDAPluggableAllocator {

__attribute__((visibility("default"))) std::shared_ptr<CUDAAllocator> createCustomAllocator(
    std::function<void*(std::size_t, int, CUstream_st*)> take,
    std::function<void(void*, std::size_t, int, CUstream_st*)> keep) {
  return std::make_shared<CUDAAllocator>(CUDAAllocator{std::move(take), std::move(keep)});
}
__attribute__((visibility("default"))) void changeCurrentAllocator(
    const std::shared_ptr<CUDAAllocator>& chosen) {
  allocator = chosen;
}

}  // namespace torch::cuda::CUDAPluggableAllocator

extern "C" __attribute__((visibility("default"))) const piper::test::TorchCudaCalls*
test_torch_cuda_calls() {
  return &calls;
}

namespace {

// ---- device and stream

struct HostGuard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::DeviceType::CUDA; }
  c10::Device exchangeDevice(c10::Device) const override { return getDevice(); }
  c10::Device getDevice() const override { return {c10::DeviceType::CUDA, 0}; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override { return current; }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return std::exchange(current, stream);
  }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
};
const c10::impl::DeviceGuardImplRegistrar guard(c10::DeviceType::CUDA, new HostGuard);

// ---- tensors

at::Tensor empty(at::IntArrayRef sizes, c10::ScalarType type) {
  std::int64_t elements = 1;
  for (const std::int64_t size : sizes) elements *= size;
  const std::size_t bytes = static_cast<std::size_t>(elements) * c10::elementSize(type);
  void* const at = allocator->take(bytes, 0, nullptr);
  if (bytes > 0) std::memset(at, 0x7E, bytes);
  const c10::Device device(c10::DeviceType::CUDA, 0);
  return at::for_blob(at, sizes)
      .options(at::TensorOptions().dtype(type).device(device))
      .target_device(device)
      .make_tensor();
}
constexpr auto kFloat = c10::ScalarType::Float;
std::int64_t rounded(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

PiperAttend call_of(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal,
                    std::optional<double> scale) {
  calls.stream = current.id();
  calls.deterministic = at::globalContext().deterministicAlgorithms() &&
                        !at::globalContext().deterministicAlgorithmsWarnOnly() &&
                        !at::globalContext().deterministicFillUninitializedMemory();
  TORCH_CHECK(q.is_cuda() && q.is_contiguous() && k.is_contiguous() && v.is_contiguous() &&
                  scale.has_value(),
              "operands are dense");
  return {.batch = q.size(0),
          .seq = q.size(1),
          .keys = k.size(1),
          .heads = q.size(2),
          .kv_heads = k.size(2),
          .width = q.size(3),
          .value_width = v.size(3),
          .scale = *scale,
          .causal = causal ? 1u : 0u,
          .dtype = q.scalar_type() == kFloat ? static_cast<std::uint32_t>(PIPER_F32)
                                             : static_cast<std::uint32_t>(PIPER_BF16),
          .form = 0};
}

void compute(const PiperAttend& call, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
             const at::Tensor& out, const at::Tensor& lse) {
  std::vector<unsigned char> own(piper_attend_workspace(&call));
  piper::runtime::LibraryReport report;
  const int status =
      piper::test::call(piper::runtime::builtin_library_calls(),
                        {call,
                         {q.const_data_ptr(), k.const_data_ptr(), v.const_data_ptr()},
                         {out.mutable_data_ptr(), lse.mutable_data_ptr()},
                         own.data(),
                         own.size()},
                        &report);
  TORCH_CHECK(status == piper::runtime::kLibraryDone, "the loops refuse");
}

void compute_grad(const PiperAttend& call, const at::Tensor& q, const at::Tensor& k,
                  const at::Tensor& v, const at::Tensor& out, const at::Tensor& lse,
                  const at::Tensor& dout, const at::Tensor& dq, const at::Tensor& dk,
                  const at::Tensor& dv) {
  std::vector<unsigned char> own(piper_attend_workspace(&call));
  piper::runtime::LibraryReport report;
  const int status =
      piper::test::call(piper::runtime::builtin_library_calls(),
                        {call,
                         {q.const_data_ptr(), k.const_data_ptr(), v.const_data_ptr(),
                          out.const_data_ptr(), lse.const_data_ptr(), dout.const_data_ptr()},
                         {dq.mutable_data_ptr(), dk.mutable_data_ptr(), dv.mutable_data_ptr()},
                         own.data(),
                         own.size()},
                        &report);
  TORCH_CHECK(status == piper::runtime::kLibraryDone, "the loops refuse");
}

// ---- kernels

using Optional = std::optional<at::Tensor>;
using Window = std::optional<c10::SymInt>;

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> flash(
    const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Optional& cumulative_q,
    const Optional&, c10::SymInt, c10::SymInt, double dropout, bool causal, bool,
    std::optional<double> scale, Window, Window, const Optional&, const Optional&) {
  const PiperAttend call = call_of(q, k, v, causal, scale);
  TORCH_CHECK(!cumulative_q && dropout == 0 && call.dtype == PIPER_BF16, "dense, bf16");
  at::Tensor out = empty(q.sizes(), q.scalar_type());
  at::Tensor lse = empty({call.batch, call.heads, call.seq}, kFloat);
  at::Tensor state = empty({2}, c10::ScalarType::UInt64),
             unused = empty({}, c10::ScalarType::UInt64), mask = empty({0}, q.scalar_type());
  compute(call, q, k, v, out, lse);
  return {out, lse, state, unused, mask};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> flash_grad(
    const at::Tensor& dout, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
    const at::Tensor& out, const at::Tensor& lse, const at::Tensor& cumulative_q, const at::Tensor&,
    c10::SymInt, c10::SymInt, double, bool causal, const at::Tensor&, const at::Tensor&,
    std::optional<double> scale, Window, Window) {
  const PiperAttend call = call_of(q, k, v, causal, scale);
  TORCH_CHECK(!cumulative_q.defined() && call.dtype == PIPER_BF16, "dense, bf16");
  const std::int64_t queries = rounded(call.seq, 128),
                     width = rounded(call.width, call.width <= 128 ? 32 : 64),
                     blocks = call.batch * call.heads;
  at::Tensor dq = empty(q.sizes(), q.scalar_type()), dk = empty(k.sizes(), k.scalar_type()),
             dv = empty(v.sizes(), v.scalar_type());
  const at::Tensor sums = empty({call.batch, call.heads, queries}, kFloat);
  const at::Tensor parts =
      empty({calls.deterministic ? (piper::test::kTestProcessors + blocks - 1) / blocks : 1,
             call.batch, queries, call.heads, width},
            kFloat);
  at::Tensor wide_dk, wide_dv;
  if (call.heads != call.kv_heads) {
    wide_dk = empty({call.batch, call.keys, call.heads, call.width}, k.scalar_type());
    wide_dv = empty({call.batch, call.keys, call.heads, call.width}, v.scalar_type());
  }
  compute_grad(call, q, k, v, out, lse, dout, dq, dk, dv);
  return {dq, dk, dv};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt> efficient(
    const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Optional&, const Optional&,
    const Optional&, Window, Window, double, std::int64_t mask, bool with_lse,
    std::optional<double> scale, const Optional&, std::optional<std::int64_t>) {
  const PiperAttend call = call_of(q, k, v, mask == 2, scale);
  TORCH_CHECK(with_lse && (mask == 0 || mask == 2) && call.heads == call.kv_heads, "equal heads");
  at::Tensor out = empty({call.batch, call.seq, call.heads, call.value_width}, q.scalar_type());
  at::Tensor lse = empty({call.batch, call.heads, rounded(call.seq, 32)}, kFloat);
  at::Tensor seed = empty({}, c10::ScalarType::Long), offset = empty({}, c10::ScalarType::Long);
  compute(call, q, k, v, out, lse);
  return {out, lse, seed, offset, call.seq, call.keys};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> efficient_grad(
    const at::Tensor& dout, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
    const Optional&, const at::Tensor& out, const Optional&, const Optional&, c10::SymInt,
    c10::SymInt, const at::Tensor& lse, double, const at::Tensor&, const at::Tensor&,
    std::int64_t mask, bool, std::optional<double> scale, std::optional<std::int64_t> splits,
    std::optional<std::int64_t>, bool) {
  const PiperAttend call = call_of(q, k, v, mask == 2, scale);
  calls.splits = splits.value_or(0);
  at::Tensor dq = empty(q.sizes(), kFloat), dk = empty(k.sizes(), kFloat),
             dv = empty(v.sizes(), kFloat);
  const at::Tensor products = empty(out.sizes(), kFloat),
                   sums = empty({call.batch, call.seq, call.heads}, kFloat),
                   delta = empty({call.batch, call.heads, call.seq}, kFloat);
  const std::int64_t tiles =
      call.batch * call.heads * ((call.seq + 63) / 64) * ((call.width + 63) / 64);
  const at::Tensor workspace = empty({tiles * (16 + 64 * 64 * 4)}, c10::ScalarType::Byte);
  compute_grad(call, q, k, v, out, lse, dout, dq, dk, dv);
  return {dq, dk, dv, at::Tensor()};
}

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("_flash_attention_forward", flash);
  library.impl("_flash_attention_backward", flash_grad);
  library.impl("_efficient_attention_forward", efficient);
  library.impl("_efficient_attention_backward", efficient_grad);
}

}  // namespace
