#pragma once
// Alignment of memory that the runtime lays out itself. The layout of an arena is in the tables of
// a program.

#include <cstdint>

namespace piper::runtime {

/// The smallest multiple of `unit` that is at least `n`.
constexpr std::uint64_t round_up(std::uint64_t n, std::uint64_t unit) {
  return (n + unit - 1) / unit * unit;
}

inline constexpr std::uint64_t kAlignment = 64;  // bytes
constexpr std::uint64_t aligned(std::uint64_t bytes) { return round_up(bytes, kAlignment); }

}  // namespace piper::runtime
