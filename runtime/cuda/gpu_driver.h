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

/// What CUDA's driver reads of the environment when it is started, where the user has not said it: before anybody starts it in this process, and while no thread looks at the environment. As many connections as
/// it can have, since streams that share one wait for each other; and kernels that come with their module, where they cannot be loaded one by one.
void set_driver_defaults();

/// Null with the reason in `failure`: kCudaMissing, kCudaTooOld or kCudaCallFailed.
std::unique_ptr<Driver> open_gpu(const GpuChoice& choice, Failure& failure);

}  // namespace piper::runtime::cuda
