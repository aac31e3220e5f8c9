#include "passes/selectors/check_orders.h"

#include <algorithm>
#include <map>
#include <vector>

namespace piper::passes {

using directive::CommClass;
using directive::Order;
using directive::OrderOp;
using directive::RankSteps;

namespace {

void check_communication(const Order& order, DiagnosticSink& sink) {
  for (const OrderOp& op : order.ops) {
    if (op.part != CommClass::enter && op.part != CommClass::leave) continue;
    sink.report(Code::named_communication_unavailable, op.loc,
                "`.{}` has no place in an order: there is no such communication",
                directive::part_name(op.part))
        .hint("`.send`, `.recv`, `.gather` and `.reduce` can be named");
  }
}

/// Finds ranks that have devices in common: sets intersect if they agree on the axes that both fix.
class Claims {
 public:
  explicit Claims(const directive::Strategy& strategy) : strategy_(strategy) {
    for (const directive::Directive& directive : strategy.directives) {
      const auto* order = std::get_if<Order>(&directive);
      for (std::size_t i = 0; order != nullptr && i < order->ranks.size(); ++i) {
        by_whole_axes_[set(order->ranks[i]).whole_axes()].push_back({claims_, &order->ranks[i]});
        ++claims_;
      }
    }
  }

  void check(const Context& context, DiagnosticSink& sink) {
    for (auto a = by_whole_axes_.begin(); a != by_whole_axes_.end(); ++a) {
      for (auto b = a; b != by_whole_axes_.end(); ++b)
        meet(a->second, b->second, static_cast<AxisMask>(a->first | b->first));
    }
    for (const auto& [later, first] : twice_) {
      const auto text = [&](const RankSteps& rank) {
        return print(set(rank), strategy_.mesh, context.symbols);
      };
      sink.report(Code::rank_claimed_twice, later.rank->loc, "the order of `{}` is given twice",
                  text(*later.rank))
          .related(first.rank->loc, "`{}` has an order here", text(*first.rank))
          .hint(
              "give each rank one order; an `order` replaces the order of a schedule only beside its call, and only for whole ranks");
    }
  }

 private:
  struct Claim {
    std::size_t number;  // in the order of the text
    const RankSteps* rank;
    friend bool operator<(const Claim& a, const Claim& b) { return a.number < b.number; }
  };

  const DeviceSet& set(const RankSteps& rank) const { return strategy_.device_sets[rank.devices]; }

  /// Records claims of `b` that intersect one of `a`. All claims of `a` have the same whole axes,
  /// and so do those of `b`; `open`: axes that are whole in one of the two.
  void meet(const std::vector<Claim>& a, const std::vector<Claim>& b, AxisMask open) {
    std::map<std::vector<std::int32_t>, Claim> first;
    const auto fixed_by_both = [&](const Claim& claim) {
      std::vector<std::int32_t> at = set(*claim.rank).at;
      for (std::size_t axis = 0; axis < at.size(); ++axis) {
        if ((open >> axis & 1) != 0) at[axis] = DeviceSet::kWhole;
      }
      return at;
    };
    for (const Claim& claim : a) first.try_emplace(fixed_by_both(claim), claim);
    for (const Claim& claim : b) {
      const auto found = first.find(fixed_by_both(claim));
      if (found == first.end() || found->second.rank == claim.rank) continue;
      const auto& [earlier, later] = std::minmax(found->second, claim);
      const auto [known, fresh] = twice_.try_emplace(later, earlier);
      if (!fresh) known->second = std::min(known->second, earlier);
    }
  }

  const directive::Strategy& strategy_;
  std::size_t claims_ = 0;
  std::map<AxisMask, std::vector<Claim>> by_whole_axes_;
  std::map<Claim, Claim> twice_;  // later claim -> first claim that it intersects
};

}  // namespace

bool check_trims(const directive::Strategy& strategy, const Context& context,
                 DiagnosticSink& sink) {
  bool good = true;
  for (const directive::Directive& directive : strategy.directives) {
    const auto* order = std::get_if<Order>(&directive);
    if (order == nullptr || order->trims.empty()) continue;
    const Order::Trim& trim = order->trims.front();
    const std::string_view name = context.text(trim.dim);
    sink.report(Code::trim_unknown_dimension, trim.loc,
                "`trim` names `{}`, but the batch is not split into `{}`", name, name)
        .hint("name a dimension of a `split` line");
    good = false;
  }
  return good;
}

void check_orders(const directive::Strategy& strategy, const Context& context, bool single,
                  DiagnosticSink& sink) {
  for (const directive::Directive& directive : strategy.directives) {
    if (const auto* order = std::get_if<Order>(&directive)) check_communication(*order, sink);
  }
  if (single) Claims(strategy).check(context, sink);
}

}  // namespace piper::passes
