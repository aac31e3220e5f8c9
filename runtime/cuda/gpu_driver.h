#pragma once
// The driver of a real GPU: libcuda, opened at run time, and cuBLASLt. Nothing of CUDA is linked or
// included.

#include <memory>
#include <string>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/torch_attention.h"
#include "runtime/failure.h"

namespace piper::runtime::cuda {

struct GpuChoice {
  int gpu = 0;               // among those that the driver lists
  std::string cublas_lt;     // the file of cuBLASLt
  std::string no_cublas_lt;  // the reason if there is none
  // LibTorch's attention for this GPU; opened for programs that use it.
  TorchChoice torch;
  // The minimum version of CUDA that the driver must support: 1000 * major + 10 * minor.
  int least_version = 12000;
};

/// Sets the environment variables that CUDA's driver reads at its start, unless the user has set
/// them. Call it before the driver starts in this process, while no thread reads the environment.
/// They ask for the maximum number of connections, because streams that share one wait for each
/// other; and for kernels that are loaded with their module, if they cannot be loaded lazily.
void set_driver_defaults();

/// Null with the reason in `failure`: kCudaMissing, kCudaTooOld or kCudaCallFailed.
std::unique_ptr<Driver> open_gpu(const GpuChoice& choice, Failure& failure);

}  // namespace piper::runtime::cuda
