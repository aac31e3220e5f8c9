#include "runtime/crc32c.h"

#include <array>

namespace piper::runtime {
namespace {

using Table = std::array<std::uint32_t, 256>;

/// The remainder of every byte.
constexpr Table make_table() {
  constexpr std::uint32_t kPolynomial = 0x82F63B78;  // bit 0 is the highest power
  Table table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit)
      remainder = (remainder >> 1) ^ ((remainder & 1) != 0 ? kPolynomial : 0);
    table[byte] = remainder;
  }
  return table;
}

constexpr Table kTable = make_table();

}  // namespace

std::uint32_t crc32c_of(std::string_view bytes) {
  std::uint32_t remainder = 0xFFFFFFFF;
  for (const char c : bytes)
    remainder = (remainder >> 8) ^ kTable[(remainder ^ static_cast<unsigned char>(c)) & 0xFF];
  return ~remainder;
}

}  // namespace piper::runtime
