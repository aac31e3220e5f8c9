#include "passes/simulate/operations.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "ir/dag/terms.h"
#include "passes/order/list_schedule.h"
#include "passes/order/orders_table.h"
#include "passes/simulate/activations.h"
#include "passes/simulate/figures.h"
#include "passes/simulate/idle_rank.h"
#include "passes/simulate/work_fraction.h"
#include "passes/simulate/work_times.h"

namespace piper::passes {

using namespace dag;

namespace {

using Op = OrdersTable::Op;
using Row = OrdersTable::Row;

constexpr std::uint32_t kNone = Timeline::kNone;

/// The operations of one overlap group of a row: [first, end).
struct Group {
  std::size_t first, end;
};

std::vector<Group> groups_of(const Row& row) {
  std::vector<Group> groups;
  for (std::size_t i = 0; i < row.ops.size();) {
    std::size_t next = i + 1;
    while (row.ops[i].group && next < row.ops.size() && row.ops[next].group == row.ops[i].group)
      ++next;
    if (row.ops[i].group) groups.push_back({i, next});
    i = next;
  }
  return groups;
}

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
      most = std::max(most, work_of(row));
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
    add_entries();
    join_overlapping();
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

  /// The work of a rank; units that run as one count once.
  double work_of(const Row& row) const {
    double work = 0;
    std::uint32_t counted = kNone;
    for (const Op& op : row.ops) {
      for (const NodeId node : nodes_of(row, op)) {
        const std::uint32_t activity = rules_.runs_with[graph_.unit_of(node)];
        if (activity != counted) work += rules_.cost[activity];
        counted = activity;
      }
    }
    return work;
  }

  std::span<const NodeId> nodes_of(const Row& row, const Op& op) const {
    return std::span(row.nodes).subspan(op.first_node, op.num_nodes);
  }

  /// One F and one B or BI; each may be several operations if a stage has several segments.
  static bool is_pair(const Row& row, const Group& group) {
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

  /// Joins units that run as one: the pairs, and with `whole` the chunks of each operation.
  void join_units(bool whole) {
    rules_.cost = cost_;
    rules_.runs_with.resize(graph_.units());
    std::iota(rules_.runs_with.begin(), rules_.runs_with.end(), 0);
    for (const Row& row : table_.rows) {
      if (costs_.pair) {
        for (const Group& group : groups_of(row)) {
          if (is_pair(row, group)) join_pair(row, group);
        }
      }
      for (const Op& op : row.ops) {
        if (whole && op.num_nodes > 1) join(nodes_of(row, op));
      }
    }
    for (std::uint32_t unit = 0; unit < graph_.units(); ++unit)
      rules_.runs_with[unit] = joined(unit);
  }

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
  void join_pair(const Row& row, const Group& group) {
    std::vector<NodeId> nodes;
    double fraction = 0;
    for (std::size_t i = group.first; i < group.end; ++i) {
      for (const NodeId node : nodes_of(row, row.ops[i])) {
        nodes.push_back(node);
        fraction += fractions_.of(dag_.node(node), dag_.node(node).pass) / 2;
      }
    }
    const std::uint32_t first = join(nodes);
    rules_.cost[first] = *costs_.pair * ranks_ * fraction;
  }

  bool runs_together(const Op& a, const Op& b) const {
    return rules_.runs_with[graph_.unit_of(a.first)] == rules_.runs_with[graph_.unit_of(b.first)];
  }

  // ---- times

  /// The nodes of each role in the order of the table: that of the DAG except for `R`s of several
  /// chunks, and with `as_written` for members of groups.
  std::vector<std::vector<std::uint32_t>> list_order(bool as_written) const {
    std::vector<std::vector<std::uint32_t>> sequences = chunks_of_roles(dag_, graph_, roles_);
    std::vector<std::uint32_t> position;
    for (const Row& row : table_.rows) {
      const std::vector<Group> groups = groups_of(row);
      if (groups.empty() &&
          std::none_of(row.ops.begin(), row.ops.end(), [](const Op& op) { return op.alternates; }))
        continue;
      if (position.empty()) position = positions();
      std::vector<NodeId> nodes = row.nodes;
      for (const Group& group : groups) {
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

  std::vector<std::uint32_t> positions() const {
    std::vector<std::uint32_t> position(dag_.nodes.size(), 0);
    for (std::uint32_t i = 0; i < dag_.order.size(); ++i) position[dag_.order[i].index()] = i;
    return position;
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
      join_units(whole);
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
      for (const Group& group : groups_of(row)) {
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

  // ---- entries

  std::uint32_t operation(const Op& op) {
    std::uint32_t& known = operation_of_[op.first.index()];
    if (known != kNone) return known;
    known = static_cast<std::uint32_t>(out_.operations.size());
    const auto [name, added] =
        names_.try_emplace(op.region, static_cast<std::uint32_t>(out_.names.size()));
    if (added) out_.names.push_back(op.region);
    Timeline::Operation& made = out_.operations.emplace_back();
    made.pass = op.pass;
    made.name = name->second;
    if (op.stage && !op.part_of_stage) made.stage = *op.stage;
    made.mb = op.mb;
    made.copy = op.copy;
    made.slice = op.slice;
    if (op.part) made.part = *op.part;
    made.first = op.first;
    made.last = op.last;
    made.loc = op.loc;
    return known;
  }

  void add_entries() {
    out_.stages = costs_.stages == StageCosts::equal ? Timeline::Stages::equal
                  : dag_.settings.train.empty()      ? Timeline::Stages::links
                                                     : Timeline::Stages::weighed;
    activations_.emplace(dag_, fractions_, costs_);
    operation_of_.assign(dag_.nodes.size(), kNone);
    entry_of_.assign(graph_.units(), kNone);
    for (std::uint32_t r = 0; r < table_.rows.size(); ++r) add_rank(r);
  }

  void add_rank(std::uint32_t r) {
    const Row& row = table_.rows[r];
    Timeline::Rank& rank = out_.ranks.emplace_back();
    rank.name = "rank " + std::to_string(r);
    add_planned(row, rank);
    rank.replicas = dag_.device_sets[row.devices].devices(dag_.mesh);
    rank.alike = alike_[r];
    rank.work = work_of(row);
    rank.first_lane = static_cast<std::uint32_t>(out_.lanes.size());
    rank.end_lane = rank.first_lane + 1;
    const auto first = static_cast<std::uint32_t>(out_.size());
    out_.lanes.push_back({"compute", r, first, first});
    std::vector<const Op*> ops;
    for (const Op& op : row.ops) ops.push_back(&op);
    const auto start = [&](const Op& op) { return times_->start(graph_.unit_of(op.first)); };
    std::stable_sort(ops.begin(), ops.end(),
                     [&](const Op* a, const Op* b) { return start(*a) < start(*b); });
    for (const Op* op : ops) {
      const auto entry = static_cast<std::uint32_t>(out_.size());
      double finish = 0;
      for (const NodeId node : nodes_of(row, *op)) {
        const std::uint32_t unit = graph_.unit_of(node);
        finish = std::max(finish, times_->finish(unit));
        if (entry_of_[unit] == kNone) entry_of_[unit] = entry;
      }
      out_.add_entry(start(*op), finish, operation(*op), op->group.value_or(kNone));
      binding_.push_back(binding_node(row, *op));
    }
    add_activations(row, ops, rank);
  }

  /// Memory of the plan for the devices of a row, whose roles may differ.
  void add_planned(const Row& row, Timeline::Rank& rank) const {
    if (!dag_.plan) return;
    for (const Role& role : dag_.plan->roles) {
      if (!dag_.device_sets[row.devices].contains({role.at})) continue;
      rank.planned_bytes = std::max(rank.planned_bytes, role.arena_bytes);
      rank.peak_bytes = std::max(rank.peak_bytes, role.live_bytes);
    }
  }

  /// The chunk of an operation that was the last to wait for an input from another operation.
  NodeId binding_node(const Row& row, const Op& op) const {
    const std::span<const NodeId> nodes = nodes_of(row, op);
    std::size_t at = nodes.size() - 1;
    while (at > 0 && times_->start(graph_.unit_of(nodes[at])) <=
                         times_->finish(graph_.unit_of(nodes[at - 1])))
      --at;
    return nodes[at];
  }

  /// The times at which the activations of a row grow and shrink. Units that run together add
  /// before they free; each chunk of an `R` is kept only for its own backward.
  void add_activations(const Row& row, std::span<const Op* const> ops, Timeline::Rank& rank) {
    std::vector<std::pair<double, double>> changes, arrivals;  // time, by how much
    const auto start = [&](NodeId node) { return times_->start(graph_.unit_of(node)); };
    const auto finish = [&](NodeId node) { return times_->finish(graph_.unit_of(node)); };
    const auto more = [&](NodeId node, double time) {
      changes.emplace_back(time, activations_->from_start(dag_.node(node)));
    };
    const auto less = [&](NodeId node, double time) {
      if (is_backward(dag_.node(node).pass))
        activations_->arrivals(dag_.node(node), [&](NodeId maker, double part) {
          arrivals.emplace_back(finish(maker), part);
        });
      changes.emplace_back(time, -activations_->until_finish(dag_.node(node)));
    };
    std::vector<std::uint32_t> position;
    for (std::size_t i = 0; i < ops.size();) {
      std::size_t next = i + 1;
      if (ops[i]->alternates && next < ops.size()) {
        if (position.empty()) position = positions();
        std::vector<NodeId> nodes(nodes_of(row, *ops[i]).begin(), nodes_of(row, *ops[i]).end());
        nodes.insert(nodes.end(), nodes_of(row, *ops[next]).begin(),
                     nodes_of(row, *ops[next]).end());
        std::sort(nodes.begin(), nodes.end(),
                  [&](NodeId a, NodeId b) { return position[a.index()] < position[b.index()]; });
        double time = start(ops[i]->first);
        for (const NodeId node : nodes) {
          more(node, time = std::max(time, start(node)));
          less(node, time = std::max(time, finish(node)));
        }
        i = next + 1;
        continue;
      }
      while (next < ops.size() && ops[i]->group && runs_together(*ops[i], *ops[next])) ++next;
      for (std::size_t k = i; k < next; ++k) {
        for (const NodeId node : nodes_of(row, *ops[k])) more(node, start(ops[k]->first));
      }
      for (std::size_t k = i; k < next; ++k) {
        for (const NodeId node : nodes_of(row, *ops[k])) less(node, finish(ops[k]->last));
      }
      i = next;
    }
    if (!arrivals.empty()) {
      changes.insert(changes.end(), arrivals.begin(), arrivals.end());
      std::stable_sort(changes.begin(), changes.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
    }
    rank.first_curve = static_cast<std::uint32_t>(out_.curves.size());
    const auto first = static_cast<std::uint32_t>(out_.curve_time.size());
    double held = 0;
    for (const auto& [time, by] : changes) {
      if (by == 0) continue;
      held += by * ranks_;
      rank.peak = std::max(rank.peak, held);
      if (out_.curve_time.size() > first && out_.curve_time.back() == time) {
        out_.curve_value.back() = held;
        continue;
      }
      out_.curve_time.push_back(time);
      out_.curve_value.push_back(held);
    }
    const auto end = static_cast<std::uint32_t>(out_.curve_time.size());
    out_.curves.push_back(
        {static_cast<std::uint32_t>(out_.ranks.size() - 1), std::nullopt, first, end});
    rank.end_curve = rank.first_curve + 1;
  }

  /// Members of groups that run chunk by chunk, in each other's gaps, are shown as running
  /// together.
  void join_overlapping() {
    for (const Timeline::Lane& lane : out_.lanes) {
      for (std::uint32_t e = lane.first + 1; e < lane.end; ++e) {
        const bool together =
            out_.start[e] == out_.start[e - 1] && out_.finish[e] == out_.finish[e - 1];
        if (!together && out_.start[e] < out_.finish[e - 1] && out_.group[e] != kNone)
          return out_.join_groups();
      }
    }
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
        bytes += dag_.output_type(input.source).bytes();
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
  std::vector<std::uint32_t> alike_;        // per row: number of rows with the same work
  double ranks_ = 0;                        // number of ranks with different work
  bool has_segments_ = false;               // some operation is several chunks
  std::vector<double> cost_;                // per unit by itself
  std::optional<Activations> activations_;  // if curves are wanted
  WorkRules rules_;
  std::optional<WorkTimes> times_;
  Timeline out_;
  std::map<std::string, std::uint32_t> names_;
  std::vector<std::uint32_t> operation_of_;  // per node that begins an operation
  std::vector<std::uint32_t> entry_of_;      // per unit: its entry on the first rank that has it
  std::vector<NodeId> binding_;              // per entry
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
