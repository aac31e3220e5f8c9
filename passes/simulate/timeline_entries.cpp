#include "passes/simulate/timeline_entries.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "passes/simulate/activations.h"
#include "passes/simulate/joined_units.h"

namespace piper::passes {

using namespace dag;

namespace {

using Op = OrdersTable::Op;
using Row = OrdersTable::Row;

constexpr std::uint32_t kNone = Timeline::kNone;

class EntryMaker {
 public:
  explicit EntryMaker(const SimulatedRun& run)
      : run_(run), activations_(run.dag, run.fractions, run.costs) {}

  TimelineEntries run() {
    out_.timeline.stages = run_.costs.stages == StageCosts::equal ? Timeline::Stages::equal
                           : run_.dag.settings.train.empty()      ? Timeline::Stages::links
                                                                  : Timeline::Stages::weighed;
    operation_of_.assign(run_.dag.nodes.size(), kNone);
    out_.entry_of.assign(run_.graph.units(), kNone);
    for (std::uint32_t r = 0; r < run_.table.rows.size(); ++r) add_rank(r);
    join_overlapping();
    return std::move(out_);
  }

 private:
  std::uint32_t operation(const Op& op) {
    std::uint32_t& known = operation_of_[op.first.index()];
    if (known != kNone) return known;
    known = static_cast<std::uint32_t>(out_.timeline.operations.size());
    const auto [name, added] =
        names_.try_emplace(op.region, static_cast<std::uint32_t>(out_.timeline.names.size()));
    if (added) out_.timeline.names.push_back(op.region);
    Timeline::Operation& made = out_.timeline.operations.emplace_back();
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

  void add_rank(std::uint32_t r) {
    const Row& row = run_.table.rows[r];
    Timeline::Rank& rank = out_.timeline.ranks.emplace_back();
    rank.name = "rank " + std::to_string(r);
    add_planned(row, rank);
    rank.replicas = run_.dag.device_sets[row.devices].devices(run_.dag.mesh);
    rank.alike = run_.alike[r];
    rank.work = work_of(run_.graph, run_.rules, row);
    rank.first_lane = static_cast<std::uint32_t>(out_.timeline.lanes.size());
    rank.end_lane = rank.first_lane + 1;
    const auto first = static_cast<std::uint32_t>(out_.timeline.size());
    out_.timeline.lanes.push_back({"compute", r, first, first});
    std::vector<const Op*> ops;
    for (const Op& op : row.ops) ops.push_back(&op);
    const auto start = [&](const Op& op) { return run_.times.start(run_.graph.unit_of(op.first)); };
    std::stable_sort(ops.begin(), ops.end(),
                     [&](const Op* a, const Op* b) { return start(*a) < start(*b); });
    for (const Op* op : ops) {
      const auto entry = static_cast<std::uint32_t>(out_.timeline.size());
      double finish = 0;
      for (const NodeId node : nodes_of(row, *op)) {
        const std::uint32_t unit = run_.graph.unit_of(node);
        finish = std::max(finish, run_.times.finish(unit));
        if (out_.entry_of[unit] == kNone) out_.entry_of[unit] = entry;
      }
      out_.timeline.add_entry(start(*op), finish, operation(*op), op->group.value_or(kNone));
      out_.binding.push_back(binding_node(row, *op));
    }
    add_activations(row, ops, rank);
  }

  /// Memory of the plan for the devices of a row, whose roles may differ.
  void add_planned(const Row& row, Timeline::Rank& rank) const {
    if (!run_.dag.plan) return;
    for (const Role& role : run_.dag.plan->roles) {
      if (!run_.dag.device_sets[row.devices].contains({role.at})) continue;
      rank.planned_bytes = std::max(rank.planned_bytes, role.arena_bytes);
      rank.peak_bytes = std::max(rank.peak_bytes, role.live_bytes);
    }
  }

  /// The chunk of an operation that was the last to wait for an input from another operation.
  NodeId binding_node(const Row& row, const Op& op) const {
    const std::span<const NodeId> nodes = nodes_of(row, op);
    std::size_t at = nodes.size() - 1;
    while (at > 0 && run_.times.start(run_.graph.unit_of(nodes[at])) <=
                         run_.times.finish(run_.graph.unit_of(nodes[at - 1])))
      --at;
    return nodes[at];
  }

  /// The times at which the activations of a row grow and shrink. Units that run together add
  /// before they free; each chunk of an `R` is kept only for its own backward.
  void add_activations(const Row& row, std::span<const Op* const> ops, Timeline::Rank& rank) {
    std::vector<std::pair<double, double>> changes, arrivals;  // time, by how much
    const auto start = [&](NodeId node) { return run_.times.start(run_.graph.unit_of(node)); };
    const auto finish = [&](NodeId node) { return run_.times.finish(run_.graph.unit_of(node)); };
    const auto more = [&](NodeId node, double time) {
      changes.emplace_back(time, activations_.from_start(run_.dag.node(node)));
    };
    const auto less = [&](NodeId node, double time) {
      if (is_backward(run_.dag.node(node).pass))
        activations_.arrivals(run_.dag.node(node), [&](NodeId maker, double part) {
          arrivals.emplace_back(finish(maker), part);
        });
      changes.emplace_back(time, -activations_.until_finish(run_.dag.node(node)));
    };
    std::vector<std::uint32_t> position;
    for (std::size_t i = 0; i < ops.size();) {
      std::size_t next = i + 1;
      if (ops[i]->alternates && next < ops.size()) {
        if (position.empty()) position = positions_in_order(run_.dag);
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
    rank.first_curve = static_cast<std::uint32_t>(out_.timeline.curves.size());
    const auto first = static_cast<std::uint32_t>(out_.timeline.curve_time.size());
    double held = 0;
    for (const auto& [time, by] : changes) {
      if (by == 0) continue;
      held += by * run_.ranks;
      rank.peak = std::max(rank.peak, held);
      if (out_.timeline.curve_time.size() > first && out_.timeline.curve_time.back() == time) {
        out_.timeline.curve_value.back() = held;
        continue;
      }
      out_.timeline.curve_time.push_back(time);
      out_.timeline.curve_value.push_back(held);
    }
    const auto end = static_cast<std::uint32_t>(out_.timeline.curve_time.size());
    out_.timeline.curves.push_back(
        {static_cast<std::uint32_t>(out_.timeline.ranks.size() - 1), std::nullopt, first, end});
    rank.end_curve = rank.first_curve + 1;
  }

  /// Members of groups that run chunk by chunk, in each other's gaps, are shown as running
  /// together.
  void join_overlapping() {
    for (const Timeline::Lane& lane : out_.timeline.lanes) {
      for (std::uint32_t e = lane.first + 1; e < lane.end; ++e) {
        const bool together = out_.timeline.start[e] == out_.timeline.start[e - 1] &&
                              out_.timeline.finish[e] == out_.timeline.finish[e - 1];
        if (!together && out_.timeline.start[e] < out_.timeline.finish[e - 1] &&
            out_.timeline.group[e] != kNone)
          return out_.timeline.join_groups();
      }
    }
  }

  bool runs_together(const Op& a, const Op& b) const {
    return run_.rules.runs_with[run_.graph.unit_of(a.first)] ==
           run_.rules.runs_with[run_.graph.unit_of(b.first)];
  }

  const SimulatedRun& run_;
  const Activations activations_;
  TimelineEntries out_;
  std::map<std::string, std::uint32_t> names_;
  std::vector<std::uint32_t> operation_of_;  // per node that begins an operation
};

}  // namespace

std::vector<std::uint32_t> positions_in_order(const Dag& dag) {
  std::vector<std::uint32_t> position(dag.nodes.size(), 0);
  for (std::uint32_t i = 0; i < dag.order.size(); ++i) position[dag.order[i].index()] = i;
  return position;
}

TimelineEntries make_entries(const SimulatedRun& run) { return EntryMaker(run).run(); }

}  // namespace piper::passes
