#pragma once
// Boundaries in an arena: every buffer, and every parameter inside its bucket, begins at one.

#include <cstdint>

namespace piper {

inline constexpr std::int64_t kAlignment = 64;  // bytes
constexpr std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace piper
