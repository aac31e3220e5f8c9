#pragma once
// The streams of a program in generated code: constants instead of numbers.
//
//   stream_names(program)        // {"stream_compute", "stream_act_pp0_to_pp1"}
//   stream_constants(names)      // enum : uint32_t { stream_compute = 0, stream_act_pp0_to_pp1 = 1 };

#include <string>
#include <vector>

#include "backend/device_program/device_program.h"

namespace piper::backend {

/// The constant of each stream, by its number; all are distinct identifiers.
std::vector<std::string> stream_names(const DeviceProgram& program);

/// The declaration of these constants, a line each.
std::string stream_constants(const std::vector<std::string>& names);

}  // namespace piper::backend
