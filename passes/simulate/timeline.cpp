#include "passes/simulate/timeline.h"

#include <algorithm>

namespace piper::passes {

std::string Timeline::label(const Operation& operation) const {
  const std::string& name = names[operation.name];
  if (!dag::runs_body(operation.kind)) return name;
  std::string text = std::string(pass_name(operation.pass)) + " " + name + " mb[" +
                     std::to_string(operation.mb) + "]";
  if (operation.slice > 0) text += " slice[" + std::to_string(operation.slice) + "]";
  return operation.part == kNone ? text : text + "#" + std::to_string(operation.part);
}

void Timeline::add_entry(double starts, double ends, std::uint32_t what, std::uint32_t in_group) {
  start.push_back(starts);
  finish.push_back(ends);
  operation.push_back(what);
  group.push_back(in_group);
  cause.push_back(kNone);
  why.push_back(Why::start);
  lanes.back().end = static_cast<std::uint32_t>(start.size());
}

std::string_view text_of(Timeline::Why why) {
  switch (why) {
    case Timeline::Why::start: return "starts the step";
    case Timeline::Why::previous: return "follows the one before";
    case Timeline::Why::data: return "waits for data";
    case Timeline::Why::message: return "waits for a message";
    case Timeline::Why::partner: return "waits for its partner";
    case Timeline::Why::window: return "waits for room";
  }
  return "";
}

std::string_view text_of(Timeline::Stages stages) {
  switch (stages) {
    case Timeline::Stages::weighed: return "stages weighed by cost";
    case Timeline::Stages::equal: return "stages equal";
    case Timeline::Stages::links: return "";
  }
  return "";
}

void Timeline::join_groups() {
  for (const Lane& lane : lanes) {
    for (std::uint32_t first = lane.first; first < lane.end;) {
      std::uint32_t end = first + 1;
      while (end < lane.end && group[first] != kNone && group[end] == group[first]) ++end;
      const double last_end = *std::max_element(finish.begin() + first, finish.begin() + end);
      for (std::uint32_t entry = first; entry < end; ++entry) {
        start[entry] = start[first];
        finish[entry] = last_end;
      }
      first = end;
    }
  }
}

}  // namespace piper::passes
