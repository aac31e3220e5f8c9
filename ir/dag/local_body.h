#pragma once
// Bodies as devices run them. A body has global extents; a device runs it on the boxes of its
// values.
//
//   body @net.F(%x: data f32[batch: 7*, dim: 4]<dp: batch>)   on dp: 2   at (0)   %x: f32[batch: 4*, dim: 4]
//                                                                        at (1)   %x: f32[batch: 3*, dim: 4]

#include <cstdint>
#include <span>
#include <vector>

#include "ir/dag/dag.h"
#include "ir/layout/box.h"

namespace piper::dag {

/// The body with the extents that the device at these coordinates has. Layouts stay.
Body local_body(const Body& body, const Mesh& mesh, std::span<const std::uint32_t> coordinates);

/// The distinct shardings of dimensions of the body's values that give devices different extents.
/// Devices with equal extents of these run equal local bodies.
std::vector<Sharding> uneven_shardings(const Body& body, const Mesh& mesh);
/// The uneven shardings of all bodies; empty below level placed.
std::vector<Sharding> uneven_shardings(const Dag& dag);

/// The extents of these shardings on the device at these coordinates.
std::vector<std::int64_t> local_extents(std::span<const Sharding> shardings, const Mesh& mesh,
                                        std::span<const std::uint32_t> coordinates);

}  // namespace piper::dag
