#include "runtime/failure.h"

#include <utility>

namespace piper::runtime {

ActionLocation location_of(std::string action, const PiperSourceLocation& place) {
  return {std::move(action), place.file ? place.file : "", place.line, place.column, place.end_line,
          place.end_column};
}

ActionLocation location_of(const PiperProgram& program, std::uint32_t action) {
  if (action >= program.num_actions) return {};
  const PiperActionInfo& info = program.actions[action];
  return location_of(info.name ? info.name : "", info.place);
}

std::string printable(std::string_view text, std::size_t max) {
  std::string shown(text.substr(0, max));
  for (char& c : shown) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte > 0x7e || c == '`') c = '?';
  }
  return text.size() > max ? shown + "..." : shown;
}

std::string describe(const Failure& failure) {
  std::string text;
  if (failure.rank != Failure::kNoRank) text += "rank " + std::to_string(failure.rank) + ", ";
  if (!failure.held_out.empty()) text += failure.held_out + ", ";
  if (!failure.place.action.empty()) text += failure.place.action + ", ";
  if (failure.place.line) {
    text += failure.place.file + ':' + std::to_string(failure.place.line) + ':' +
            std::to_string(failure.place.column) + ": ";
  }
  text += failure.message;
  for (const Note& note : failure.notes) text += "; " + note.text;
  return text;
}

}  // namespace piper::runtime
