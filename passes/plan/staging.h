#pragma once
// The copy of the state from which a checkpoint is written while training goes on, in the memory of
// the host.
//
//   dp: 2, adamw, 1000 elements in f32      each device writes half of 3 tensors: 6000 bytes

#include <cstdint>

#include "ir/dag/plan.h"

namespace piper::passes {

/// Bytes that a device of a role copies for a checkpoint: the part that it writes of the parameters
/// (of their master weights, if they have such) and of each optimizer tensor. Devices that hold the
/// same elements divide them evenly. The largest over the devices with those parameters; at most an element
/// per tensor more than the run copies.
std::int64_t staging_bytes(const dag::Dag& dag, const dag::Role& role);

/// The same, if the train keeps checkpoints (`checkpoint: every(...)`); else 0, because a checkpoint
/// at the end of a run is written only with `--out`.
std::int64_t planned_staging(const dag::Dag& dag, const dag::Role& role);

}  // namespace piper::passes
