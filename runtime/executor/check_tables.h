#pragma once
// Checks the tables of a job before anything runs, so that the step loop can trust them.

#include <optional>

#include "runtime/abi.h"
#include "runtime/failure.h"

namespace piper::runtime {

/// The first contradiction found: versions, ranges of offsets and indices, stretches of other extents than a program was made for, the state parts of both programs, members of
/// communicators.
std::optional<Failure> check_tables(const PiperJob& job);

}  // namespace piper::runtime
