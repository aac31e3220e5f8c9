#include "ir/orders/order_value.h"

#include <algorithm>
#include <utility>

namespace piper::orders {

using directive::CommClass;
using directive::Order;
using directive::OrderCoordinate;
using directive::OrderOp;
using directive::OrderStep;

namespace {

StepTree read(const Order& order, std::uint32_t index) {
  const OrderStep& step = order.steps[index];
  StepTree tree;
  tree.kind = step.kind;
  tree.loc = step.loc;
  if (step.kind == OrderStep::Kind::op) {
    const auto first = order.ops.begin() + step.first;
    tree.ops.assign(first, first + step.count);
    return tree;
  }
  for (std::uint32_t i = 0; i < step.count; ++i)
    tree.children.push_back(read(order, order.children[step.first + i]));
  return tree;
}

std::uint32_t write(const StepTree& tree, Order& order) {
  OrderStep step{tree.kind, 0, 0, tree.loc};
  if (tree.kind == OrderStep::Kind::op) {
    step.first = static_cast<std::uint32_t>(order.ops.size());
    step.count = static_cast<std::uint32_t>(tree.ops.size());
    order.ops.insert(order.ops.end(), tree.ops.begin(), tree.ops.end());
  } else {
    std::vector<std::uint32_t> children;
    for (const StepTree& child : tree.children) children.push_back(write(child, order));
    step.first = static_cast<std::uint32_t>(order.children.size());
    step.count = static_cast<std::uint32_t>(children.size());
    order.children.insert(order.children.end(), children.begin(), children.end());
  }
  order.steps.push_back(step);
  return static_cast<std::uint32_t>(order.steps.size() - 1);
}

bool is_empty(const StepTree& step) { return step.ops.empty() && step.children.empty(); }

void remove_empty(StepTree& step) {
  if (step.kind == OrderStep::Kind::op) return;
  remove_empty(step.children);
  if (step.children.size() != 1) return;
  StepTree only = std::move(step.children.front());
  only.slot = step.slot;
  step = std::move(only);
}

}  // namespace

OrderTree tree_of(OrderValue value) {
  OrderTree tree;
  for (std::size_t r = 0; r < value.order.ranks.size(); ++r) {
    const directive::RankSteps& rank = value.order.ranks[r];
    RankTree& out = tree.ranks.emplace_back();
    out.devices = rank.devices;
    out.loc = rank.loc;
    out.slotted = r < value.slots.size() && !value.slots[r].empty();
    for (std::uint32_t i = 0; i < rank.num_steps; ++i) {
      out.steps.push_back(read(value.order, value.order.children[rank.first_step + i]));
      if (out.slotted) out.steps.back().slot = value.slots[r][i];
    }
  }
  for (const PendingGradient& pending : value.pending)
    tree.ranks[pending.rank].pending.push_back(pending.op);
  tree.coordinates = std::move(value.order.coordinates);
  tree.trims = std::move(value.order.trims);
  tree.origins = std::move(value.order.origins);
  tree.loc = value.order.loc;
  tree.sharing_ranks = value.sharing_ranks;
  return tree;
}

OrderValue value_of(OrderTree tree) {
  OrderValue value;
  for (const RankTree& rank : tree.ranks) {
    std::vector<std::uint32_t> steps;
    std::vector<std::int64_t>& slots = value.slots.emplace_back();
    for (const StepTree& step : rank.steps) {
      steps.push_back(write(step, value.order));
      if (rank.slotted) slots.push_back(step.slot);
    }
    const auto position = static_cast<std::uint32_t>(value.order.ranks.size());
    value.order.ranks.push_back({rank.devices,
                                 static_cast<std::uint32_t>(value.order.children.size()),
                                 static_cast<std::uint32_t>(steps.size()), rank.loc});
    value.order.children.insert(value.order.children.end(), steps.begin(), steps.end());
    for (const OrderOp& op : rank.pending) value.pending.push_back({op, position});
  }
  value.order.coordinates = std::move(tree.coordinates);
  value.order.trims = std::move(tree.trims);
  value.order.origins = std::move(tree.origins);
  value.order.loc = tree.loc;
  value.sharing_ranks = tree.sharing_ranks;
  return value;
}

void append(OrderTree& tree, OrderTree more) {
  const auto offset = static_cast<std::uint32_t>(tree.coordinates.size());
  for (RankTree& rank : more.ranks) {
    for (StepTree& step : rank.steps)
      for_each_op(step, [&](OrderOp& op) { op.first_coordinate += offset; });
    for (OrderOp& op : rank.pending) op.first_coordinate += offset;
    tree.ranks.push_back(std::move(rank));
  }
  tree.coordinates.insert(tree.coordinates.end(), more.coordinates.begin(), more.coordinates.end());
  for (Order::Origin origin : more.origins) {
    origin.first += offset;
    origin.end += offset;
    tree.origins.push_back(origin);
  }
  tree.trims.insert(tree.trims.end(), more.trims.begin(), more.trims.end());
}

void apply_trims(OrderTree& tree, std::span<const Symbol> dims) {
  const auto applies = [&](const Order::Trim& trim) {
    return std::find(dims.begin(), dims.end(), trim.dim) != dims.end();
  };
  const auto dropped = [&](const OrderOp& op) {
    for (std::uint32_t i = 0; i < op.num_coordinates; ++i) {
      const OrderCoordinate& at = tree.coordinates[op.first_coordinate + i];
      for (const Order::Trim& trim : tree.trims) {
        if (at.name == trim.dim && !at.rest && !at.all && at.index >= trim.bound && applies(trim))
          return true;
      }
    }
    return false;
  };
  if (std::none_of(tree.trims.begin(), tree.trims.end(), applies)) return;
  const auto prune = [&](const auto& self, StepTree& step) -> void {
    std::erase_if(step.ops, dropped);
    for (StepTree& child : step.children) self(self, child);
  };
  for (RankTree& rank : tree.ranks) {
    for (StepTree& step : rank.steps) prune(prune, step);
    remove_empty(rank.steps);
    std::erase_if(rank.pending, dropped);
  }
  std::erase_if(tree.trims, applies);
}

void remove_empty(std::vector<StepTree>& steps) {
  for (StepTree& step : steps) remove_empty(step);
  std::erase_if(steps, is_empty);
}

void make_list(RankTree& rank) {
  std::vector<StepTree> list;
  const auto add = [&](const auto& self, StepTree& step) -> void {
    if (step.kind != OrderStep::Kind::sequence) {
      list.push_back(std::move(step));
    } else {
      for (StepTree& child : step.children) self(self, child);
    }
  };
  for (StepTree& step : rank.steps) add(add, step);
  rank.steps = std::move(list);
  rank.slotted = false;
}

std::int64_t length(const OrderOp& op) {
  return op.part != CommClass::none ? 0 : op.pass == Pass::B ? 2 : 1;
}

std::int64_t length(const StepTree& step) {
  std::int64_t total = 0;
  for_each_op(step, [&](const OrderOp& op) { total += length(op); });
  return total;
}

bool matches(const OrderOp& op, const Pattern& pattern, const OrderTree& tree) {
  return op.pass == pattern.pass && op.part == CommClass::none && agrees(op, pattern, tree);
}

bool agrees(const OrderOp& op, const Pattern& pattern, const OrderTree& tree) {
  const auto coordinates =
      std::span(tree.coordinates).subspan(op.first_coordinate, op.num_coordinates);
  return std::all_of(
      pattern.coordinates.begin(), pattern.coordinates.end(),
      [&](const directive::Coordinate& wanted) {
        const auto found =
            std::find_if(coordinates.begin(), coordinates.end(), [&](const OrderCoordinate& at) {
              return at.name == wanted.name && at.rest == wanted.rest;
            });
        return found != coordinates.end() &&
               (wanted.all ||
                (!found->all &&
                 std::binary_search(wanted.indices.begin(), wanted.indices.end(), found->index)));
      });
}

}  // namespace piper::orders
