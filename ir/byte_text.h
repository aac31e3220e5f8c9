#pragma once
// The text of byte counts in messages and views.

#include <concepts>
#include <string>

namespace piper {

/// `7.5GiB`, `640KiB`, `12 bytes`: exact, or to one decimal.
std::string bytes_text(double bytes);
template <std::integral Count>
std::string bytes_text(Count bytes) {
  return bytes_text(static_cast<double>(bytes));
}

}  // namespace piper
