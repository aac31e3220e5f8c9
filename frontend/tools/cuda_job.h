#pragma once
// `train --device cuda`: the GPU, its kernels, and an executor on it.

#include <memory>
#include <string>
#include <vector>

#include "backend/device_program/job.h"
#include "frontend/tools/session.h"
#include "runtime/cuda/driver.h"
#include "runtime/executor/executor.h"

namespace piper::tools {

/// Where CUDA comes from: this machine, or what a test puts in its place.
class CudaMachine {
 public:
  virtual ~CudaMachine() = default;
  /// Null with the reason in `failure`.
  virtual std::unique_ptr<runtime::cuda::Driver> open(runtime::Failure& failure) = 0;
  /// The kernels of a job and those of the runtime, as the driver loads them. False with the reason in `failure`.
  virtual bool build(const backend::cuda::KernelSet& kernels, std::vector<std::string>& images, runtime::Failure& failure) = 0;
};

/// A GPU that is open.
struct CudaDevice {
  std::unique_ptr<CudaMachine> own;  // null: the console's
  CudaMachine* machine = nullptr;
  std::unique_ptr<runtime::cuda::Driver> driver;  // until an executor has it; the next one opens another
  std::string name;
};

/// Before anything is compiled: what is missing is told at once. Null after a diagnostic.
std::unique_ptr<CudaDevice> open_cuda(Session& session);

/// The executor of a job for CUDA, or null with the reason in `failure`; null without one when stopped.
std::unique_ptr<runtime::Executor> make_cuda_executor(CudaDevice& device, const backend::Job& job, const runtime::ExecutorOptions& options, runtime::Failure& failure);

}  // namespace piper::tools
