#pragma once
// A step of the interpreter for plans that came out of damaged text.

#include "backend/device_program/job.h"

namespace piper::test {

/// Whether a step takes little time and memory and no files.
bool runs_quickly(const dag::Dag& plan);

/// Runs one training step. Damaged numbers may overflow, an index may lie outside its table, and the runtime may refuse to start, with a reason;
/// anything else fails the test. False: the runtime refused.
bool run_a_step(const backend::Job& job);

}  // namespace piper::test
