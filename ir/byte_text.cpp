#include "ir/byte_text.h"

#include <cmath>
#include <cstdio>
#include <iterator>

namespace piper {

std::string bytes_text(double bytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  char text[48];
  const bool whole = std::floor(bytes) == bytes;
  std::snprintf(text, sizeof text, whole ? "%.0f%s%s" : "%.1f%s%s", bytes, unit == 0 ? " " : "",
                kUnits[unit]);
  return text;
}

}  // namespace piper
