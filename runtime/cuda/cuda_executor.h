#pragma once
// The executor on CUDA: all ranks on one GPU, one thread that enqueues them in the order of the plan, messages by copies; or the rank of this process among several, messages by NCCL.
//
// Guarantees: within a step nothing waits for the device; a step is enqueued when the one before the last has ended. Losses come back when they are there. What the device refuses is a
// failure that names the action; whoever hangs on the device is not waited for longer than the options say.
//
//   std::unique_ptr<Driver> driver = open_gpu({...}, failure);
//   auto executor = create_cuda_executor(job, {.images = {cubin, own_cubin}, .training = {roles of the ranks}}, std::move(driver), options, failure);
//   runtime::train(*executor, job, ...);

#include <memory>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/nccl.h"
#include "runtime/device_abi.h"
#include "runtime/executor/executor.h"
#include "runtime/processes/process_group.h"

namespace piper::runtime::cuda {

/// What the ranks of a job run: kernels of the roles and of the runtime (device_kernels.h) as images that the driver loads, and per local rank the function that enqueues it.
struct GpuPrograms {
  std::vector<std::string> images;
  std::vector<const PiperEnqueue*> training, evaluation;
};

/// The processes of which this is one: the job has its rank alone, `whole` those of all. On rank 0 the numbers of a step are those of all ranks; elsewhere those that are not known are no numbers. What was
/// recorded and parameters are read on rank 0 alone, for which all processes read the same parameters in the same order.
struct GpuProcesses {
  ProcessGroup* group = nullptr;       // null: the job has all ranks
  std::unique_ptr<Nccl> nccl = {};
  const PiperJob* whole = nullptr;
};

/// Of the options, `transport` and `delays` belong to the CPU. `record`: the last step that was asked for is enqueued action by action between timers; of a run that is stopped
/// before it nothing is recorded. The job, the functions and the group must outlive the executor. Null with the reason in `failure`; null without one when stopped.
std::unique_ptr<Executor> create_cuda_executor(const PiperJob& job, const GpuPrograms& programs, std::unique_ptr<Driver> driver, const ExecutorOptions& options, Failure& failure, GpuProcesses processes = {});

}  // namespace piper::runtime::cuda
