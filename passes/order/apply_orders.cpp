#include "passes/order/apply_orders.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "ir/parallel.h"
#include "passes/build/wiring.h"
#include "passes/order/claimed_gathers.h"
#include "passes/order/data_order.h"
#include "passes/order/named_places.h"
#include "passes/order/named_routes.h"
#include "passes/order/order_reports.h"
#include "passes/order/second_forwards.h"

namespace piper::passes {

using namespace dag;
using directive::CommClass;
using directive::Order;
using directive::OrderOp;
using directive::OrderStep;
using directive::RankSteps;

namespace {

/// Maximum number of ranks for which missing operations are reported.
constexpr std::size_t kMaxReports = 8;
/// After this many errors no further operations are checked, because only the first page is shown.
constexpr std::size_t kEnoughErrors = 1000;

class Application {
 public:
  Application(Dag& dag, const directive::Strategy& strategy, const PendingWorkGraph& graph,
              const RoleTable& roles, Selection& selection, DiagnosticSink& sink)
      : dag_(dag),
        strategy_(strategy),
        pending_(graph),
        graph_(graph.numbered()),
        roles_(roles),
        selection_(selection),
        sink_(sink),
        reports_(dag, strategy, selection, sink),
        data_order_(dag, graph),
        second_forwards_(dag, strategy, roles, selection, data_order_, sink.locations()),
        places_(dag, graph_, roles, reports_),
        gathers_(dag, graph_, places_, reports_, out_) {
    out_.loc.resize(dag.nodes.size());
    out_.text_position.assign(dag.nodes.size(), 0);
    out_.claim_of_role.assign(roles.size(), ClaimedOrder::kUnclaimed);
    seen_in_.assign(dag.nodes.size(), ClaimedOrder::kUnclaimed);
  }

  std::optional<ClaimedOrder> run() {
    dag_.claims.clear();
    dag_.group.clear();
    const std::size_t errors = sink_.error_count();
    for (const directive::Directive& directive : strategy_.directives) {
      if (const auto* order = std::get_if<Order>(&directive)) apply(*order);
    }
    if (sink_.error_count() == errors) places_.check();
    if (sink_.error_count() == errors) report_incomplete();
    if (sink_.error_count() > errors) return std::nullopt;
    // From here on the location of a node is the operation that names it. An implicit `R` keeps the
    // location of its `recompute` line.
    all_hold(dag_.context->cancellation, dag_.nodes.size(),
             [&](std::size_t begin, std::size_t end) {
               for (std::size_t i = begin; i < end; ++i) {
                 const bool named =
                     dag_.nodes[i].pass != Pass::R || second_forwards_.named(NodeId::at(i));
                 if (out_.loc[i].valid() && named) dag_.nodes[i].loc = out_.loc[i];
               }
               return true;
             });
    return std::move(out_);
  }

 private:
  using Units = std::vector<std::uint32_t>;
  /// A communication at this rank and the chunk for which an operation names it: a bucket's
  /// reduction may be named for each of its regions.
  struct Named {
    NodeId comm;
    ChunkId chunk;
    friend auto operator<=>(const Named&, const Named&) = default;
  };

  /// Places the `R` for the operation that names its backward.
  void take_again(NodeId again, LocId loc) {
    seen_in_[again.index()] = claim_;
    before_ += NamedPlaces::summand(again);
    if (LocId& first = out_.loc[again.index()]; first.valid()) {
      out_.again.push_back({claim_, again, loc});
    } else {
      first = loc;
    }
  }

  /// Inserts the implicit `R` before each backward of the current step.
  void insert_second_forwards() {
    if (!second_forwards_.any()) return;
    std::vector<NodeId> all;
    for (const NodeId node : work_) {
      if (const NodeId again = second_forwards_.before(node);
          again.valid() && seen_in_[again.index()] != claim_) {
        take_again(again, out_.loc[node.index()]);
        all.push_back(again);
      }
      all.push_back(node);
    }
    work_.swap(all);
  }

  /// The implicit `R`s of the backwards of a group run before the group, except if their forward is
  /// in the group.
  void place_second_forwards(const OrderStep& group, Units& previous) {
    for (const auto& [again, loc] : second_forwards_.before_group(*order_, group, *rank_)) {
      // Its backward is named twice, which is reported.
      if (seen_in_[again.index()] == claim_) continue;
      take_again(again, loc);
      out_.text_position[again.index()] = next_position_++;
      const std::uint32_t unit = graph_.unit_of(again);
      for (const std::uint32_t before : previous) out_.edges.emplace_back(before, unit);
      previous.assign(1, unit);
    }
  }

  void apply(const Order& order) {
    order_ = &order;
    for (const RankSteps& rank : order.ranks) {
      claim(rank);
      place_rank(rank);
    }
  }

  void claim(const RankSteps& rank) {
    claim_ = static_cast<std::uint32_t>(dag_.claims.size());
    for (const std::uint32_t role : roles_.roles_of(rank.devices))
      out_.claim_of_role[role] = claim_;
    dag_.claims.push_back({rank.devices, 0, 0, rank.loc});
    out_.first_of_claim.push_back({static_cast<std::uint32_t>(out_.edges.size()),
                                   static_cast<std::uint32_t>(out_.named.size()),
                                   static_cast<std::uint32_t>(out_.late.size())});
    places_.add_claim(rank);
  }

  void place_rank(const RankSteps& rank) {
    rank_ = &rank;
    next_position_ = 0;
    next_group_ = 0;
    repeats_ = false;
    named_.clear();
    routes_.begin_rank();
    before_ = 0;
    gathers_.begin_rank();
    wider_reported_ = false;
    const std::size_t errors = sink_.error_count();
    Units previous, last;
    for (std::uint32_t i = 0; i < rank.num_steps; ++i) {
      place(order_->steps[order_->children[rank.first_step + i]], previous, last);
      if (!last.empty()) previous.swap(last);
    }
    if (sink_.error_count() == errors) gathers_.join(rank);
    if (sink_.error_count() == errors) check_complete();
  }

  /// Puts a step after `previous`; `last` are the units that the next step follows, none for a step
  /// without work.
  void place(const OrderStep& step, const Units& previous, Units& last) {
    last.clear();
    switch (step.kind) {
      case OrderStep::Kind::op: place_operation(step, previous, last); break;
      case OrderStep::Kind::sequence: {
        Units before = previous, end;
        for (const std::uint32_t child : children_of(step)) {
          place(order_->steps[child], before, end);
          if (end.empty()) continue;
          before = end;
          last.swap(end);
        }
        break;
      }
      case OrderStep::Kind::group: place_group(step, previous, last); break;
    }
  }

  /// Members without work are ignored: if only one member has work, its inner groups are the rank's
  /// groups.
  void place_group(const OrderStep& step, Units previous, Units& last) {
    std::size_t members = 0;
    for (const std::uint32_t child : children_of(step))
      members += has_work(order_->steps[child]) ? 1 : 0;
    const bool outermost = members > 1 && group_ == Dag::kNoGroup;
    if (outermost && second_forwards_.any()) place_second_forwards(step, previous);
    if (outermost) group_ = next_group_++;
    std::vector<std::size_t> starts;
    Units end;
    members_.push_back({++num_groups_, 0});
    const std::uint64_t before = before_;
    std::uint64_t in_group = 0;
    routes_.begin_group();
    for (const std::uint32_t child : children_of(step)) {
      starts.push_back(placed_.size());
      ++members_.back().second;
      routes_.begin_member();
      place(order_->steps[child], previous, end);
      in_group += std::exchange(before_, before) - before;
      if (placed_.size() == starts.back()) starts.pop_back();
      last.insert(last.end(), end.begin(), end.end());
    }
    members_.pop_back();
    routes_.end_group();
    before_ += in_group;
    if (members > 1) {
      starts.push_back(placed_.size());
      check_independent(step, starts);
      out_.has_groups = true;
    }
    if (outermost) {
      group_ = Dag::kNoGroup;
      placed_.clear();
    }
  }

  /// Whether a step runs chunks; communication only has an issue point and is no member of a group.
  bool has_work(const OrderStep& step) const {
    if (step.kind == OrderStep::Kind::op) {
      const std::span<const OrderOp> ops = ops_of(step);
      return std::any_of(ops.begin(), ops.end(), [&](const OrderOp& op) {
        return op.part == CommClass::none && !(dag_.forward_only && op.pass != Pass::F);
      });
    }
    const std::span<const std::uint32_t> children = children_of(step);
    return std::any_of(children.begin(), children.end(),
                       [&](std::uint32_t child) { return has_work(order_->steps[child]); });
  }

  std::span<const OrderOp> ops_of(const OrderStep& step) const {
    return std::span(order_->ops).subspan(step.first, step.count);
  }
  std::span<const std::uint32_t> children_of(const OrderStep& step) const {
    return std::span(order_->children).subspan(step.first, step.count);
  }

  /// Several chunks of one operation run in data order.
  void place_operation(const OrderStep& step, const Units& previous, Units& last) {
    work_.clear();
    gathers_.begin_step();
    for (const OrderOp& op : ops_of(step)) place_op(op, previous);
    routes_.end_step();
    if (gathers_.any())
      gathers_.place({*order_, ops_of(step).front(), *rank_}, nodes_, claim_, previous, before_);
    if (step.count > 1 && work_.size() > 1) data_order_.sort_as_written(work_);
    insert_second_forwards();
    for (const NodeId node : work_) {
      out_.text_position[node.index()] = next_position_++;
      if (group_ != Dag::kNoGroup) {
        if (dag_.group.empty()) dag_.group.assign(dag_.nodes.size(), Dag::kNoGroup);
        dag_.group[node.index()] = group_;
        placed_.push_back(node);
      }
      const std::uint32_t unit = graph_.unit_of(node);
      if (last.empty()) {
        for (const std::uint32_t before : previous) out_.edges.emplace_back(before, unit);
      } else {
        out_.edges.emplace_back(last.front(), unit);
      }
      last.assign(1, unit);
    }
  }

  /// Adds the chunks of an operation to the work of its step; places communication.
  void place_op(const OrderOp& op, const Units& previous) {
    if (dag_.forward_only && (op.pass != Pass::F || op.part == CommClass::reduce)) return;
    polls_.visit();
    const Selection::Named named = selection_.named(*order_, op);
    if (sink_.error_count() > kEnoughErrors) return;
    if (named.kind == Selection::Named::Kind::segment && op.part == CommClass::none) {
      const NodeId node = selection_.work().at(named.chunk, op.pass, named.instance);
      if (node.valid() && roles_.contains(dag_.node(node).devices, rank_->devices))
        return take(node, op);
    }
    nodes_.clear();
    if (!selection_.nodes(*order_, op, sink_, nodes_)) return;
    const NodeId elsewhere = nodes_.front();
    std::erase_if(nodes_, [&](NodeId node) {
      return !roles_.contains(dag_.node(node).devices, rank_->devices);
    });
    if (nodes_.empty()) {
      const bool wider = roles_.intersects(dag_.node(elsewhere).devices, rank_->devices);
      // An error of the rank, not of each operation.
      if (wider && std::exchange(wider_reported_, true)) return;
      return reports_.elsewhere({*order_, op, *rank_}, elsewhere, wider);
    }
    if (op.part == CommClass::gather) return find_gathers();
    if (op.part != CommClass::none) return place_communication(op, previous);
    if (nodes_.size() > 1) data_order_.sort(nodes_);
    for (const NodeId node : nodes_) take(node, op);
  }

  /// A chunk of the rank, as work of its step.
  void take(NodeId node, const OrderOp& op) {
    if (seen_in_[node.index()] == claim_) {
      if (!std::exchange(repeats_, true))
        reports_.repeated({*order_, op, *rank_}, node, out_.loc[node.index()]);
      return;
    }
    seen_in_[node.index()] = claim_;
    if (LocId& first = out_.loc[node.index()]; first.valid()) {
      out_.again.push_back({claim_, node, op.loc});
    } else {
      first = op.loc;
    }
    work_.push_back(node);
    before_ += NamedPlaces::summand(node);
    if (!named_.empty()) find_named_early(node);
  }

  /// Communication that the rank names before this work, which makes its values. Members of a group
  /// are unordered.
  void find_named_early(NodeId work) {
    const WorkGraph& graph = pending_.connected();
    for (const std::uint32_t unit : graph.successors(graph.unit_of(work))) {
      if (graph.sort(unit) != WorkGraph::Sort::communication) continue;
      for (const NodeId member : graph.members(unit)) {
        const auto named = named_.find({member, dag_.node(work).chunk});
        if (named == named_.end()) continue;
        const auto [own, here] =
            std::mismatch(named->second.members.begin(), named->second.members.end(),
                          members_.begin(), members_.end());
        const bool beside = own != named->second.members.end() && here != members_.end() &&
                            own->first == here->first;
        if (!beside) out_.late.emplace_back(unit, graph.unit_of(work));
      }
    }
  }

  /// A named communication waits for the step before it.
  void place_communication(const OrderOp& op, const Units& previous) {
    const WorkGraph& graph = pending_.connected();
    std::vector<Named> named;
    for (const NodeId node : nodes_) {
      const ChunkId chunk = dag_.node(node).chunk;
      if (op.part == CommClass::recv) {
        for (const Input& input : dag_.inputs_of(dag_.node(node))) {
          if (input.cls == EdgeClass::data && is_recv(dag_.node(input.source.node).kind))
            named.push_back({input.source.node, chunk});
        }
        continue;
      }
      for (const std::uint32_t unit : graph.successors(graph.unit_of(node))) {
        const Node& to = dag_.node(graph.front(unit));
        if (op.part == CommClass::send ? !is_send(to.kind) : !to.reduces_gradients()) continue;
        for (const NodeId member : graph.members(unit)) {
          if (dag_.node(member).kind == to.kind &&
              roles_.contains(dag_.node(member).devices, rank_->devices))
            named.push_back({member, chunk});
        }
      }
    }
    // Forward-only programs have no messages for values that only backwards read.
    if (named.empty() && dag_.forward_only) return;
    if (named.empty()) return reports_.no_communication({*order_, op, *rank_}, nodes_.front());
    std::sort(named.begin(), named.end());
    named.erase(std::unique(named.begin(), named.end()), named.end());
    bool reported = false;
    for (const Named& one : named) {
      const auto [first, fresh] = named_.try_emplace(one, Spot{op.loc, members_});
      if (!fresh && !reported) {
        reports_.repeated_communication({*order_, op, *rank_}, first->second.loc);
        reported = true;
      }
    }
    if (reported) return;
    named.erase(std::unique(named.begin(), named.end(),
                            [](const Named& x, const Named& y) { return x.comm == y.comm; }),
                named.end());
    for (const Named& one : named) {
      if (LocId& first = out_.loc[one.comm.index()]; first.valid()) {
        out_.again.push_back({claim_, one.comm, op.loc});
      } else {
        first = op.loc;
      }
      places_.add({one.comm, NodeId()}, claim_, {*order_, op, *rank_}, previous, before_);
      if (op.part == CommClass::send) {
        for (const std::uint32_t earlier : routes_.name(dag_, graph_, graph_.unit_of(one.comm)))
          out_.named.emplace_back(earlier, graph_.unit_of(one.comm));
      }
      for (const std::uint32_t before : previous) {
        out_.named.emplace_back(before, graph_.unit_of(one.comm));
        out_.waits.emplace_back(graph_.front(before), one.comm);
      }
    }
  }

  /// Finds the readers of a named all-gather: the work of its operation that comes after it, and
  /// the implicit `R` of a backward.
  void find_gathers() {
    const auto name = [&](NodeId work) { gathers_.name(work, seen_in_[work.index()] == claim_); };
    for (const NodeId node : nodes_) {
      if (const NodeId again = second_forwards_.before(node); again.valid()) name(again);
      name(node);
    }
  }

  /// Members of a group must not need each other. `starts`: the begin of each member in `placed_`,
  /// and the end.
  void check_independent(const OrderStep& step, const std::vector<std::size_t>& starts) {
    for (std::size_t a = 0; a + 2 < starts.size(); ++a) {
      for (std::size_t b = a + 1; b + 1 < starts.size(); ++b) {
        for (std::size_t i = starts[a]; i < starts[a + 1]; ++i) {
          for (std::size_t j = starts[b]; j < starts[b + 1]; ++j) {
            const NodeId x = placed_[i], y = placed_[j];
            // Chunks need each other only within one instance, as far as data flow inside a step
            // goes.
            if (dag_.node(x).instance != dag_.node(y).instance) continue;
            const bool forward = data_order_.reaches(x, y);
            if (!forward && !data_order_.reaches(y, x)) continue;
            reports_.members_dependent(step, {x, out_.loc[x.index()]}, {y, out_.loc[y.index()]},
                                       forward);
            return;
          }
        }
      }
    }
  }

  /// Every chunk node on the claimed devices must have been named.
  void check_complete() {
    if (by_set_.empty()) {
      by_set_.resize(dag_.device_sets.size());
      for (std::size_t i = 0; i < dag_.nodes.size(); ++i) {
        if (runs_body(dag_.nodes[i].kind))
          by_set_[dag_.nodes[i].devices.index()].push_back(NodeId::at(i));
      }
    }
    std::vector<NodeId> missing;
    for (std::size_t set = 0; set < by_set_.size(); ++set) {
      if (by_set_[set].empty()) continue;
      const DeviceSetId id = DeviceSetId::at(set);
      if (roles_.contains(id, rank_->devices)) {
        for (const NodeId node : by_set_[set]) {
          if (seen_in_[node.index()] != claim_ &&
              (dag_.node(node).pass != Pass::R || second_forwards_.named(node)))
            missing.push_back(node);
        }
      } else if (roles_.intersects(id, rank_->devices)) {
        reports_.claims_too_much(*rank_, by_set_[set].front());
        return;
      }
    }
    if (!missing.empty()) incomplete_.emplace_back(rank_, std::move(missing));
  }

  /// Only if there are no other errors, because operations missing here may be in the order of
  /// another rank.
  void report_incomplete() {
    for (std::size_t i = 0; i < std::min(incomplete_.size(), kMaxReports); ++i)
      reports_.lacks_work(*incomplete_[i].first, incomplete_[i].second);
  }

  Dag& dag_;
  const directive::Strategy& strategy_;
  const PendingWorkGraph& pending_;  // for checks that follow edges
  const WorkGraph& graph_;           // its units, known before its edges
  const RoleTable& roles_;
  Selection& selection_;
  DiagnosticSink& sink_;
  OrderReports reports_;
  DataOrder data_order_;
  SecondForwards second_forwards_;
  NodePolls polls_{dag_.context->cancellation};
  ClaimedOrder out_;

  const Order* order_ = nullptr;
  const RankSteps* rank_ = nullptr;
  std::uint32_t claim_ = 0;
  std::uint32_t next_position_ = 0, next_group_ = 0;
  std::uint32_t group_ = Dag::kNoGroup;
  // of the current rank: it claims more devices than run its operations
  bool wider_reported_ = false;
  std::vector<NodeId> nodes_;   // of the current OrderOp
  std::vector<NodeId> work_;    // of the current step
  std::vector<NodeId> placed_;  // of the current outermost group
  // Ranks, and the work missing in their orders.
  std::vector<std::pair<const RankSteps*, std::vector<NodeId>>> incomplete_;
  // The current rank names something twice, which was reported.
  bool repeats_ = false;
  // Enclosing groups, outermost first: the group and the member of it.
  using Members = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  struct Spot {
    LocId loc;
    Members members;
  };
  std::map<Named, Spot> named_;  // in the current rank: the operation
  Members members_;              // of the current step
  std::uint32_t num_groups_ = 0;
  // Hash of the work of the current rank before the current step (`NamedPlaces`).
  std::uint64_t before_ = 0;
  NamedPlaces places_;
  NamedRoutes routes_;
  ClaimedGathers gathers_;
  std::vector<std::uint32_t> seen_in_;  // per node: the last claim that named it
  std::vector<std::vector<NodeId>> by_set_;
};

}  // namespace

std::vector<DeviceSetId> claimed_sets(const directive::Strategy& strategy) {
  std::vector<DeviceSetId> sets;
  for (const directive::Directive& directive : strategy.directives) {
    if (const auto* order = std::get_if<Order>(&directive)) {
      for (const RankSteps& rank : order->ranks) sets.push_back(rank.devices);
    }
  }
  return sets;
}

std::optional<ClaimedOrder> apply_orders(Dag& dag, const directive::Strategy& strategy,
                                         const PendingWorkGraph& graph, const RoleTable& roles,
                                         Selection& selection, DiagnosticSink& sink) {
  return Application(dag, strategy, graph, roles, selection, sink).run();
}

}  // namespace piper::passes
