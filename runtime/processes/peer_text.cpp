#include "runtime/processes/peer_text.h"

#include <cstdint>

namespace piper::runtime {

namespace {

/// The length of the UTF-8 sequence at the start of a text that is not empty, 0 if there is none.
/// `point` becomes its code point.
std::size_t code_point(std::string_view text, std::uint32_t& point) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xC2 && first < 0xE0 ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF5 ? 4
                                                             : 0;
  if (length == 0 || text.size() < length) return 0;
  point = length == 1 ? first : first & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xC0) != 0x80) return 0;
    point = point << 6 | (byte & 0x3Fu);
  }
  const bool overlong = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
  const bool surrogate = point >= 0xD800 && point < 0xE000;
  return overlong || surrogate || point > 0x10FFFF ? 0 : length;
}

/// Whether the character moves the cursor, rings the bell, breaks the line or changes the direction
/// of text.
bool controls(std::uint32_t point) {
  return point < 0x20 || (point >= 0x7F && point < 0xA0) || point == 0x200E || point == 0x200F ||
         (point >= 0x2028 && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069);
}

void append_escaped(std::string& to, std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    to += {'\\', 'x', kDigits[value >> 4], kDigits[value & 15]};
  }
}

}  // namespace

std::string peer_text(std::string_view text, std::size_t max_bytes) {
  constexpr std::string_view kCut = "...";
  std::string shown;
  std::size_t cut = 0;  // the longest prefix of `shown` that leaves room for the dots
  while (!text.empty()) {
    std::uint32_t point = 0;
    const std::size_t length = code_point(text, point);
    const std::string_view bytes = text.substr(0, length == 0 ? 1 : length);
    if (length == 0 || controls(point)) {
      append_escaped(shown, bytes);
    } else {
      shown += bytes;
    }
    text.remove_prefix(bytes.size());
    if (shown.size() + kCut.size() <= max_bytes) cut = shown.size();
    if (shown.size() > max_bytes) return shown.substr(0, cut).append(kCut.substr(0, max_bytes));
  }
  return shown;
}

}  // namespace piper::runtime
