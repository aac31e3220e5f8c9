#pragma once
// The state of a rank: the first values of parameters, and the scalars of each step's update.
//
// Guarantees: the value of an element depends on (seed, parameter name, element) alone, whatever
// the layout and the dtype (f32 is the rounded f64 value, and bf16 the rounded f32 value).
//
//   initialise_parameters(*program, seed, job_rank.intervals, arena.base(), host.base());

#include <cstdint>
#include <vector>

#include "runtime/abi.h"
#include "runtime/kernel_math.h"

namespace piper::runtime {

/// The elements [first, end) of a parameter that a rank holds, and the position of the first of
/// them, in elements from the offset in `PiperParam`.
struct Elements {
  std::uint64_t first = 0, end = 0, at = 0;
};
/// The elements of its values, its reduced gradient or an optimizer slot, by `tensor`. `intervals`
/// are the rank's; null if no parameter has one.
Elements elements_here(const PiperParam& param, PiperSharded tensor,
                       const PiperInterval* intervals);

/// The offset of the rank's master weights; PIPER_NO_OFFSET if the parameter is not rounded or not
/// trained.
std::uint64_t master_offset(const PiperParam& param);

/// The offset of the rank's moving average; PIPER_NO_OFFSET if there is none.
std::uint64_t average_offset(const PiperParam& param);

/// Elements that get first values: those of a parameter, of its moving average, or of its master
/// weights.
struct FirstValues {
  const PiperParam* param = nullptr;
  std::uint32_t dtype = 0;
  bool on_host = false;
  std::uint64_t offset = 0;  // in the arena, or in the host's
  Elements elements;
};
std::vector<FirstValues> first_values_of(const PiperProgram& program,
                                         const PiperInterval* intervals);
/// The key of the random numbers for a parameter's first values.
piper_random_key first_values_key(const PiperParam& param, std::uint64_t seed);

/// Writes first values to parameters, moving averages and master weights, and zero to gradients and
/// all other slots.
/// `host` is already zero, and null if nothing lies there.
void initialise_parameters(const PiperProgram& program, std::uint64_t seed,
                           const PiperInterval* intervals, unsigned char* arena,
                           unsigned char* host);

/// The scalars of the update of training step `step` (from 0). Warm-up is linear from 0 and reaches
/// `base` with update `warmup`. The update after it has `base`; from there the rate is constant, or
/// falls as a cosine or line to `floor`, which the update after `total` would have: the last update
/// trains, too.
PiperScalars scalars_of_step(const PiperOptimizer& optimizer, std::uint64_t step);

}  // namespace piper::runtime
