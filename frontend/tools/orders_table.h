#pragma once
// The order of operations per rank, as `show orders` and `show grid` print it: read from an ordered or planned DAG.
//
// Ranks are the coordinates that the order speaks of (replicas collapsed); without an order, the distinct device sets.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/dag/dag.h"

namespace piper::tools {

struct OrdersTable {
  struct Op {
    Pass pass = Pass::F;
    std::string region;                 // `stage[2]`
    std::optional<std::uint32_t> stage; // where the program has a single partition
    std::uint32_t mb = 0;               // counts over the whole batch
    std::uint32_t copy = 0, slice = 0;
    std::optional<std::uint32_t> group;
    DeviceSetId devices;
    std::uint32_t text_position = 0;    // members of an overlap group: where the order's text has them
    double start = 0, end = 0;          // at unit times: F, BI and BW take 1 share of a rank's stage, B takes 2
  };
  std::vector<DeviceSetId> ranks;
  std::vector<std::vector<Op>> orders;  // per rank, as executed
  std::uint32_t stages = 0;             // 0: no single partition
  std::uint32_t microbatches = 1;
  std::vector<std::vector<std::uint32_t>> placement;  // per copy, per stage: the rank; empty without single partition
};

/// `dag` is at level ordered or planned; `directives` are those it was made with.
OrdersTable orders_table(const dag::Dag& dag, std::span<const directive::Directive> directives);

/// Members of an overlap group stand in text order.
std::string orders_text(const OrdersTable& table);
/// The schema of `show orders --format json`.
std::string orders_json(const OrdersTable& table, const dag::Dag& dag);
/// One row per rank, one column per unit of time; `&` joins the members of an overlap group.
std::string grid_text(const OrdersTable& table);

}  // namespace piper::tools
