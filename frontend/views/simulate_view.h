#pragma once
// The output of `simulate` for a timeline.

#include <string>

#include "ir/location.h"
#include "passes/simulate/timeline.h"

namespace piper::views {

/// Figures, a row per rank, and the parts of the critical path, with source lines.
std::string simulation_text(const passes::Timeline& timeline, const LocationTable& locations);

/// Makespan, span, peak.
std::string figures_text(const passes::Timeline& timeline);

/// The same on one line: `makespan 33, bubble 0.2727, peak 4`.
std::string figures_line(const passes::Timeline& timeline);

/// The schema of `simulate --format json`.
std::string simulation_json(const passes::Timeline& timeline, const LocationTable& locations);

}  // namespace piper::views
