#include "tests/gpu/gpu_device.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "backend/cuda/libraries.h"
#include "runtime/device/library_calls.h"

namespace piper::test {

using backend::cuda::Nvrtc;

GpuDevice::GpuDevice(std::shared_ptr<const Nvrtc> nvrtc, std::string architecture,
                     runtime::cuda::GpuChoice choice)
    : nvrtc_(std::move(nvrtc)),
      architecture_(std::move(architecture)),
      choice_(std::move(choice)) {}

std::unique_ptr<runtime::cuda::Driver> GpuDevice::open() {
  runtime::Failure failure;
  auto driver = runtime::cuda::open_gpu(choice_, failure);
  EXPECT_TRUE(driver) << failure.message;
  return driver;
}

std::string GpuDevice::compiled(const std::string& source) const {
  static std::map<std::string, std::string> known;
  std::string& cubin = known[architecture_ + source];
  if (!cubin.empty()) return cubin;
  const auto made = nvrtc_->compile(source, architecture_);
  EXPECT_TRUE(made.ok) << made.log.substr(0, 4000);
  return cubin = made.cubin;
}

backend::cuda::Environment cuda_environment() {
  backend::cuda::Environment environment;
  environment["PIPER_TORCH_PATH"] = std::filesystem::path(PIPER_TORCH_CUDA).parent_path().string();
  for (const char* name : {"PIPER_CUDA_PATH", "CUDA_HOME", "CUDA_PATH", "PIPER_TORCH_PATH"}) {
    if (const char* value = std::getenv(name)) environment[name] = value;
  }
  return environment;
}

std::unique_ptr<GpuDevice> find_gpu(std::string& reason) {
  const backend::cuda::Environment environment = cuda_environment();
  runtime::cuda::set_driver_defaults();
  const backend::cuda::Devices devices = backend::cuda::find_devices();
  if (devices.gpus.empty()) {
    reason = "no GPU: " +
             (devices.driver.reason.empty() ? "the driver lists none" : devices.driver.reason);
    return nullptr;
  }
  std::string why;
  const auto nvrtc = Nvrtc::open(environment, why);
  if (!nvrtc) {
    reason = "no NVRTC: " + why;
    return nullptr;
  }
  runtime::cuda::GpuChoice choice;
  choice.least_version = nvrtc->major() * 1000;
  if (backend::cuda::open_library(environment, "libcublasLt.so", {}, choice.cublas_lt, why) ==
      nullptr) {
    reason = "no cuBLASLt: " + why;
    return nullptr;
  }
  const backend::cuda::Found torch = backend::cuda::find_torch_cuda(environment);
  const std::string plugins = std::filesystem::canonical("/proc/self/exe").parent_path().string();
  choice.torch = {runtime::torch_plugin_path({.plugin_folder = plugins}), torch.path, torch.version,
                  torch.reason, choice.gpu};
  return std::make_unique<GpuDevice>(nvrtc, devices.gpus.front().capability, choice);
}

std::unique_ptr<TestDevice> find_test_device(std::string& reason) { return find_gpu(reason); }

}  // namespace piper::test
