#include "passes/order/trim.h"

#include <algorithm>
#include <optional>
#include <span>

namespace piper::passes {

using namespace directive;

namespace {

/// Builds a new order from the remaining steps of each rank.
class Trim {
 public:
  Trim(const Order& order, Symbol dim, std::uint32_t bound)
      : order_(order), dim_(dim), bound_(bound) {}

  Order run() {
    out_.coordinates = order_.coordinates;
    out_.origins = order_.origins;
    out_.loc = order_.loc;
    out_.ops.reserve(order_.ops.size());
    out_.steps.reserve(order_.steps.size());
    for (const RankSteps& rank : order_.ranks) {
      RankSteps kept = rank;
      put(rank.first_step, rank.num_steps, kept.first_step, kept.num_steps);
      out_.ranks.push_back(kept);
    }
    return std::move(out_);
  }

 private:
  bool keeps(const OrderOp& op) const {
    const std::span<const OrderCoordinate> coordinates =
        std::span(order_.coordinates).subspan(op.first_coordinate, op.num_coordinates);
    return std::none_of(
        coordinates.begin(), coordinates.end(), [&](const OrderCoordinate& coordinate) {
          return coordinate.name == dim_ && !coordinate.all && coordinate.index >= bound_;
        });
  }

  /// The remaining children, one after the other.
  void put(std::uint32_t first, std::uint32_t count, std::uint32_t& kept_first,
           std::uint32_t& kept_count) {
    std::vector<std::uint32_t> kept;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (const auto step = keep(order_.steps[order_.children[first + i]])) kept.push_back(*step);
    }
    kept_first = static_cast<std::uint32_t>(out_.children.size());
    kept_count = static_cast<std::uint32_t>(kept.size());
    out_.children.insert(out_.children.end(), kept.begin(), kept.end());
  }

  std::optional<std::uint32_t> keep(const OrderStep& step) {
    OrderStep kept = step;
    if (step.kind == OrderStep::Kind::op) {
      kept.first = static_cast<std::uint32_t>(out_.ops.size());
      for (const OrderOp& op : std::span(order_.ops).subspan(step.first, step.count)) {
        if (keeps(op)) out_.ops.push_back(op);
      }
      kept.count = static_cast<std::uint32_t>(out_.ops.size()) - kept.first;
    } else {
      put(step.first, step.count, kept.first, kept.count);
    }
    if (kept.count == 0) return std::nullopt;
    out_.steps.push_back(kept);
    return static_cast<std::uint32_t>(out_.steps.size() - 1);
  }

  const Order& order_;
  Symbol dim_;
  std::uint32_t bound_;
  Order out_;
};

}  // namespace

Order trim(const Order& order, Symbol dim, std::uint32_t bound) {
  return Trim(order, dim, bound).run();
}

}  // namespace piper::passes
