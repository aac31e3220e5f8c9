#include "passes/simulate/joined_units.h"

#include <numeric>
#include <string>
#include <tuple>

namespace piper::passes {

using namespace dag;

namespace {

using Op = OrdersTable::Op;
using Row = OrdersTable::Row;

/// One F and one B or BI; each may be several operations if a stage has several segments.
bool is_pair(const Row& row, const OpGroup& group) {
  const auto what = [](const Op& op) {
    return std::tuple(op.stage ? std::string() : op.region, op.stage, op.mb, op.copy, op.slice);
  };
  const Op *forward = nullptr, *backward = nullptr;
  for (std::size_t i = group.first; i < group.end; ++i) {
    const Op& op = row.ops[i];
    if (op.pass == Pass::BW || op.pass == Pass::R) return false;
    const Op*& known = op.pass == Pass::F ? forward : backward;
    if (known != nullptr && (known->pass != op.pass || what(*known) != what(op))) return false;
    known = &op;
  }
  return forward != nullptr && backward != nullptr;
}

class UnitJoiner {
 public:
  UnitJoiner(const Dag& dag, const WorkGraph& graph, const OrdersTable& table,
             const WorkFractions& fractions, std::optional<double> pair, WorkRules& rules)
      : dag_(dag),
        graph_(graph),
        table_(table),
        fractions_(fractions),
        pair_(pair),
        rules_(rules) {}

  void run(bool operations) {
    rules_.runs_with.resize(graph_.units());
    std::iota(rules_.runs_with.begin(), rules_.runs_with.end(), 0);
    for (const Row& row : table_.rows) {
      if (pair_) {
        for (const OpGroup& group : groups_of(row)) {
          if (is_pair(row, group)) join_pair(row, group);
        }
      }
      for (const Op& op : row.ops) {
        if (operations && op.num_nodes > 1) join(nodes_of(row, op));
      }
    }
    for (std::uint32_t unit = 0; unit < graph_.units(); ++unit)
      rules_.runs_with[unit] = joined(unit);
  }

 private:
  /// The representative of the units that run as one with a unit.
  std::uint32_t joined(std::uint32_t unit) {
    while (rules_.runs_with[unit] != unit)
      unit = rules_.runs_with[unit] = rules_.runs_with[rules_.runs_with[unit]];
    return unit;
  }

  std::uint32_t join(std::span<const NodeId> nodes) {
    const std::uint32_t first = joined(graph_.unit_of(nodes.front()));
    for (const NodeId node : nodes) {
      const std::uint32_t other = joined(graph_.unit_of(node));
      if (other == first) continue;
      rules_.runs_with[other] = first;
      rules_.cost[first] += rules_.cost[other];
    }
    return first;
  }

  /// Units that two ranks run together are joined once.
  void join_pair(const Row& row, const OpGroup& group) {
    std::vector<NodeId> nodes;
    double fraction = 0;
    for (std::size_t i = group.first; i < group.end; ++i) {
      for (const NodeId node : nodes_of(row, row.ops[i])) {
        nodes.push_back(node);
        fraction += fractions_.of(dag_.node(node), dag_.node(node).pass) / 2;
      }
    }
    const std::uint32_t first = join(nodes);
    rules_.cost[first] = *pair_ * fraction;
  }

  const Dag& dag_;
  const WorkGraph& graph_;
  const OrdersTable& table_;
  const WorkFractions& fractions_;
  const std::optional<double> pair_;
  WorkRules& rules_;
};

}  // namespace

std::vector<OpGroup> groups_of(const Row& row) {
  std::vector<OpGroup> groups;
  for (std::size_t i = 0; i < row.ops.size();) {
    std::size_t next = i + 1;
    while (row.ops[i].group && next < row.ops.size() && row.ops[next].group == row.ops[i].group)
      ++next;
    if (row.ops[i].group) groups.push_back({i, next});
    i = next;
  }
  return groups;
}

std::span<const NodeId> nodes_of(const Row& row, const Op& op) {
  return std::span(row.nodes).subspan(op.first_node, op.num_nodes);
}

void join_units(const Dag& dag, const WorkGraph& graph, const OrdersTable& table,
                const WorkFractions& fractions, std::optional<double> pair, bool operations,
                WorkRules& rules) {
  UnitJoiner(dag, graph, table, fractions, pair, rules).run(operations);
}

double work_of(const WorkGraph& graph, const WorkRules& rules, const Row& row) {
  double work = 0;
  std::uint32_t counted = WorkTimes::kNone;
  for (const Op& op : row.ops) {
    for (const NodeId node : nodes_of(row, op)) {
      const std::uint32_t activity = rules.runs_with[graph.unit_of(node)];
      if (activity != counted) work += rules.cost[activity];
      counted = activity;
    }
  }
  return work;
}

}  // namespace piper::passes
