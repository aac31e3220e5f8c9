#include "passes/order/second_forwards.h"

#include <algorithm>
#include <span>
#include <variant>

namespace piper::passes {

using namespace dag;
using directive::CommClass;
using directive::Order;
using directive::OrderOp;
using directive::OrderStep;
using directive::RankSteps;

SecondForwards::SecondForwards(const Dag& dag, const directive::Strategy& strategy,
                               const RoleTable& roles, Selection& selection, DataOrder& data_order,
                               const LocationTable& locations)
    : dag_(dag),
      roles_(roles),
      selection_(selection),
      data_order_(data_order),
      locations_(locations),
      any_(!dag.forward_only &&
           std::any_of(dag.chunks.begin(), dag.chunks.end(), [](const Chunk& chunk) {
             return chunk.bodies[static_cast<std::size_t>(Pass::R)].valid();
           })) {
  if (!any_) return;
  // Selectors without matches are reported when they are applied.
  DiagnosticSink unread(locations_);
  std::vector<NodeId> named;
  for (const directive::Directive& directive : strategy.directives) {
    const auto* order = std::get_if<Order>(&directive);
    for (std::size_t i = 0; order != nullptr && i < order->ops.size(); ++i) {
      if (order->ops[i].pass == Pass::R && order->ops[i].part == CommClass::none)
        selection_.nodes(*order, order->ops[i], unread, named);
    }
  }
  named_.insert(named.begin(), named.end());
}

NodeId SecondForwards::before(NodeId node) {
  if (!any_) return {};
  const Node& work = dag_.node(node);
  if (work.pass != Pass::B && work.pass != Pass::BI) return {};
  const NodeId again =
      selection_.work().at(work.chunk, Pass::R, selection_.instances().position(work.instance));
  return again.valid() && !named_.contains(again) ? again : NodeId();
}

std::vector<std::pair<NodeId, LocId>> SecondForwards::before_group(const Order& order,
                                                                   const OrderStep& group,
                                                                   const RankSteps& rank) {
  Group members;
  find(order, group, rank, members);
  std::erase_if(members.found, [&](const std::pair<NodeId, LocId>& found) {
    const Node& node = dag_.node(found.first);
    return members.forwards.contains(
        selection_.work().at(node.chunk, Pass::F, selection_.instances().position(node.instance)));
  });
  return std::move(members.found);
}

void SecondForwards::find(const Order& order, const OrderStep& step, const RankSteps& rank,
                          Group& group) {
  if (step.kind != OrderStep::Kind::op) {
    for (const std::uint32_t child : std::span(order.children).subspan(step.first, step.count))
      find(order, order.steps[child], rank, group);
    return;
  }
  DiagnosticSink unread(locations_);
  std::vector<NodeId> nodes;
  for (const OrderOp& op : std::span(order.ops).subspan(step.first, step.count)) {
    if (op.part != CommClass::none || op.pass == Pass::R || op.pass == Pass::BW) continue;
    nodes.clear();
    selection_.nodes(order, op, unread, nodes);
    if (op.pass == Pass::F) {
      group.forwards.insert(nodes.begin(), nodes.end());
      continue;
    }
    std::erase_if(nodes, [&](NodeId node) {
      return !roles_.contains(dag_.node(node).devices, rank.devices);
    });
    if (nodes.size() > 1) data_order_.sort(nodes);
    for (const NodeId node : nodes) {
      if (const NodeId again = before(node); again.valid()) group.found.emplace_back(again, op.loc);
    }
  }
}

}  // namespace piper::passes
