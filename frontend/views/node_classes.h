#pragma once
// Nodes of a DAG that differ only in their indices along split dimensions, and have similar inputs:
// one class for a reader.
//
//   F.stage1.mb0 (recv.F.stage0.mb0.p1), ..., F.stage1.mb7 (recv.F.stage0.mb7.p1)   ->   F.stage1.mb[0..8] (recv.F.stage0.mb.p1)

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/dag/dag.h"

namespace piper::views {

/// The indices of nodes along one split dimension.
struct Indices {
  enum class Kind : std::uint8_t {
    none,     // they are not split along it
    own,      // for each reader, the node at its own index plus `offset`
    listed,   // `values`
    various,  // not the same for all readers
  };
  Kind kind = Kind::none;
  std::int32_t offset = 0;
  std::vector<std::int32_t> values;  // ascending
};

/// Per split dimension; there are nodes at all combinations, unless some are various.
using IndexSet = std::array<Indices, dag::kMaxSplitDims>;

/// As in names: `.mb[0..8].copy1` for listed indices, `.mb` and `.mb-1` for its own and the one
/// before, `.mb*` for various ones.
std::string index_text(const dag::Dag& dag, const IndexSet& at);

/// An input of each member of a class.
struct Reading {
  struct Term {
    dag::NodeId first;        // one that the first member reads; invalid: no node made the values
    std::uint32_t nodes = 0;  // that each member reads
    IndexSet at;
  };
  dag::EdgeClass cls = dag::EdgeClass::data;
  // of each member: that read a value of one node, or the sum of one of each; where `each`, so many
  // of every node
  std::uint32_t ports = 0;
  bool each = false;        // several nodes give values of their own
  std::vector<Term> terms;  // whose values are added
};

struct NodeClass {
  std::vector<dag::NodeId> members;
  IndexSet at;
  std::vector<Reading> readings;
};

/// Every node is in one class. Classes are in the order of their first members, members likewise:
/// the global order if the level has it, otherwise by id.
std::vector<NodeClass> node_classes(const dag::Dag& dag);

}  // namespace piper::views
