#pragma once
// IEEE 754 binary16 (`f16`) as files of weights and arrays have it. No computation of Piper has this type.

#include <cstdint>

#include "runtime/kernel_math.h"

namespace piper::runtime {

/// One f16 number in memory: 1 sign bit, 5 bits of exponent, 10 bits of fraction.
struct Half {
  std::uint16_t bits = 0;

  Half() = default;
  /// The nearest f16 number, ties to even; numbers from 65520 on become infinite.
  explicit Half(float x) : bits(nearest_bits(x)) {}

  /// Exact.
  operator float() const {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    const std::uint32_t exponent = bits >> 10 & 0x1fu, fraction = bits & 0x3ffu;
    if (exponent == 0x1fu) return piper_from_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent == 0) {  // a multiple of 2^-24
      const float value = static_cast<float>(fraction) * 0x1p-24f;
      return piper_from_bits(sign | piper_bits(value));
    }
    return piper_from_bits(sign | (exponent + 112) << 23 | fraction << 13);
  }

 private:
  static std::uint16_t nearest_bits(float x) {
    const std::uint32_t all = piper_bits(x), magnitude = all & 0x7fffffffu;
    const auto sign = static_cast<std::uint16_t>(all >> 16 & 0x8000u);
    const auto with_sign = [sign](std::uint32_t half) {
      return static_cast<std::uint16_t>(sign | half);
    };
    if (magnitude > 0x7f800000u) return with_sign(0x7e00u);   // not a number
    if (magnitude >= 0x477ff000u) return with_sign(0x7c00u);  // 65520
    if (magnitude < 0x38800000u) {  // below 2^-14: adding 0.5 leaves multiples of 2^-24, rounded
      const float shifted = piper_from_bits(magnitude) + 0.5f;
      return with_sign(piper_bits(shifted) - 0x3f000000u);
    }
    const std::uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
    return with_sign((rounded - (112u << 23)) >> 13);
  }
};
static_assert(sizeof(Half) == 2);

}  // namespace piper::runtime
