#pragma once
// One global linear order of all nodes, of which every rank's issue order is a restriction. A matched communication stands as one point.
//
//   F.stage0.mb0, send.F.stage0.mb0.pp1, recv.F.stage0.mb0.pp1, F.stage0.mb1, F.stage1.mb0, ...
//
// It is a topological sort of data flow, compute orders, message numbers and windows, along the times of a simulation at unit costs: a message
// directly after what makes it, a load directly before its first reader, a reduction when its last contribution exists, and what
// ends the step (norms, updates, reports) after the last chunk of the rank, so that waiting for a collective delays no chunk.

#include <cstdint>
#include <span>
#include <vector>

#include "passes/order/communicators.h"
#include "passes/order/roles.h"
#include "passes/order/work_graph.h"

namespace piper::passes {

/// Fills `dag.order`; gives the position of every node. `compute`: all chunk nodes in an order
/// that agrees with every rank's; `after`: its chains; `named`: edges of communication that an order names. Nothing: these contradict each other, which a
/// checked order does not.
std::vector<std::uint32_t> linearise(dag::Dag& dag, const WorkGraph& graph, const RoleTable& roles, const Communicators& communicators, std::span<const dag::NodeId> compute,
                                     std::span<const Adjacency::Pair> after, std::span<const Adjacency::Pair> named);

/// Sorts the sources of grad ports into the order of the additions. `position`: of every node in the linear order.
void sort_sums(dag::Dag& dag, const WorkGraph& graph, const Communicators& communicators, std::span<const std::uint32_t> position);

/// Edges between units for consecutive chunks of each role.
std::vector<Adjacency::Pair> chains(const WorkGraph& graph, const RoleTable& roles, std::span<const dag::NodeId> compute);

}  // namespace piper::passes
