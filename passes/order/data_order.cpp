#include "passes/order/data_order.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace piper::passes {

using namespace dag;

void DataOrder::sort(std::vector<NodeId>& nodes) {
  const WorkGraph& graph = pending_.connected();
  if (position_.empty()) {
    position_.resize(graph.units());
    const std::vector<std::uint32_t> order = topological_order(graph, Adjacency(graph.units(), {}));
    for (std::uint32_t i = 0; i < order.size(); ++i) position_[order[i]] = i;
  }
  std::sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) {
    return position_[graph.unit_of(a)] < position_[graph.unit_of(b)];
  });
}

void DataOrder::start_visit() {
  visited_.resize(units_.units(), 0);
  number_.resize(visited_.size());
  ++visit_;
  reached_.clear();
}

/// Whether the unit was not reached before.
bool DataOrder::visit(std::uint32_t unit) {
  if (visited_[unit] == visit_) return false;
  visited_[unit] = visit_;
  number_[unit] = static_cast<std::uint32_t>(reached_.size());
  reached_.push_back(unit);
  return true;
}

void DataOrder::sort_as_written(std::vector<NodeId>& nodes) {
  const WorkGraph& graph = pending_.connected();
  start_visit();
  for (const NodeId node : nodes) visit(graph.unit_of(node));
  missing_.assign(nodes.size(), 0);
  // Follows edges from them; inside a step, data flows between chunks only within one instance.
  const auto for_each_next = [&](std::uint32_t number, auto&& take) {
    const std::uint32_t unit = reached_[number];
    for (const std::uint32_t next : graph.successors(unit)) {
      if (instance(next) == instance(unit)) take(next);
    }
  };
  for (std::uint32_t i = 0; i < reached_.size(); ++i) {
    for_each_next(i, [&](std::uint32_t next) {
      if (visit(next)) missing_.push_back(0);
      ++missing_[number_[next]];
    });
  }
  // The nodes have numbers in written order; all other units come after them and are passed through
  // at once.
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  std::vector<std::uint32_t> passed;
  const auto release = [&](std::uint32_t number) {
    if (number < nodes.size()) {
      ready.push(number);
    } else {
      passed.push_back(number);
    }
  };
  std::vector<NodeId> sorted;
  sorted.reserve(nodes.size());
  for (std::uint32_t i = 0; i < reached_.size(); ++i) {
    if (missing_[i] == 0) release(i);
  }
  while (!passed.empty() || !ready.empty()) {
    std::uint32_t number;
    if (!passed.empty()) {
      number = passed.back();
      passed.pop_back();
    } else {
      number = ready.top();
      ready.pop();
      sorted.push_back(nodes[number]);
    }
    for_each_next(number, [&](std::uint32_t next) {
      if (--missing_[number_[next]] == 0) release(number_[next]);
    });
  }
  nodes.swap(sorted);
}

bool DataOrder::reaches(NodeId from, NodeId to) {
  const WorkGraph& graph = pending_.connected();
  const std::uint32_t start = graph.unit_of(from), target = graph.unit_of(to);
  start_visit();
  visit(start);
  for (std::size_t i = 0; i < reached_.size(); ++i) {
    for (const std::uint32_t next : graph.successors(reached_[i])) {
      if (next == target) return true;
      if (instance(next) == instance(start)) visit(next);
    }
  }
  return false;
}

}  // namespace piper::passes
