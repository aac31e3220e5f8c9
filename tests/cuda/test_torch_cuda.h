#pragma once
// The records of the test libtorch_cuda.so about its calls: dlsym(library,
// "test_torch_cuda_calls").

#include <cstdint>

namespace piper::test {

struct TorchCudaCalls {
  std::int64_t stream = 0;     // of the last call
  bool deterministic = false;  // as requested
  // Parts of the keys in the last efficient gradient; 0: LibTorch chooses.
  std::int64_t splits = 0;
};

/// As on an H200.
inline constexpr std::int64_t kTestProcessors = 132;

}  // namespace piper::test
