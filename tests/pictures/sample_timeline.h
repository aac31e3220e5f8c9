#pragma once
// Timelines by closed formulas, for tests of pictures.

#include <string>

#include "frontend/pictures/picture.h"
#include "passes/simulate/timeline.h"

namespace piper::test {

/// GPipe on p ranks with m microbatches, F of one unit and B of two: F of rank r and microbatch i
/// starts at r + i, B at p + m - 1 + 2 (p - 1 - r + i). One curve of activations per rank, in
/// microbatches.
passes::Timeline gpipe_timeline(std::uint32_t p, std::uint32_t m);

/// Two ranks; the first runs `F0` and `B1` together in a group after an F, with a send on a
/// separate lane. Times in seconds.
passes::Timeline overlapped_timeline();

/// A picture of a timeline without a DAG and without locations.
pictures::Picture picture_of(passes::Timeline timeline, std::string title = "sample");

}  // namespace piper::test
