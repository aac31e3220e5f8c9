#include "runtime/crc32c.h"

#include <array>
#include <cstddef>

namespace piper::runtime {
namespace {

constexpr std::size_t kSlices = 8;  // bytes that one round takes

/// `tables[s][b]`: the remainder of byte `b` that `s` zero bytes follow.
using Tables = std::array<std::array<std::uint32_t, 256>, kSlices>;

constexpr Tables make_tables() {
  constexpr std::uint32_t kPolynomial = 0x82F63B78;  // bit 0 is the highest power
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit)
      remainder = (remainder >> 1) ^ ((remainder & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = remainder;
  }
  for (std::size_t slice = 1; slice < kSlices; ++slice) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t shorter = tables[slice - 1][byte];
      tables[slice][byte] = (shorter >> 8) ^ tables[0][shorter & 0xFF];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

std::uint32_t crc32c_of(std::string_view bytes) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(bytes[at]); };
  std::uint32_t remainder = 0xFFFFFFFF;
  std::size_t at = 0;
  for (; bytes.size() - at >= kSlices; at += kSlices) {
    std::uint32_t next = 0;
    for (std::size_t i = 0; i < kSlices; ++i) {
      // The remainder so far overlays the first four bytes.
      const std::uint32_t over = i < 4 ? remainder >> (8 * i) & 0xFF : 0;
      next ^= kTables[kSlices - 1 - i][byte(at + i) ^ over];
    }
    remainder = next;
  }
  for (; at < bytes.size(); ++at)
    remainder = (remainder >> 8) ^ kTables[0][(remainder ^ byte(at)) & 0xFF];
  return ~remainder;
}

}  // namespace piper::runtime
