#pragma once
// `show comm`: the traffic of each communicator in one step.

#include <span>
#include <string>
#include <string_view>

#include "passes/plan/traffic_table.h"

namespace piper::pictures {

std::string traffic_text(std::span<const passes::TrafficRow> rows, const dag::Dag& dag);
std::string traffic_json(std::span<const passes::TrafficRow> rows, const dag::Dag& dag);
/// A bar per communicator, one path per kind.
std::string traffic_svg(std::span<const passes::TrafficRow> rows, std::string_view title);

}  // namespace piper::pictures
