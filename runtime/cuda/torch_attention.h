#pragma once
// Attention of LibTorch on a GPU: a table of C functions of the plugin with LibTorch. libtorch_cuda
// is opened at run time and only registers kernels with the libtorch_cpu that the plugin is built
// with; the plugin needs no header of CUDA.
//
// Guarantees: a call enqueues on the stream and returns; results lie at the requested addresses;
// LibTorch's other allocations come from the workspace of the call, in the order that
// backend/cuda/attention.h counts, or the call fails; additions have one order (deterministic
// algorithms), except for gradients if that was not asked for; no random numbers
// are drawn, and nothing is saved except out and lse. A captured stream works like any other.
//
//   std::string reason;
//   const TorchAttention* const torch = open_torch_attention({.plugin = ..., .library = ".../torch/lib/libtorch_cuda.so", .version = "2.11.0+cu130", .gpu = 0}, true, reason);

#include <cstdint>
#include <string>

#include "runtime/abi.h"

namespace piper::runtime::cuda {

inline constexpr std::uint32_t kTorchAttentionVersion = 3;

struct TorchAttention {
  std::uint32_t version;
  /// Called before all else of LibTorch's CUDA; later calls change `deterministic` alone.
  /// `library_version`: from its folder. Null, or the reason of a failure (valid until the next
  /// call).
  const char* (*open)(const char* library, const char* library_version, int gpu, int deterministic);
  /// An attention or its gradient. kSuccess, kAttentionRefused or kAttentionOverrun (driver.h).
  int (*call)(void* stream, const PiperCall* call);
  /// The text of the last call that failed.
  const char* (*error)();
};

/// The name of the plugin's entry: `const TorchAttention* piper_torch_attention()`.
inline constexpr const char* kTorchAttentionEntry = "piper_torch_attention";

struct TorchChoice {
  std::string plugin;      // the file of the plugin with LibTorch
  std::string library;     // the file of libtorch_cuda; empty: there is none
  std::string version;     // from its folder
  std::string no_library;  // the reason if there is none
  int gpu = 0;
};

/// Null, with the reason. The effect lasts: memory of LibTorch's CUDA then comes only from calls.
const TorchAttention* open_torch_attention(const TorchChoice& choice, bool deterministic,
                                           std::string& reason);

}  // namespace piper::runtime::cuda
