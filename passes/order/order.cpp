#include "passes/order/order.h"

#include <algorithm>
#include <optional>

#include "ir/parallel.h"
#include "passes/order/apply_orders.h"
#include "passes/order/compute_order.h"
#include "passes/order/linearise.h"
#include "passes/order/streams.h"

namespace piper::passes {

using namespace dag;

namespace {

class Ordering {
 public:
  Ordering(Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink)
      : dag_(dag), strategy_(strategy), sink_(sink), selection_(dag) {}

  bool run() {
    if (!claim() || !order_messages()) return false;
    bool decided = false;
    const auto decide = [&] {
      decided = linearise(dag_, graph(), *roles_, *communicators_, compute_->nodes, after_,
                          claimed_->named);
    };
    run_both(dag_.nodes.size(), decide, [&] { note_streams(); });
    if (!decided) {
      sink_.report(Code::compiler_bug, LocId(),
                   "a checked order has no linear order of all its actions");
      return false;
    }
    dag_.level = Level::ordered;
    return true;
  }

 private:
  const WorkGraph& graph() const { return pending_.connected(); }

  /// Applies the orders and computes an order of all chunks that agrees with them. False after a
  /// report.
  bool claim() {
    const auto apply = [&] {
      roles_.emplace(dag_, claimed_sets(strategy_));
      selection_.work();
      claimed_ = apply_orders(dag_, strategy_, pending_, *roles_, selection_, sink_);
    };
    run_both(dag_.nodes.size(), [&] { pending_.make(dag_); }, apply);
    if (!claimed_) return false;
    const auto decide = [&] { compute_ = compute_order(dag_, *claimed_, graph(), *roles_, sink_); };
    const auto prepare = [&] { routes_.emplace(dag_); };
    run_both(dag_.nodes.size(), decide, prepare);
    return compute_.has_value();
  }

  /// Messages are numbered in the order of their producers, or of their names in an order: both
  /// follow from the compute orders alone. False after a report.
  bool order_messages() {
    const auto follow = [&] {
      after_ = chains(graph(), *roles_, compute_->nodes);
      note_edges();
    };
    const auto number = [&] {
      std::vector<std::uint32_t> position(graph().units(), 0);
      for (std::uint32_t i = 0; i < compute_->topological.size(); ++i)
        position[compute_->topological[i]] = i;
      communicators_ = assign_streams(dag_, strategy_, graph(), selection_, *roles_,
                                      std::move(*routes_), position, sink_);
    };
    if (!compute_->topological.empty()) {
      run_both(dag_.nodes.size(), number, follow);
      return communicators_.has_value();
    }
    follow();
    std::vector<Adjacency::Pair> edges = after_;
    edges.insert(edges.end(), claimed_->named.begin(), claimed_->named.end());
    compute_->topological = topological_order(graph(), Adjacency(graph().units(), edges));
    number();
    return communicators_.has_value();
  }

  void note_streams() {
    for (Node& node : dag_.nodes) {
      if (adds_in_place(node.kind)) continue;
      node.stream =
          node.comm.valid()
              ? communicators_->list[communicators_->of_comm[node.comm.index()].index()].stream
              : StreamId(0);
    }
  }

  void note_edges() {
    const WorkGraph& graph = this->graph();
    dag_.temporal.clear();
    dag_.temporal.reserve(after_.size() + claimed_->waits.size());
    for (const auto& [before, next] : after_)
      dag_.temporal.emplace_back(graph.front(before), graph.front(next));
    dag_.temporal.insert(dag_.temporal.end(), claimed_->waits.begin(), claimed_->waits.end());
    dag_.gather_intervals = std::move(claimed_->gathers);
  }

  Dag& dag_;
  const directive::Strategy& strategy_;
  DiagnosticSink& sink_;
  PendingWorkGraph pending_;
  std::optional<RoleTable> roles_;
  Selection selection_;
  std::optional<ClaimedOrder> claimed_;
  std::optional<ComputeOrder> compute_;
  std::vector<Adjacency::Pair> after_;  // consecutive chunks of a role
  std::optional<Routes> routes_;        // until communicators are formed
  std::optional<Communicators> communicators_;
};

}  // namespace

bool order(Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink) {
  return Ordering(dag, strategy, sink).run();
}

}  // namespace piper::passes
