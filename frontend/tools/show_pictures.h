#pragma once
// The pictures of `show`: memory, traffic, timelines, and the metrics of a run.

#include <optional>
#include <span>
#include <string>

#include "frontend/tools/session.h"
#include "frontend/views/simulation.h"

namespace piper::tools {

/// The memory of a planned DAG.
std::string memory_picture(const Session& session, const dag::Dag& dag);
std::string traffic_picture(const Session& session, const dag::Dag& dag);

/// A timeline, in the requested format. `dag` is at the level that the costs need. Nothing after a
/// diagnostic.
std::optional<std::string> timeline_picture(Session& session, const dag::Dag& dag,
                                            const views::SimulationCosts& costs);
/// The same in units of time, overlap groups as one. Formats are those of pictures.
std::optional<std::string> grid_picture(Session& session, const dag::Dag& dag,
                                        const views::SimulationCosts& costs);

/// The command `show metrics DIR`.
int show_metrics(Session& session, const std::string& folder);

}  // namespace piper::tools
