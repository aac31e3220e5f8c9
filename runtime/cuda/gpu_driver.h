#pragma once
// The driver of a real GPU: libcuda, opened at run time, and cuBLASLt. Nothing of CUDA is linked or included.

#include <memory>
#include <string>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/torch_attention.h"
#include "runtime/failure.h"

namespace piper::runtime::cuda {

struct GpuChoice {
  int gpu = 0;                  // among those that the driver lists
  std::string cublas_lt;        // the file of cuBLASLt
  std::string no_cublas_lt;     // where there is none: why
  TorchChoice torch;            // of its GPU; opened for programs that use it
  int least_version = 12000;    // of CUDA, which the driver must know: 1000 * major + 10 * minor
};

/// Null with the reason in `failure`: kCudaMissing, kCudaTooOld or kCudaCallFailed.
std::unique_ptr<Driver> open_gpu(const GpuChoice& choice, Failure& failure);

}  // namespace piper::runtime::cuda
