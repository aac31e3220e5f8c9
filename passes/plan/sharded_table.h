#pragma once
// State and traffic of buckets beside the formulas of ZeRO (Rajbhandari et al. 2020, arXiv
// 1910.02054; docs/layouts.md section 3). Printed by `show memory` and `show comm` below their
// tables if buckets are sharded.
//
// The formulas use the bytes of parameters, the number of devices that shard them, and how often a
// plan reduces and gathers; the planned bytes are those of buffers and messages. They differ by
// padding.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/dag/plan.h"

namespace piper::passes {

/// Bytes that a device of a role keeps of buckets with equal sharding.
struct ShardedState {
  std::string role;
  int zero = 0;
  AxisMask flat = 0;
  bool frozen = false;          // only parameters
  std::int64_t members = 1;     // k: devices along the flat axes
  std::int64_t parameters = 0;  // Psi: bytes of the parameters without padding
  std::int64_t sums = 0;        // bytes of their gradients, and of a slot of the optimizer
  std::int64_t slots = 0;       // number of such slots, including master weights
  std::array<std::int64_t, 3> formula{};  // parameters, gradients, optimizer state
  std::array<std::int64_t, 3> planned{};
};

/// Bytes that all devices of all owners send in a step for buckets sharded and reduced alike.
struct ShardedTraffic {
  int zero = 0;
  AxisMask flat = 0, reduce = 0;
  bool frozen = false;          // only gathered
  std::int64_t parameters = 0;  // of the buckets, at one owner each
  // Number of rings of k devices that move a bucket, at all owners; the maximum over buckets.
  std::int64_t rings = 0;
  // How often a bucket is reduced and gathered at one owner, on average over the bytes.
  double sums = 0, gathers = 0;
  std::array<std::int64_t, 2> formula{};  // sums, gathers
  std::array<std::int64_t, 2> planned{};
};

/// For a planned training program; empty if no bucket is sharded.
std::vector<ShardedState> sharded_state(const dag::Dag& dag);
std::vector<ShardedTraffic> sharded_traffic(const dag::Dag& dag);

}  // namespace piper::passes
