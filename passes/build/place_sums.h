#pragma once
// Places sums: the segments in which, and the order in which, the adjoints of a value that several
// segments read are added up.
//
// A segment adds its own adjoints of a value to the incoming sums, and one sum leaves it. A sum
// goes to the next segment on the same devices that makes adjoints of that value; from the last of
// these to the last one of the next devices on the way back; from there to the segment that makes
// the value. So one sum of a value leaves a device set, and needs few extra messages. A sum is
// moved only if no work waits for more than with all sums at the producers of their values.
//
//   a value of segment 0 on device 0, read by          segment 4:  s4      segment 2:  s4 + s2
//   segments 1 to 4, on devices 1, 2, 1, 2             segment 3:  s3      segment 1:  ((s4 + s2) + s3) + s1, which goes to segment 0
//
// Guarantees: if no segments share devices the order of additions is that of the model: from the
// last use to the first. The order is part of the DAG, so the one-device run has it too.

#include <cstdint>
#include <optional>
#include <span>

#include "ir/mesh.h"
#include "ir/tensor/graph.h"
#include "passes/build/segments.h"

namespace piper::passes {

/// The devices of a segment.
struct SegmentDevices {
  std::uint32_t number = 0;  // equal numbers: the same devices, in all instances
  AxisMask axes = 0;         // axes over which its samples are sharded
};

/// Moves sums between segments as `cut_segments` leaves them, with backward operations beside the
/// forward ones; `devices`: per segment. Returns the model with the sums in their new order if the
/// order changed; ids stay.
std::optional<tensor::Graph> place_sums(const tensor::Graph& model, Segments& segments,
                                        std::span<const SegmentDevices> devices);

}  // namespace piper::passes
