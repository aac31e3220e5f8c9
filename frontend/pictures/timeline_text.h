#pragma once
// A timeline as text: on one line per rank, to scale; and as a grid of cells.

#include <string>

#include "frontend/pictures/picture.h"
#include "frontend/pictures/screen.h"

namespace piper::pictures {

/// One line per lane, drawn to scale in the width of the screen (100 if it has none): each
/// character is the operation that took most of its time, `.` is idle. Below it the axis, the
/// figures and a legend.
///
///   rank 0  F0--F1--........B0------B1------
///   rank 1  ....F0--B0------F1--B1------....
///           0         2         4
std::string timeline_text(const Picture& picture, const Screen& screen);

}  // namespace piper::pictures
