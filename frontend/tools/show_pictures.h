#pragma once
// What `show` draws: memory, traffic, timelines, and the metrics of a run.

#include <string>

#include "frontend/tools/session.h"

namespace piper::tools {

/// Of a planned DAG.
std::string memory_picture(const Session& session, const dag::Dag& dag);
std::string traffic_picture(const Session& session, const dag::Dag& dag);

/// The command `show metrics DIR`.
int show_metrics(Session& session, const std::string& folder);

}  // namespace piper::tools
