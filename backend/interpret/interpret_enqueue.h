#pragma once
// The enqueuing function of a role without a compiler: it walks the instructions of the device
// program and makes the same device calls in the same order as the generated one
// (../cuda/emit_enqueue.h).
//
//   const InterpretedEnqueue role(programs.roles[0], programs.bodies, kernels, steps);
//   role.table().enqueue(&role.table(), &device, &rank, 0, role.table().num_actions);

#include <vector>

#include "backend/cuda/kernel_set.h"
#include "backend/device_program/device_program.h"
#include "runtime/device_abi.h"

namespace piper::backend {

/// One role. Its arguments must outlive it.
class InterpretedEnqueue {
 public:
  /// `steps`: per body, the result of KernelSet::add.
  InterpretedEnqueue(const DeviceProgram& program, const std::vector<KernelBody>& bodies,
                     const cuda::KernelSet& kernels,
                     const std::vector<std::vector<cuda::BodyStep>>& steps);
  InterpretedEnqueue(const InterpretedEnqueue&) = delete;

  const PiperEnqueue& table() const { return table_; }

 private:
  static int enqueue(const PiperEnqueue* role, PiperDevice* device, PiperRank* rank,
                     std::uint32_t first, std::uint32_t last);
  int execute(PiperDevice* device, PiperRank* rank, std::uint32_t action) const;
  int run_body(PiperDevice* device, PiperRank* rank, std::uint32_t action) const;

  const DeviceProgram& program_;
  const std::vector<KernelBody>& bodies_;
  const std::vector<std::vector<cuda::BodyStep>>& steps_;
  std::vector<PiperKernelEntry> kernels_;
  std::vector<std::vector<PiperCheck>> checks_;  // per body and step
  PiperEnqueue table_{};
};

}  // namespace piper::backend
