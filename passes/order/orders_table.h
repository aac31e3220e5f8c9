#pragma once
// The order of work on every rank as plain data, for `show orders` and `show grid` (docs/cli.md
// section 4 has the JSON).
//
// Rows are the ranks that the orders claim, with replicas collapsed; for ranks without an order,
// the distinct device sets that run chunks. Consecutive chunks of one stage, pass and instance are
// one operation. `R`s that alternate with the chunks of their backward are one operation before it.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/dag/dag.h"

namespace piper::passes {

struct OrdersTable {
  struct Op {
    Pass pass = Pass::F;
    std::string region;  // `stage[2]`, `block[1].rest[0]`: the text of a selector
    // The region has further coordinates: `stage[0].block[1]`, `left[0].stage[0]`.
    bool part_of_stage = false;
    std::optional<std::uint32_t> stage;  // with a single partition
    // Over the whole batch: copy 1 continues where copy 0 ends.
    std::uint32_t mb = 0;
    std::uint32_t copy = 0, slice = 0;
    // If the row has several with this name, pass and instance (segments, or two calls): its number
    // among them.
    std::optional<std::uint32_t> part;
    // Its outputs are offloaded after it; its inputs are fetched.
    bool offloads = false, fetches = false;
    // R whose chunks run between those of the following backward.
    bool alternates = false;
    // Overlap group, numbered per rank from 0; members are in text order.
    std::optional<std::uint32_t> group;
    DeviceSetId devices;
    LocId loc;
    dag::NodeId first, last;                      // its chunks, as they run
    std::uint32_t first_node = 0, num_nodes = 0;  // all of its chunks: into Row::nodes
  };
  struct Row {
    DeviceSetId devices;
    std::vector<Op> ops;
    // Chunks of the operations, one after the other.
    std::vector<dag::NodeId> nodes;
  };
  std::vector<Row> rows;     // ascending by coordinates
  std::uint32_t stages = 0;  // 0: no single partition
  std::uint32_t microbatches = 1;
  // Per copy: the row of every stage; empty: there is no single one, and every operation has its
  // devices.
  std::vector<std::vector<std::uint32_t>> placement;
};

/// `dag` is at level ordered or above.
OrdersTable orders_table(const dag::Dag& dag);

}  // namespace piper::passes
