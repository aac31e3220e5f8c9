#pragma once
// Bytes sent in one step, by communicator. The data of `show comm` and `require traffic`.

#include <cstdint>
#include <string>
#include <vector>

#include "ir/dag/plan.h"

namespace piper::passes {

/// Bytes that all devices send for one communication: those of a ring for collectives; for a copy
/// to or from the host, those that move.
std::int64_t bytes_sent(const dag::Dag& dag, const dag::Comm& comm);

struct TrafficRow {
  std::string communicator;          // `pp0.to.pp1`, as in the text of the DAG
  std::vector<DeviceSetId> members;  // of a pair: source, destination
  std::string stream;
  dag::NodeKind kind = dag::NodeKind::send;
  // `F`, `B`: values of that pass; of collectives `gradients`, `losses`, `counts`, `norm`.
  std::string what;
  std::uint64_t operations = 0;  // matched communications
  std::int64_t bytes = 0;        // by all devices of the communicator
};

/// Rows by communicator, in the plan's order, then by kind. Together they cover all that a planned
/// DAG sends, and copies to and from hosts.
std::vector<TrafficRow> traffic_table(const dag::Dag& dag);

}  // namespace piper::passes
