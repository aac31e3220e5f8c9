#pragma once
// Boundaries in an arena: every buffer, and every parameter inside its bucket, begins at one.

#include <cstdint>

namespace piper {

/// The least multiple of `unit` that is no less than `n`.
constexpr std::int64_t round_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

inline constexpr std::int64_t kAlignment = 64;  // bytes
constexpr std::int64_t aligned(std::int64_t bytes) { return round_up(bytes, kAlignment); }

}  // namespace piper
