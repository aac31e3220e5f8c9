#pragma once
// State and traffic of buckets beside the formulas of ZeRO (Rajbhandari et al. 2020, arXiv 1910.02054; docs/layouts.md section 3). What `show memory` and `show comm` print below
// their tables where something is cut.
//
// The formulas know the bytes of parameters, how many devices share them, and how often a plan reduces and gathers; the planned bytes are those of buffers and
// messages. They differ by padding.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/dag/plan.h"

namespace piper::passes {

/// What a device of a role keeps of buckets that are cut alike, in bytes.
struct StateShare {
  std::string role;
  int zero = 0;
  AxisMask flat = 0;
  bool frozen = false;                  // parameters alone
  std::int64_t members = 1;             // k: devices along the flat axes
  std::int64_t parameters = 0;          // Psi: bytes of the parameters without padding
  std::int64_t sums = 0;                // of their gradients, and of a slot of the optimizer
  std::int64_t slots = 0;               // a master among them
  std::array<std::int64_t, 3> formula{};  // parameters, gradients, optimizer state
  std::array<std::int64_t, 3> planned{};
};

/// What all devices of all homes send in a step for buckets that are cut and reduced alike, in bytes.
struct TrafficShare {
  int zero = 0;
  AxisMask flat = 0, reduce = 0;
  bool frozen = false;                  // gathered alone
  std::int64_t parameters = 0;          // of the buckets, at one home each
  std::int64_t rings = 0;               // of k devices that move a bucket, at all homes; of a bucket that has most of them
  double sums = 0, gathers = 0;         // how often a bucket is reduced and gathered at one home, on average over the bytes
  std::array<std::int64_t, 2> formula{};  // sums, gathers
  std::array<std::int64_t, 2> planned{};
};

/// Nothing where no bucket is cut. Of a planned training program.
std::vector<StateShare> state_shares(const dag::Dag& dag);
std::vector<TrafficShare> traffic_shares(const dag::Dag& dag);

}  // namespace piper::passes
