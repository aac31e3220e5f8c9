#include "ir/directive/directive.h"

namespace piper::directive {

std::string_view part_name(Part part) {
  constexpr std::string_view kNames[] = {"", "send", "recv", "gather", "reduce", "enter", "leave"};
  return kNames[static_cast<std::size_t>(part)];
}

}  // namespace piper::directive
