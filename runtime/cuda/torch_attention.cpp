// A part of the plugin with LibTorch: its attention on a GPU.
#include "runtime/cuda/torch_attention.h"

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_efficient_attention_backward_ops.h>
#include <ATen/ops/_efficient_attention_forward_ops.h>
#include <ATen/ops/_flash_attention_backward_ops.h>
#include <ATen/ops/_flash_attention_forward_ops.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/StreamGuard.h>
#include <torch/headeronly/version.h>

#include <exception>
#include <functional>
#include <memory>
#include <string_view>

#include "runtime/cuda/driver.h"
#include "runtime/device/planned_memory.h"
#include "runtime/device/scalar_type.h"
#include "runtime/device_abi.h"
#include "runtime/shared_library.h"

struct CUstream_st;

namespace piper::runtime::cuda {

namespace {

// ---- memory

thread_local PlannedMemory* planned = nullptr;

// Throws through LibTorch, which undoes its partial work.
void* take(std::size_t bytes, int, CUstream_st*) {
  if (bytes == 0) return nullptr;
  if (planned == nullptr) throw std::bad_alloc();
  return planned->take(bytes);
}
void keep(void*, std::size_t, int, CUstream_st*) {}

// torch::cuda::CUDAPluggableAllocator, whose header needs CUDA's headers; the names contain the
// types.
using Taking = std::function<void*(std::size_t, int, CUstream_st*)>;
using Keeping = std::function<void(void*, std::size_t, int, CUstream_st*)>;
// of c10::cuda::CUDACachingAllocator::CUDAAllocator; only handed on
using Allocator = std::shared_ptr<void>;
constexpr const char* kCreate =
    "_ZN5torch4cuda22CUDAPluggableAllocator21createCustomAllocatorESt8functionIFPvmiP11CUstream_stEES2_IFvS3_miS5_EE";
constexpr const char* kChange =
    "_ZN5torch4cuda22CUDAPluggableAllocator22changeCurrentAllocatorERKSt10shared_ptrIN3c104cuda20CUDACachingAllocator13CUDAAllocatorEE";

class PlannedScope {
 public:
  explicit PlannedScope(PlannedMemory& memory) { planned = &memory; }
  ~PlannedScope() { planned = nullptr; }
};

// ---- opening

thread_local std::string last_error;
int gpu = 0;

const char* refuse(std::string why) {
  last_error = std::move(why);
  return last_error.c_str();
}

const char* missing_kernel() {
  for (const char* name :
       {"aten::_flash_attention_forward", "aten::_flash_attention_backward",
        "aten::_efficient_attention_forward", "aten::_efficient_attention_backward"}) {
    const auto schema = c10::Dispatcher::singleton().findSchema({name, ""});
    if (!schema || !schema->hasKernelForDispatchKey(c10::DispatchKey::CUDA)) return name;
  }
  return nullptr;
}

#define PIPER_TEXT_OF(x) #x
#define PIPER_TEXT(x) PIPER_TEXT_OF(x)
constexpr std::string_view kVersion = PIPER_TEXT(TORCH_VERSION_MAJOR) "." PIPER_TEXT(
    TORCH_VERSION_MINOR) "." PIPER_TEXT(TORCH_VERSION_PATCH);

/// Makes gradients of attention add in one order. Uninitialised memory need not be filled for that.
void set_deterministic(bool deterministic) {
  at::globalContext().setDeterministicAlgorithms(deterministic, false);
  at::globalContext().setDeterministicFillUninitializedMemory(false);
}

const char* open(const char* library, const char* version, int chosen, int deterministic) {
  static bool opened = false;
  gpu = chosen;
  if (opened) {
    set_deterministic(deterministic != 0);
    return nullptr;
  }
  const std::string file = "`" + std::string(library) + "`", said = version;
  // Sizes of workspaces, and the declarations here, are those of one version.
  if (said.substr(0, said.find('+')) != kVersion) {
    return refuse(file + " is of PyTorch " + (said.empty() ? "an unknown version" : said) +
                  ", and piper is built for " + std::string(kVersion));
  }
  std::string reason;
  void* const handle = open_shared_library(library, RTLD_NOW | RTLD_LOCAL, reason);
  if (handle == nullptr) return refuse(reason);
  Allocator (*create)(Taking, Keeping) = nullptr;
  void (*change)(const Allocator&) = nullptr;
  LibraryFunctions functions(handle);
  functions.get(create, kCreate);
  functions.get(change, kChange);
  if (functions.missing() != nullptr) return refuse(file + " has no `" + functions.missing() + "`");
  if (const char* const lacking = missing_kernel())
    return refuse(file + " has no kernel of `" + lacking + "`");
  try {
    static const Allocator allocator = create(take, keep);
    change(allocator);
    set_deterministic(deterministic != 0);
  } catch (const std::exception& error) {
    const std::string text = error.what();
    return refuse(file + " takes no memory of piper's: " + text.substr(0, text.find('\n')));
  }
  opened = true;
  return nullptr;
}

// ---- calls

c10::Device device() { return {c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(gpu)}; }

at::Tensor dense(const void* data, at::IntArrayRef sizes, c10::ScalarType type) {
  return at::for_blob(const_cast<void*>(data), sizes)
      .options(at::TensorOptions().dtype(type).device(device()))
      .target_device(device())
      .make_tensor();
}

/// [batch][positions][heads][width], which is also the layout of LibTorch's kernels.
struct Operands {
  const PiperAttend& call;
  at::Tensor queries(const void* data, std::int64_t width) const {
    return dense(data, {call.batch, call.seq, call.heads, width}, scalar_type(call.dtype));
  }
  at::Tensor keys(const void* data, std::int64_t width) const {
    return dense(data, {call.batch, call.keys, call.kv_heads, width}, scalar_type(call.dtype));
  }
  at::Tensor log_sums(const void* data) const {
    return dense(data, {call.batch, call.heads, call.seq}, c10::ScalarType::Float);
  }
};

std::uint64_t bytes_of(const at::Tensor& tensor) {
  return static_cast<std::uint64_t>(tensor.nbytes());
}

/// Whether the result lies at the planned address, densely.
bool lies_at(const at::Tensor& tensor, const at::Tensor& planned_one) {
  return tensor.const_data_ptr() == planned_one.const_data_ptr() && tensor.is_contiguous() &&
         tensor.sizes() == planned_one.sizes() && tensor.dtype() == planned_one.dtype();
}

/// sdp::CustomMaskType: none, or from the corner of the last query and key.
std::int64_t mask_of(const PiperAttend& call) {
  constexpr std::int64_t kNone = 0, kCausalFromBottomRight = 2;
  return call.causal != 0 ? kCausalFromBottomRight : kNone;
}

template <typename Body>
int on_stream(void* stream, void* workspace, std::uint64_t bytes, const Body& body) {
  PlannedMemory memory{.next = static_cast<unsigned char*>(workspace),
                       .left = bytes,
                       .alignment = PIPER_WORKSPACE_ALIGNMENT};
  try {
    const c10::InferenceMode inference;
    // LibTorch numbers a stream that it did not make by its address.
    const c10::StreamGuard on(
        c10::Stream(c10::Stream::UNSAFE, device(), reinterpret_cast<c10::StreamId>(stream)));
    const PlannedScope scope(memory);
    if (body(memory)) return kSuccess;
    refuse("LibTorch moved the result of an attention");
    return kAttentionRefused;
  } catch (const std::exception& error) {
    if (memory.missing > 0) {
      refuse("a library call wanted `" + std::to_string(memory.missing) +
             "` bytes more than its planned workspace");
      return kAttentionOverrun;
    }
    const std::string text = error.what();
    refuse("LibTorch refused an attention: " + text.substr(0, text.find('\n')));
    return kAttentionRefused;
  }
}

int attend(void* stream, const PiperCall& call) {
  return on_stream(stream, call.workspace, call.workspace_bytes, [&](PlannedMemory& memory) {
    const PiperAttend& sizes = call.shape->of.attend;
    const Operands of{sizes};
    const at::Tensor query = of.queries(call.in[0], sizes.width),
                     key = of.keys(call.in[1], sizes.width),
                     value = of.keys(call.in[2], sizes.value_width);
    void *const out = call.out[0], *const lse = call.out[1];
    const at::Tensor result = of.queries(out, sizes.value_width), sums = of.log_sums(lse);
    memory.results = {{{out, bytes_of(result)}, {lse, bytes_of(sums)}, {}}};
    if (sizes.form == PIPER_ATTEND_FLASH) {
      const auto given = at::_ops::_flash_attention_forward::call(
          query, key, value, std::nullopt, std::nullopt, sizes.seq, sizes.keys, 0.0,
          sizes.causal != 0, false, sizes.scale, std::nullopt, std::nullopt, std::nullopt,
          std::nullopt);
      return lies_at(std::get<0>(given), result) && lies_at(std::get<1>(given), sums);
    }
    const auto given = at::_ops::_efficient_attention_forward::call(
        query, key, value, std::nullopt, std::nullopt, std::nullopt, std::nullopt, std::nullopt,
        0.0, mask_of(sizes), true, sizes.scale, std::nullopt, std::nullopt);
    return lies_at(std::get<0>(given), result) && lies_at(std::get<1>(given), sums);
  });
}

int attend_grad(void* stream, const PiperCall& call) {
  return on_stream(stream, call.workspace, call.workspace_bytes, [&](PlannedMemory& memory) {
    const PiperAttend& sizes = call.shape->of.attend;
    const Operands of{sizes};
    const void* const* const in = call.in;
    const at::Tensor query = of.queries(in[0], sizes.width), key = of.keys(in[1], sizes.width),
                     value = of.keys(in[2], sizes.value_width);
    const at::Tensor result = of.queries(in[3], sizes.value_width), sums = of.log_sums(in[4]),
                     change = of.queries(in[5], sizes.value_width);
    void *const dq = call.out[0], *const dk = call.out[1], *const dv = call.out[2];
    const at::Tensor of_query = of.queries(dq, sizes.width), of_key = of.keys(dk, sizes.width),
                     of_value = of.keys(dv, sizes.value_width);
    memory.results = {{{dq, bytes_of(of_query)}, {dk, bytes_of(of_key)}, {dv, bytes_of(of_value)}}};
    // Without dropout the random state is not read.
    const at::Tensor none;
    if (sizes.form == PIPER_ATTEND_FLASH) {
      const auto given = at::_ops::_flash_attention_backward::call(
          change, query, key, value, result, sums, none, none, sizes.seq, sizes.keys, 0.0,
          sizes.causal != 0, none, none, sizes.scale, std::nullopt, std::nullopt);
      return lies_at(std::get<0>(given), of_query) && lies_at(std::get<1>(given), of_key) &&
             lies_at(std::get<2>(given), of_value);
    }
    // Split keys have more blocks, and add gradients of queries in any order. LibTorch chooses how
    // often unless they are to be added in one; the workspace is the same.
    const auto splits = at::globalContext().deterministicAlgorithms()
                            ? std::optional<std::int64_t>(1)
                            : std::nullopt;
    const auto given = at::_ops::_efficient_attention_backward::call(
        change, query, key, value, std::nullopt, result, std::nullopt, std::nullopt, sizes.seq,
        sizes.keys, sums, 0.0, none, none, mask_of(sizes), false, sizes.scale, splits, std::nullopt,
        false);
    return lies_at(std::get<0>(given), of_query) && lies_at(std::get<1>(given), of_key) &&
           lies_at(std::get<2>(given), of_value);
  });
}

int library_call(void* stream, const PiperCall* call) {
  switch (static_cast<PiperCallKind>(call->shape->kind)) {
    case PIPER_CALL_GEMM: break;
    case PIPER_CALL_ATTEND: return attend(stream, *call);
    case PIPER_CALL_ATTEND_GRAD: return attend_grad(stream, *call);
  }
  refuse("the call is no attention");
  return kAttentionRefused;
}

const char* error() { return last_error.c_str(); }

constexpr TorchAttention kTorchAttention = {
    .version = kTorchAttentionVersion, .open = open, .call = library_call, .error = error};

}  // namespace

extern "C" __attribute__((visibility("default"))) const TorchAttention* piper_torch_attention() {
  return &kTorchAttention;
}

}  // namespace piper::runtime::cuda
