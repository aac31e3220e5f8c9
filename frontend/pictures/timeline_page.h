#pragma once
// Timelines as one page that opens from disk: zoom, pan, what each bar is and waits for, memory below, several below each other on one axis of time.

#include <span>
#include <string>

#include "frontend/pictures/picture.h"

namespace piper::pictures {

/// Self-contained: style, script and numbers are in it, and it asks for nothing from anywhere.
std::string timeline_page(std::span<const Picture> pictures);

}  // namespace piper::pictures
