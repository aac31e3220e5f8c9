#pragma once
// Timelines as one page that opens from disk: zoom, pan, details and inputs of each bar, memory
// below, several timelines below each other on one axis of time.

#include <span>
#include <string>

#include "frontend/pictures/picture.h"

namespace piper::pictures {

/// Self-contained: style, script and numbers are in it, and it loads nothing else.
std::string timeline_page(std::span<const Picture> pictures);

}  // namespace piper::pictures
