#include "runtime/failure.h"

#include <utility>

namespace piper::runtime {

Place place_of(std::string action, const PiperPlace& place) {
  return {std::move(action), place.file ? place.file : "", place.line, place.column, place.end_line, place.end_column};
}

Place place_of(const PiperProgram& program, std::uint32_t action) {
  if (action >= program.num_actions) return {};
  const PiperActionInfo& info = program.actions[action];
  return place_of(info.name ? info.name : "", info.place);
}

}  // namespace piper::runtime
