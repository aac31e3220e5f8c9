#pragma once
// Boundaries in an arena: the alignment of every buffer, and of every parameter inside its bucket.

#include <cstdint>

namespace piper {

/// `n` rounded up to a multiple of `unit`.
constexpr std::int64_t round_up(std::int64_t n, std::int64_t unit) {
  return (n + unit - 1) / unit * unit;
}

inline constexpr std::int64_t kAlignment = 64;  // bytes
constexpr std::int64_t aligned(std::int64_t bytes) { return round_up(bytes, kAlignment); }

}  // namespace piper
