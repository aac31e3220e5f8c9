#pragma once
// `train --device cuda`: the GPU, its kernels, and an executor on it.

#include <memory>
#include <string>
#include <vector>

#include "backend/device_program/job.h"
#include "frontend/tools/run_processes.h"
#include "frontend/tools/session.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/nccl.h"
#include "runtime/executor/executor.h"
#include "runtime/processes/process_group.h"

namespace piper::tools {

/// The source of CUDA: this machine, or a replacement in tests.
class CudaMachine {
 public:
  virtual ~CudaMachine() = default;
  /// The GPU of that number on this machine. Null with the reason in `failure`.
  virtual std::unique_ptr<runtime::cuda::Driver> open(std::uint32_t gpu,
                                                      runtime::Failure& failure) = 0;
  /// The communication between processes. Null with the reason in `failure`.
  virtual std::unique_ptr<runtime::cuda::Nccl> open_nccl(runtime::Failure& failure) = 0;
  /// The kernels of a job and those of the runtime, as the driver loads them. False with the reason
  /// in `failure`.
  virtual bool build(const backend::cuda::KernelSet& kernels, std::vector<std::string>& images,
                     runtime::Failure& failure) = 0;
};

/// A GPU that is open.
struct CudaDevice {
  std::unique_ptr<CudaMachine> own;  // null: the console's
  CudaMachine* machine = nullptr;
  // Until an executor has it; the next one opens another.
  std::unique_ptr<runtime::cuda::Driver> driver;
  std::string name;
  RunProcesses* processes = nullptr;       // of the run
  runtime::ProcessGroup* group = nullptr;  // theirs; null: all ranks run on this GPU
  // With a group, until an executor has it; the next one opens it again.
  std::unique_ptr<runtime::cuda::Nccl> nccl;

  /// On its machine.
  std::uint32_t gpu() const { return group != nullptr ? group->launch().local_rank : 0; }
  /// The rank of this process.
  std::uint32_t rank() const { return group != nullptr ? group->launch().rank : 0; }
};

/// Called before compilation, so that missing parts are reported at once, also to the other
/// processes. Null after a diagnostic. The processes must outlive the device.
std::unique_ptr<CudaDevice> open_cuda(Session& session, RunProcesses& processes);

/// The executor of a job for CUDA, or null with the reason in `failure`; null without one when
/// stopped. `tables`: those of the job; one of several processes keeps only its rank there, and
/// fails unless the others have compiled the same.
std::unique_ptr<runtime::Executor> make_cuda_executor(const Session& session, CudaDevice& device,
                                                      const backend::Job& job, PiperJob& tables,
                                                      const runtime::ExecutorOptions& options,
                                                      runtime::Failure& failure);

}  // namespace piper::tools
