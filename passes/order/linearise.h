#pragma once
// One global linear order of all nodes, of which every rank's issue order is a restriction. A
// matched communication is one point.
//
//   F.stage0.mb0, send.F.stage0.mb0.pp1, recv.F.stage0.mb0.pp1, F.stage0.mb1, F.stage1.mb0, ...
//
// It is a topological sort of data flow, compute orders, message numbers and windows, along the
// times of a simulation at unit costs: a message directly after its producer, a load directly
// before its first reader, an in-place sum directly after its last term, a reduction directly after
// its sum, and units that end the step (norms, updates, reports) after the last chunk of the rank,
// so that waiting for a collective delays no chunk.

#include <cstdint>
#include <span>
#include <vector>

#include "passes/order/communicators.h"
#include "passes/order/roles.h"
#include "passes/order/work_graph.h"

namespace piper::passes {

/// Fills `dag.order`, and sorts the terms of sums. `compute`: all chunk nodes in an order that
/// agrees with every rank's; `after`: its chains; `named`: edges of communication that an order
/// names. False: they contradict each other, which cannot happen for a checked order.
bool linearise(dag::Dag& dag, const WorkGraph& graph, const RoleTable& roles,
               const Communicators& communicators, std::span<const dag::NodeId> compute,
               std::span<const Adjacency::Pair> after, std::span<const Adjacency::Pair> named);

/// Inserts in-place sums into `dag.order` directly after their last terms, and sorts their terms as
/// they are made. All other nodes must be in the order.
void place_sums(dag::Dag& dag);

/// Edges between units for consecutive chunks of each role.
std::vector<Adjacency::Pair> chains(const WorkGraph& graph, const RoleTable& roles,
                                    std::span<const dag::NodeId> compute);

}  // namespace piper::passes
