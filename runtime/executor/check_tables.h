#pragma once
// Checks the tables of a job before anything runs, so that the step loop can rely on them.

#include <optional>

#include "runtime/abi.h"
#include "runtime/failure.h"

namespace piper::runtime {

/// The first contradiction found: versions, ranges of offsets and indices, intervals with other
/// extents than a program was generated for, the state parts of both programs, members of
/// communicators.
std::optional<Failure> check_tables(const PiperJob& job);

}  // namespace piper::runtime
