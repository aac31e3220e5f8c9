#pragma once
// Prints a device program as one C++ file: bodies, tables of the communication streams, and the step of the compute stream.
//
// Guarantees: equal programs give equal text; the file includes runtime/abi.h and runtime/kernel_math.h alone and exports
// `piper_program_v1`, which gives the PiperProgram. Up to kStraightLine compute actions the step is written out, one paragraph per action with its
// name and .pipe line; longer ones are a loop over a table of the same lines, so that the time to compile stays linear.

#include <string>

#include "backend/device_program/device_program.h"

namespace piper::backend {

/// Compute actions up to which the step is straight-line code.
inline constexpr std::size_t kStraightLine = 200;

std::string emit_program(const DeviceProgram& program, const std::vector<KernelBody>& bodies);

}  // namespace piper::backend
