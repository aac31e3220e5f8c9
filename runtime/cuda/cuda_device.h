#pragma once
// A GPU as a device: all ranks on it, one thread that enqueues them in the order of the plan,
// messages by copies; or this process's rank among several processes, messages by NCCL.
//
// Guarantees: within a step nothing waits for the GPU; a step is enqueued when the one before the
// last has ended. Losses are read back when they are ready. A refusal by the GPU is a failure that
// names the action; a hang is waited for no longer than the options say.
//
//   std::unique_ptr<Driver> driver = open_gpu({...}, failure);
//   auto device = make_cuda_device({.images = {cubin, own_cubin}, .training = {roles of the ranks}}, std::move(driver));
//   auto executor = Executor::create(job, std::move(device), options, failure);

#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/nccl.h"
#include "runtime/device/device.h"
#include "runtime/device_abi.h"

namespace piper::runtime::cuda {

/// The programs of a job's ranks: kernels of the roles and of the runtime (device_kernels.h) as
/// images that the driver loads, and per local rank the function that enqueues it.
struct GpuPrograms {
  std::vector<std::string> images;
  std::vector<const PiperEnqueue*> training, evaluation;
};

/// `nccl`: carries messages if this process is one of several; null if all ranks are here. A
/// recorded run enqueues its last step action by action between timers. The functions must outlive
/// the device.
std::unique_ptr<Device> make_cuda_device(GpuPrograms programs, std::unique_ptr<Driver> driver,
                                         std::unique_ptr<Nccl> nccl = nullptr);

}  // namespace piper::runtime::cuda
