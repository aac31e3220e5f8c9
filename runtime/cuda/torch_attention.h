#pragma once
// Attention of LibTorch on a GPU: a table of C functions of the plugin with LibTorch. libtorch_cuda is opened at run time and only registers kernels with the libtorch_cpu that the
// plugin is built with; the plugin needs no header of CUDA.
//
// Guarantees: a call enqueues on the stream and returns; results lie where they were asked for; what LibTorch allocates meanwhile comes from the workspace of the call, in the order
// that backend/cuda/attention.h counts, or the call fails; the order of additions is one (deterministic algorithms), but for flash attention's gradient where that was not asked for; no random numbers, nothing saved but out and lse. A stream that is
// captured is no different.
//
//   std::string reason;
//   const TorchAttention* const torch = open_torch_attention({.plugin = ..., .library = ".../torch/lib/libtorch_cuda.so", .version = "2.11.0+cu130", .gpu = 0}, true, reason);

#include <cstdint>
#include <string>

#include "runtime/abi.h"

namespace piper::runtime::cuda {

inline constexpr std::uint32_t kTorchAttentionVersion = 2;

struct TorchAttention {
  std::uint32_t version;
  /// Before anything else of LibTorch's CUDA; later calls change `deterministic` alone. `library_version`: what its folder says. Null, or why not (until the next call).
  const char* (*open)(const char* library, const char* library_version, int gpu, int deterministic);
  /// kSuccess, kAttentionRefused or kAttentionOverrun (driver.h).
  int (*attend)(void* stream, const PiperAttend* call, const void* q, const void* k, const void* v, void* out, void* lse, void* workspace, std::uint64_t workspace_bytes);
  int (*attend_grad)(void* stream, const PiperAttend* call, const void* q, const void* k, const void* v, const void* out, const void* lse, const void* dout, void* dq, void* dk, void* dv,
                     void* workspace, std::uint64_t workspace_bytes);
  /// Of the last call that failed.
  const char* (*error)();
};

/// The name of the plugin's entry: `const TorchAttention* piper_torch_attention()`.
inline constexpr const char* kTorchAttentionEntry = "piper_torch_attention";

struct TorchChoice {
  std::string plugin;       // the file of the plugin with LibTorch
  std::string library;      // the file of libtorch_cuda; empty: there is none
  std::string version;      // what its folder says
  std::string no_library;   // where there is none: why
  int gpu = 0;
};

/// Null, and why. For good: memory of LibTorch's CUDA then comes from calls alone.
const TorchAttention* open_torch_attention(const TorchChoice& choice, bool deterministic, std::string& reason);

}  // namespace piper::runtime::cuda
