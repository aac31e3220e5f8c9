#pragma once
// The order of work on every rank as plain data: what `show orders` and `show grid` print (docs/cli.md section 4 has the JSON).
//
// Rows are the ranks that the orders speak of, replicas collapsed; without an order, and for ranks that no order claims, the distinct device sets
// that run chunks. Consecutive chunks of one stage, pass and instance are one operation. A forward that runs again in pieces between the pieces of its backward is
// one operation before it.

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
    std::string region;                   // `stage[2]`, `block[1].rest[0]`: as a selector names it
    bool part_of_stage = false;           // the region is not all of it: `stage[0].block[1]`, `left[0].stage[0]`
    std::optional<std::uint32_t> stage;   // with a single partition
    std::uint32_t mb = 0;                 // over the whole batch: copy 1 continues where copy 0 ends
    std::uint32_t copy = 0, slice = 0;
    std::optional<std::uint32_t> part;    // where the row has several of this name, pass and instance (a region runs in pieces, or as two calls): its number among them
    bool offloads = false, fetches = false;  // values that it makes go to the memory of the host behind it; values that it reads come back from there
    bool alternates = false;              // R whose pieces run between those of the backward behind it
    std::optional<std::uint32_t> group;   // overlap group, numbered per rank from 0; members stand in text order
    DeviceSetId devices;
    LocId loc;
    dag::NodeId first, last;              // its chunks, as they run
    std::uint32_t first_node = 0, num_nodes = 0;  // the same, all of them: into Row::nodes
  };
  struct Row {
    DeviceSetId devices;
    std::vector<Op> ops;
    std::vector<dag::NodeId> nodes;                     // of one operation after the other
  };
  std::vector<Row> rows;                                // ascending by coordinates
  std::uint32_t stages = 0;                             // 0: no single partition
  std::uint32_t microbatches = 1;
  std::vector<std::vector<std::uint32_t>> placement;    // per copy: the row of every stage; empty: no single one, and every operation says its devices
};

/// `dag` is at level ordered or above.
OrdersTable orders_table(const dag::Dag& dag);

}  // namespace piper::passes
