#pragma once
// Counter-based random numbers: Philox 4x32-10. A value is a function of (key, counter) alone, so any rank can compute any element.
//
//   RandomKey key = random_key(seed, kPurposeInit, hash_name("head.0.out"));
//   double x = normal(key, element, 0);

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

namespace piper::runtime {

enum RandomPurpose : std::uint64_t { kPurposeInit = 1, kPurposeWindow = 2, kPurposeSynthetic = 3, kPurposeHeldOut = 4 };

struct RandomKey {
  std::uint32_t k0 = 0, k1 = 0;
};

constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/// FNV-1a.
constexpr std::uint64_t hash_name(std::string_view name) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

constexpr RandomKey random_key(std::uint64_t seed, RandomPurpose purpose, std::uint64_t name) {
  const std::uint64_t k = mix(mix(mix(seed + 0x9E3779B97F4A7C15u) + purpose) ^ name);
  return {static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(k >> 32)};
}

struct RandomBits {
  std::uint64_t low, high;
};

constexpr RandomBits philox(RandomKey key, std::uint64_t counter_low, std::uint64_t counter_high) {
  std::uint32_t c0 = static_cast<std::uint32_t>(counter_low), c1 = static_cast<std::uint32_t>(counter_low >> 32);
  std::uint32_t c2 = static_cast<std::uint32_t>(counter_high), c3 = static_cast<std::uint32_t>(counter_high >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0, p1 = std::uint64_t{0xCD9E8D57u} * c2;
    const std::uint32_t n0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ key.k0, n2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ key.k1;
    c1 = static_cast<std::uint32_t>(p1);
    c3 = static_cast<std::uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    key.k0 += 0x9E3779B9u;
    key.k1 += 0xBB67AE85u;
  }
  return {c0 | std::uint64_t{c1} << 32, c2 | std::uint64_t{c3} << 32};
}

/// In [0, 1), 53 bits.
constexpr double unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

constexpr double uniform(RandomKey key, std::uint64_t low, std::uint64_t high) { return unit(philox(key, low, high).low); }

/// N(0, 1) by Box and Muller.
inline double normal(RandomKey key, std::uint64_t low, std::uint64_t high) {
  const RandomBits bits = philox(key, low, high);
  const double radius = std::sqrt(-2.0 * std::log(1.0 - unit(bits.low)));
  return radius * std::cos(2.0 * std::numbers::pi * unit(bits.high));
}

/// In [0, bound) without bias worth speaking of; bound > 0.
constexpr std::uint64_t below(std::uint64_t bits, std::uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(bits) * bound) >> 64);
}

}  // namespace piper::runtime
