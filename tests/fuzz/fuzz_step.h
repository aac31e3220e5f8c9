#pragma once
// Runs one step of a plan from damaged text with the interpreter.

#include "backend/device_program/job.h"

namespace piper::test {

/// Whether a step takes little time and memory and no files.
bool runs_quickly(const dag::Dag& plan);

/// Runs one training step. Damaged numbers may overflow, an index may be out of range, and the
/// runtime may refuse to start, with a reason; any other failure fails the test. False: the runtime
/// refused.
bool run_a_step(const backend::Job& job);

}  // namespace piper::test
