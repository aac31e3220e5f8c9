#pragma once
// Prints a device program as one C++ file: distinct bodies, constants for the streams, tables of the
// communication streams, and the step of the compute stream.
//
// Guarantees: equal programs give equal text; the file includes only runtime/abi.h and
// runtime/kernel_math.h and exports `piper_program_v1`, which returns the PiperProgram. Up to
// kStraightLine compute actions the step is written out, one paragraph per action with its name and
// .pipe line; longer steps are a loop over a table of the same lines, so that the compile time
// stays linear.

#include <string>

#include "backend/device_program/device_program.h"

namespace piper::backend {

/// The maximum number of compute actions for straight-line code.
inline constexpr std::size_t kStraightLine = 200;

std::string emit_program(const DeviceProgram& program, const std::vector<KernelBody>& bodies);

}  // namespace piper::backend
