#pragma once
// Combinations of choices by time and memory, as an image: a dot for each, and a line through those
// that no other beats in both.

#include <string>
#include <string_view>
#include <vector>

namespace piper::pictures {

struct FrontPoint {
  double bytes = 0, time = 0;
  std::string name;
  bool on_front = false, chosen = false;  // these have their name beside the dot
};

/// Points of the front are in its order. `time_label`: the meaning and the unit of times, such as `makespan in seconds`.
std::string front_svg(const std::vector<FrontPoint>& points, std::string_view title,
                      std::string_view time_label);

}  // namespace piper::pictures
