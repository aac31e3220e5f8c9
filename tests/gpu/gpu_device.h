#pragma once
// The first GPU of the machine as the device of a test.

#include <map>
#include <string>

#include "backend/cuda/nvrtc.h"
#include "runtime/cuda/gpu_driver.h"
#include "tests/cuda/test_device.h"

namespace piper::test {

class GpuDevice final : public TestDevice {
 public:
  GpuDevice(std::shared_ptr<const backend::cuda::Nvrtc> nvrtc, std::string architecture,
            runtime::cuda::GpuChoice choice);

  bool is_host() const override { return false; }
  std::unique_ptr<runtime::cuda::Driver> open() override;
  std::string build(const backend::cuda::KernelSet& kernels) override {
    return compiled(kernels.source());
  }
  std::string build_own() override { return compiled(backend::cuda::runtime_kernels_source()); }
  /// Compiles each source once in a process.
  std::string compiled(const std::string& source) const;
  /// The reason why there is no attention of LibTorch; empty if there is.
  const std::string& no_torch() const { return choice_.torch.no_library; }

 private:
  const std::shared_ptr<const backend::cuda::Nvrtc> nvrtc_;
  const std::string architecture_;
  const runtime::cuda::GpuChoice choice_;
};

/// The environment of the process: `PIPER_CUDA_PATH` names the folder of libraries.
backend::cuda::Environment cuda_environment();
/// Like find_test_device.
std::unique_ptr<GpuDevice> find_gpu(std::string& reason);

}  // namespace piper::test
