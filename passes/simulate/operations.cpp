#include "passes/simulate/operations.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "ir/dag/local_type.h"
#include "ir/dag/terms.h"
#include "passes/order/list_schedule.h"
#include "passes/order/orders_table.h"
#include "passes/simulate/figures.h"
#include "passes/simulate/idle_rank.h"
#include "passes/simulate/joined_units.h"
#include "passes/simulate/timeline_entries.h"
#include "passes/simulate/work_fraction.h"
#include "passes/simulate/work_times.h"

namespace piper::passes {

using namespace dag;

namespace {

using Op = OrdersTable::Op;
using Row = OrdersTable::Row;

constexpr std::uint32_t kNone = Timeline::kNone;

class Simulation {
 public:
  Simulation(const Dag& dag, const OperationCosts& costs, DiagnosticSink& sink)
      : dag_(dag),
        costs_(costs),
        sink_(sink),
        table_(orders_table(dag)),
        graph_(dag),
        roles_(dag, {}),
        fractions_(dag, costs.stages) {
    count_ranks();
    find_named();
    for (const Row& row : table_.rows)
      has_segments_ = has_segments_ || std::any_of(row.ops.begin(), row.ops.end(),
                                                   [](const Op& op) { return op.num_nodes > 1; });
  }

  std::optional<Timeline> run() {
    dag_.context->poll();
    weigh();
    if (!find_times()) return std::nullopt;
    dag_.context->poll();
    return timeline();
  }

  Timeline columns() {
    cost_.assign(graph_.units(), 0);
    for (const Row& row : table_.rows) {
      for (const Op& op : row.ops)
        cost_[graph_.unit_of(op.first)] = static_cast<double>(unit_cost(dag_.node(op.first)));
    }
    if (!find_times()) return {};
    return timeline();
  }

  double bubble_span() {
    weigh();
    if (!find_times()) return 0;
    double span = 0, most = 0;
    for (const Row& row : table_.rows) {
      double begin = std::numeric_limits<double>::infinity(), end = 0;
      for (const NodeId node : row.nodes) {
        begin = std::min(begin, times_->start(graph_.unit_of(node)));
        end = std::max(end, times_->finish(graph_.unit_of(node)));
      }
      span = std::max(span, end - begin);
      most = std::max(most, work_of(graph_, rules_, row));
    }
    return span > 0 ? 1 - most / span : 0;
  }

 private:
  // ---- ranks and edges

  /// Ranks with the same work are replicas that an order names one by one. Ranks without work do
  /// not count.
  void count_ranks() {
    std::map<std::vector<NodeId>, std::uint32_t> count;
    std::vector<const std::uint32_t*> of_row;
    for (const Row& row : table_.rows) {
      std::vector<NodeId> nodes = row.nodes;
      std::sort(nodes.begin(), nodes.end());
      std::uint32_t& alike = count[std::move(nodes)];
      ++alike;
      of_row.push_back(&alike);
    }
    count[{}] = 1;
    for (const std::uint32_t* alike : of_row) alike_.push_back(*alike);
    ranks_ = static_cast<double>(count.size() - 1);
  }

  /// Communication that an order names waits for the previous step of the order.
  void find_named() {
    for (const auto& [before, after] : dag_.temporal) {
      if (!runs_body(dag_.node(after).kind))
        rules_.more.push_back({graph_.unit_of(before), graph_.unit_of(after), 0});
    }
  }

  Timeline timeline() {
    TimelineEntries entries = make_entries({.dag = dag_,
                                            .costs = costs_,
                                            .table = table_,
                                            .graph = graph_,
                                            .fractions = fractions_,
                                            .rules = rules_,
                                            .times = *times_,
                                            .alike = alike_,
                                            .ranks = ranks_});
    out_ = std::move(entries.timeline);
    entry_of_ = std::move(entries.entry_of);
    binding_ = std::move(entries.binding);
    explain_waits();
    add_messages();
    add_idle_rank(out_, dag_);
    fill_figures(out_);
    return std::move(out_);
  }

  // ---- costs

  double cost_of(Pass pass) const {
    switch (pass) {
      case Pass::F: return costs_.f;
      case Pass::R: return costs_.r.value_or(costs_.f);
      case Pass::B: return costs_.b.value_or(costs_.bi + costs_.bw);
      case Pass::BI: return costs_.bi;
      case Pass::BW: return costs_.bw;
    }
    return 0;
  }

  void weigh() {
    rules_.latency = costs_.p2p;
    cost_.assign(graph_.units(), 0);
    for (std::uint32_t unit = 0; unit < graph_.units(); ++unit) {
      const Node& node = dag_.node(graph_.front(unit));
      if (runs_body(node.kind))
        cost_[unit] = cost_of(node.pass) * ranks_ * fractions_.of(node, node.pass);
    }
  }

  /// The cost of an F and a backward of the whole model that run together, over all ranks.
  std::optional<double> pair_cost() const {
    return costs_.pair ? std::optional(*costs_.pair * ranks_) : std::nullopt;
  }

  // ---- times

  /// The nodes of each role in the order of the table: that of the DAG except for `R`s of several
  /// chunks, and with `as_written` for members of groups.
  std::vector<std::vector<std::uint32_t>> list_order(bool as_written) const {
    std::vector<std::vector<std::uint32_t>> sequences = chunks_of_roles(dag_, graph_, roles_);
    std::vector<std::uint32_t> position;
    for (const Row& row : table_.rows) {
      const std::vector<OpGroup> groups = groups_of(row);
      if (groups.empty() &&
          std::none_of(row.ops.begin(), row.ops.end(), [](const Op& op) { return op.alternates; }))
        continue;
      if (position.empty()) position = positions_in_order(dag_);
      std::vector<NodeId> nodes = row.nodes;
      for (const OpGroup& group : groups) {
        if (as_written) break;
        const auto begin = nodes.begin() + row.ops[group.first].first_node;
        const auto end =
            nodes.begin() + row.ops[group.end - 1].first_node + row.ops[group.end - 1].num_nodes;
        std::sort(begin, end,
                  [&](NodeId a, NodeId b) { return position[a.index()] < position[b.index()]; });
      }
      // Replicas that no order claims use the order of the row too.
      std::set<DeviceSetId> sets;
      for (const NodeId node : nodes) sets.insert(dag_.node(node).devices);
      std::set<std::uint32_t> roles;
      for (const DeviceSetId set : sets)
        roles.insert(roles_.roles_of(set).begin(), roles_.roles_of(set).end());
      for (const std::uint32_t role : roles) put_in_order(nodes, sequences[role]);
    }
    return sequences;
  }

  /// The places of `nodes` in a sequence, filled in the order of the nodes.
  void put_in_order(std::span<const NodeId> nodes, std::vector<std::uint32_t>& sequence) const {
    std::vector<std::uint32_t> present = sequence, units;
    std::sort(present.begin(), present.end());
    for (const NodeId node : nodes) {
      const std::uint32_t unit = graph_.unit_of(node);
      if (std::binary_search(present.begin(), present.end(), unit)) units.push_back(unit);
    }
    std::vector<std::uint32_t> sorted = units;
    std::sort(sorted.begin(), sorted.end());
    auto next = units.begin();
    for (std::uint32_t& unit : sequence) {
      if (std::binary_search(sorted.begin(), sorted.end(), unit)) unit = *next++;
    }
  }

  /// With each operation as a whole, or by chunks if that would deadlock because other ranks work
  /// between the chunks.
  bool find_times(std::vector<std::vector<std::uint32_t>> sequences) {
    rules_.sequences = std::move(sequences);
    for (const bool whole : {true, false}) {
      if (whole && !has_segments_) continue;
      rules_.cost = cost_;
      join_units(dag_, graph_, table_, fractions_, pair_cost(), whole, rules_);
      times_.emplace(dag_, graph_, roles_, rules_);
      if (times_->complete()) return true;
    }
    return false;
  }

  /// With members of groups in written order; if that would deadlock, in the order of the plan,
  /// which is reported.
  bool find_times() {
    if (find_times(list_order(true))) return true;
    const std::vector<bool> started = times_->started();
    const bool complete = find_times(list_order(false));
    for (const Row& row : table_.rows) {
      for (const OpGroup& group : groups_of(row)) {
        const Op& op = row.ops[group.first];
        if (started[graph_.unit_of(op.first)]) continue;
        if (complete) {
          sink_
              .report(
                  Code::groups_in_plan_order, op.loc,
                  "members of overlap groups do not run in the order of the text here: then ranks would wait for each other")
              .hint(
                  "without `pair` the simulator runs them one after the other; here it does so as the plan does");
        } else {
          sink_
              .report(
                  Code::pairs_wait_for_each_other, op.loc,
                  "with `pair` the members of an overlap group start together, and this group and that of another rank each need what the other makes")
              .hint(
                  "simulate without `pair`, which runs the members one after the other, or take one of the groups apart");
        }
        return complete;
      }
    }
    if (!complete) sink_.report(Code::compiler_bug, LocId(), "a checked order has no times");
    return complete;
  }

  // ---- why

  /// The chunk for which a unit waited last, and whether they have no rank in common, so that its
  /// value is sent.
  struct Cause {
    std::uint32_t unit = kNone;
    bool apart = false;
  };
  Cause cause_of(std::uint32_t unit) const {
    Cause cause{times_->cause(unit)};
    while (cause.unit != kNone && graph_.sort(cause.unit) != WorkGraph::Sort::work)
      cause.unit = times_->cause(cause.unit);
    cause.apart =
        cause.unit != kNone && !roles_.intersects(graph_.devices(unit), graph_.devices(cause.unit));
    return cause;
  }

  void explain_waits() {
    for (const Timeline::Lane& lane : out_.lanes) {
      for (std::uint32_t entry = lane.first; entry < lane.end; ++entry) {
        const bool together = entry > lane.first && out_.group[entry] != kNone &&
                              out_.group[entry] == out_.group[entry - 1] &&
                              out_.start[entry] == out_.start[entry - 1] &&
                              out_.finish[entry] == out_.finish[entry - 1];
        if (together) {
          out_.cause[entry] = out_.cause[entry - 1];
          out_.why[entry] = out_.why[entry - 1];
          continue;
        }
        if (entry > lane.first && out_.start[entry] <= out_.finish[entry - 1]) {
          out_.cause[entry] = entry - 1;
          out_.why[entry] = Timeline::Why::previous;
          continue;
        }
        // Work of another rank may be between two chunks of an operation: then the cause is that of
        // its first chunk.
        Cause cause = cause_of(graph_.unit_of(binding_[entry]));
        if (cause.unit != kNone && out_.finish[entry_of_[cause.unit]] > out_.start[entry])
          cause = cause_of(graph_.unit_of(out_.operation_of(entry).first));
        if (cause.unit == kNone) continue;
        out_.cause[entry] = entry_of_[cause.unit];
        out_.why[entry] =
            cause.apart && costs_.p2p > 0 ? Timeline::Why::message : Timeline::Why::data;
      }
    }
  }

  void add_messages() {
    for (std::uint32_t unit = 0; unit < graph_.units(); ++unit) {
      if (graph_.sort(unit) != WorkGraph::Sort::communication ||
          !is_message(dag_.node(graph_.front(unit)).kind))
        continue;
      const std::uint32_t maker = maker_of(unit);
      if (maker == kNone) continue;
      std::uint32_t reader = kNone;
      for (const std::uint32_t to : graph_.successors(unit)) {
        if (graph_.sort(to) == WorkGraph::Sort::work &&
            (reader == kNone || times_->start(to) < times_->start(reader)))
          reader = to;
      }
      if (reader == kNone) continue;
      out_.messages.push_back({entry_of_[maker], entry_of_[reader], times_->start(unit),
                               times_->finish(unit), bytes_of(unit)});
    }
    std::stable_sort(out_.messages.begin(), out_.messages.end(),
                     [](const auto& a, const auto& b) { return a.leaves < b.leaves; });
  }

  /// The work that makes the last value of a message; kNone: no work makes it.
  std::uint32_t maker_of(std::uint32_t unit) const {
    std::uint32_t maker = kNone;
    for (const NodeId member : graph_.members(unit)) {
      for (const Input& input : dag_.inputs_of(dag_.node(member))) {
        if (!input.source.node.valid()) continue;
        for_each_term(dag_, input.source, [&](Port term) {
          const std::uint32_t made = graph_.unit_of(term.node);
          if (graph_.sort(made) == WorkGraph::Sort::work &&
              (maker == kNone || times_->finish(made) > times_->finish(maker)))
            maker = made;
        });
      }
    }
    return maker;
  }

  std::int64_t bytes_of(std::uint32_t unit) const {
    std::int64_t bytes = 0;
    for (const NodeId member : graph_.members(unit)) {
      for (const Input& input : dag_.inputs_of(dag_.node(member)))
        bytes += planned_bytes(dag_, input.source);
    }
    return bytes;
  }

  const Dag& dag_;
  const OperationCosts& costs_;
  DiagnosticSink& sink_;
  const OrdersTable table_;
  const WorkGraph graph_;
  const RoleTable roles_;
  const WorkFractions fractions_;
  std::vector<std::uint32_t> alike_;  // per row: number of rows with the same work
  double ranks_ = 0;                  // number of ranks with different work
  bool has_segments_ = false;         // some operation is several chunks
  std::vector<double> cost_;          // per unit by itself
  WorkRules rules_;
  std::optional<WorkTimes> times_;
  Timeline out_;
  std::vector<std::uint32_t> entry_of_;  // per unit: its entry on the first rank that has it
  std::vector<NodeId> binding_;          // per entry
};

}  // namespace

std::optional<Timeline> simulate_operations(const Dag& dag, const OperationCosts& costs,
                                            DiagnosticSink& sink) {
  return Simulation(dag, costs, sink).run();
}

Timeline simulate_columns(const Dag& dag) {
  const OperationCosts unit;
  DiagnosticSink unread(dag.context->locations);
  return Simulation(dag, unit, unread).columns();
}

double bubble_span(const Dag& dag) {
  const OperationCosts unit;
  DiagnosticSink unread(dag.context->locations);
  return Simulation(dag, unit, unread).bubble_span();
}

}  // namespace piper::passes
