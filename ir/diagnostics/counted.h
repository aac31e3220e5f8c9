#pragma once
// How many of something, in words.
//
//   counted(1, "device")               // 1 device
//   counted(2, "entry", "entries")     // 2 entries

#include <concepts>
#include <string>
#include <string_view>

namespace piper {

std::string counted(std::integral auto count, std::string_view one, std::string_view several = {}) {
  std::string text = std::to_string(count) + " ";
  if (count == 1 || several.empty()) text += one;
  if (count != 1) text += several.empty() ? "s" : several;
  return text;
}

}  // namespace piper
