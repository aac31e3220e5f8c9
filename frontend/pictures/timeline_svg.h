#pragma once
// A timeline as an image: one row per rank, one path per colour however many operations there are.

#include <string>

#include "frontend/pictures/picture.h"

namespace piper::pictures {

/// Cells are labelled while they are few and wide; colours follow the reader's light or dark theme.
std::string timeline_svg(const Picture& picture);

}  // namespace piper::pictures
