#pragma once
// A timeline as data: for scripts, and for Perfetto (https://ui.perfetto.dev).

#include <span>
#include <string>

#include "frontend/pictures/picture.h"

namespace piper::pictures {

/// `show timeline --format json`: ranks, lanes and operations once, entries as columns.
std::string timeline_json(const Picture& picture);

/// The trace-event format: a process per rank, a thread per lane, flows for messages, counters for
/// memory. Has all ranks of several pictures, one picture after the other. A unit of cost is a
/// millisecond.
std::string perfetto_trace(std::span<const Picture> pictures);

}  // namespace piper::pictures
