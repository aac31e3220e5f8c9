#pragma once
// Sums of two lists of elements, as all transports add them: one rounding per addition, in the
// elements' type.

#include <cstdint>

namespace piper::runtime {

/// Adds `count` elements at `value` to those at `sum`. `dtype`: a PiperDType. The lists are equal or
/// do not overlap.
void add_elements(std::uint32_t dtype, unsigned char* sum, const unsigned char* value,
                  std::uint64_t count);

}  // namespace piper::runtime
