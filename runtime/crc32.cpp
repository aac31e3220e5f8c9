#include "runtime/crc32.h"

#include <zlib.h>

#include <cstdio>

namespace piper::runtime {

std::uint32_t crc32_of(const void* data, std::uint64_t bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, static_cast<const Bytef*>(data), bytes));
}

std::uint32_t crc32_joined(std::uint32_t first, std::uint32_t second, std::uint64_t bytes) {
  return static_cast<std::uint32_t>(crc32_combine(first, second, static_cast<z_off_t>(bytes)));
}

std::string crc32_text(std::uint32_t crc) {
  char digits[9];
  std::snprintf(digits, sizeof digits, "%08x", crc);
  return digits;
}

}  // namespace piper::runtime
