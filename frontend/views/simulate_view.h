#pragma once
// The output of `simulate` for a timeline.

#include <optional>
#include <string>

#include "ir/location.h"
#include "ir/orders/search/bounds.h"
#include "passes/simulate/timeline.h"

namespace piper::views {

/// The figures that no order of the same work with the same peak is below (lower_bounds.h).
using LowerBounds = std::optional<orders::Bounds>;

/// Figures, a row per rank, and the parts of the critical path, with source lines.
std::string simulation_text(const passes::Timeline& timeline, const LowerBounds& bounds,
                            const LocationTable& locations);

/// Makespan, span, peak, and the lower bounds.
std::string figures_text(const passes::Timeline& timeline, const LowerBounds& bounds);

/// The same on one line: `makespan 33, bubble 0.2727, peak 4`.
std::string figures_line(const passes::Timeline& timeline);

/// The schema of `simulate --format json`.
std::string simulation_json(const passes::Timeline& timeline, const LowerBounds& bounds,
                            const LocationTable& locations);

}  // namespace piper::views
