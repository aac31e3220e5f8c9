#pragma once
// The types of the values of a DAG on devices, and their bytes. `Dag::output_type` is global; below
// level placed layouts are requests, and a device has the whole value.
//
//   local_type(dag, load.x.mb1, {0, 1})   f32[batch: 2*, dim: 16]      of f32[batch: 4*, dim: 16]

#include <cstdint>
#include <span>

#include "ir/dag/dag.h"

namespace piper::dag {

/// The type of an output on the device at these coordinates: the extents of its box.
tensor::Type local_type(const Dag& dag, Port port, std::span<const std::uint32_t> coordinates);
/// The type of the largest box of a value of this type and layout, that of the first device along
/// each axis. Plans reserve as much on all devices, so that these have equal offsets.
tensor::Type largest_part(const Dag& dag, const tensor::Type& type, LayoutId layout);
/// The bytes that plans reserve for an output on a device.
std::int64_t planned_bytes(const Dag& dag, Port port);
/// The bytes of an output on all devices of its node together.
std::int64_t bytes_on_all_devices(const Dag& dag, Port port);

}  // namespace piper::dag
