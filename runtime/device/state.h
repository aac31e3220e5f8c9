#pragma once
// The state of a rank: the first values of parameters, and the scalars of each step's update.
//
// Guarantees: the value of an element depends on (seed, parameter name, element) alone, whatever the layout and the dtype (f32 is the
// rounded f64 value, and bf16 that once more).
//
//   initialise_parameters(*program, seed, job_rank.stretches, arena.base(), host.base());

#include <cstdint>
#include <vector>

#include "runtime/abi.h"
#include "runtime/kernel_math.h"

namespace piper::runtime {

/// The elements [first, end) of a parameter that a rank has, and where the first of them lies, in elements from the offset that `PiperParam` says.
struct Elements {
  std::uint64_t first = 0, end = 0, at = 0;
};
/// Of its values, of its reduced gradient, or of a slot of the optimizer. `stretches` are the rank's; null where no parameter has one.
Elements elements_here(const PiperParam& param, PiperInBlocks what, const PiperStretch* stretches);

/// Where the rank keeps the unrounded parameter; PIPER_NO_OFFSET: nowhere, as it is not rounded, or not trained.
std::uint64_t master_offset(const PiperParam& param);

/// Elements that get first values: those of a parameter, or of its master.
struct FirstValues {
  const PiperParam* param = nullptr;
  std::uint32_t dtype = 0;
  bool on_host = false;
  std::uint64_t offset = 0;          // in the arena, or in that of the host
  Elements elements;
};
std::vector<FirstValues> first_values_of(const PiperProgram& program, const PiperStretch* stretches);
/// What the random numbers of a parameter's first values are keyed by.
piper_random_key first_values_key(const PiperParam& param, std::uint64_t seed);

/// Parameters get their first values, and so do masters; gradients and all other slots zero. `host` is zero already, and null where nothing lies there.
void initialise_parameters(const PiperProgram& program, std::uint64_t seed, const PiperStretch* stretches, unsigned char* arena, unsigned char* host);

/// The scalars of the update of training step `step` (from 0).
/// Warm-up is linear from 0 and reaches `base` with update `warmup`. The update after it has `base`; from there it is constant, or cosine or linear down
/// to `floor`, which the update after `total` would have: the last one trains, too.
PiperScalars scalars_of_step(const PiperOptimizer& optimizer, std::uint64_t step);

}  // namespace piper::runtime
