#pragma once
// The enqueuing function of a role as C++: a function per body that launches its kernels and
// library calls, and one that runs the actions in issue order.
//
// Guarantees: includes only runtime/device_abi.h; has no rank constants; kernels are numbered as
// KernelSet::list().

#include <string>
#include <vector>

#include "backend/cuda/kernel_set.h"
#include "backend/device_program/device_program.h"

namespace piper::backend::cuda {

/// `steps`: per body, the result of KernelSet::add.
std::string emit_enqueue(const DeviceProgram& program, const std::vector<KernelBody>& bodies,
                         const KernelSet& kernels, const std::vector<std::vector<BodyStep>>& steps);

}  // namespace piper::backend::cuda
