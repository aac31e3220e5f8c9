#pragma once
// An order as a value of the language: ranks and their steps, the slots of `at`, and the weight
// gradients that are pending. Transforms take such a value and give another (grammar/README.md
// section 7, item 10); each has a file of its own.
//
//   OrderTree tree = tree_of(std::move(value));
//   postpone(tree, pattern, 2, on);
//   value = value_of(std::move(tree));

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ir/directive/directive.h"

namespace piper::orders {

/// A weight gradient that was postponed (`BI`) and not run when its rank ended.
struct PendingGradient {
  directive::OrderOp op;   // `BW`; coordinates lie in the order's table
  std::uint32_t rank = 0;  // position in Order::ranks
};

/// An order with its pending weight gradients; they are an error when the order is applied.
struct OrderValue {
  directive::Order order;
  std::vector<PendingGradient> pending;  // by rank, oldest first
  /// By rank: the slots of its steps, ascending; empty for a rank without slots.
  std::vector<std::vector<std::int64_t>> slots;
  /// The number of ranks that share the model, if `only` dropped some of them; 0: all are here.
  std::uint32_t sharing_ranks = 0;
};

/// A step with all that is in it.
struct StepTree {
  directive::OrderStep::Kind kind = directive::OrderStep::Kind::op;
  LocId loc;
  std::vector<directive::OrderOp> ops;  // of an operation
  std::vector<StepTree> children;       // of a sequence or a group
  std::int64_t slot = 0;                // of a step of a rank with slots
};

struct RankTree {
  DeviceSetId devices;
  LocId loc;
  bool slotted = false;  // the slots of the steps are given, and ascend
  std::vector<StepTree> steps;
  std::vector<directive::OrderOp> pending;  // oldest first
};

/// An order in a form that transforms change in place. Operations refer to `coordinates`.
struct OrderTree {
  std::vector<RankTree> ranks;
  std::vector<directive::OrderCoordinate> coordinates;
  std::vector<directive::Order::Trim> trims;
  std::vector<directive::Order::Origin> origins;
  LocId loc;
  std::uint32_t sharing_ranks = 0;
};

OrderTree tree_of(OrderValue value);
OrderValue value_of(OrderTree tree);

/// Appends the ranks of `more`.
void append(OrderTree& tree, OrderTree more);

/// Applies and removes the trims along these dimensions; others stay, because passes report them.
void apply_trims(OrderTree& tree, std::span<const Symbol> dims);

/// Calls `visit` with each operation of the step, in the order of the text.
template <typename Step, typename Visit>
void for_each_op(Step& step, const Visit& visit) {
  for (auto& op : step.ops) visit(op);
  for (auto& child : step.children) for_each_op(child, visit);
}

/// Removes sequences and groups without operations; a group of one member becomes that member.
void remove_empty(std::vector<StepTree>& steps);
/// Replaces the sequences among the steps of a rank by their own steps, and removes its slots.
void make_list(RankTree& rank);

/// Columns that an operation takes in a grid: 2 for `B`, 0 for communication, 1 for others.
std::int64_t length(const directive::OrderOp& op);
/// The columns of all operations of a step.
std::int64_t length(const StepTree& step);

/// Operations of one pass that agree with a conjunction of coordinates; communication never does.
struct Pattern {
  Pass pass = Pass::F;
  std::vector<directive::Coordinate> coordinates;  // indices ascend
};
bool matches(const directive::OrderOp& op, const Pattern& pattern, const OrderTree& tree);
/// Whether the coordinates agree, whatever the operation is.
bool agrees(const directive::OrderOp& op, const Pattern& pattern, const OrderTree& tree);

/// The ranks that a transform changes.
using OnRank = std::function<bool(DeviceSetId)>;

}  // namespace piper::orders
