#pragma once
// Nodes of a DAG that differ in nothing but their indices along split dimensions, and read alike: what a reader sees as one.
//
//   F.stage1.mb0 (recv.F.stage0.mb0.p1), ..., F.stage1.mb7 (recv.F.stage0.mb7.p1)   ->   F.stage1.mb[0..8] (recv.F.stage0.mb.p1)

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/dag/dag.h"

namespace piper::views {

/// Of nodes, those along one split dimension.
struct Indices {
  enum class Kind : std::uint8_t {
    none,     // they are not split along it
    own,      // of each node that reads, the one at its own index plus `offset`
    listed,   // `values`
    various,  // not the same for all that read
  };
  Kind kind = Kind::none;
  std::int32_t offset = 0;
  std::vector<std::int32_t> values;  // ascending
};

/// Per split dimension; nodes stand at all combinations, unless some are various.
using IndexSet = std::array<Indices, dag::kMaxSplitDims>;

/// As a name has it: `.mb[0..8].copy1` of those that are listed, `.mb` and `.mb-1` of its own and the one before, `.mb*` of various ones.
std::string index_text(const dag::Dag& dag, const IndexSet& at);

/// What each member of a class reads.
struct Reading {
  struct Term {
    dag::NodeId first;        // one that the first member reads; invalid: no node made the values
    std::uint32_t nodes = 0;  // that each member reads
    IndexSet at;
  };
  dag::EdgeClass cls = dag::EdgeClass::data;
  std::uint32_t ports = 0;  // of each member: that read a value of one node, or the sum of one of each; where `each`, so many of every node
  bool each = false;        // several nodes give values of their own
  std::vector<Term> terms;  // whose values are added
};

struct NodeClass {
  std::vector<dag::NodeId> members;
  IndexSet at;
  std::vector<Reading> readings;
};

/// Every node is in one class. Classes stand in the order of their first members, members likewise: the global one where the level has it, otherwise by id.
std::vector<NodeClass> node_classes(const dag::Dag& dag);

}  // namespace piper::views
