#include "passes/order/evaluate_orders.h"

#include <algorithm>

#include "passes/order/trim.h"
#include "passes/selectors/check_lines.h"

namespace piper::passes {

using namespace directive;

namespace {

Order evaluate(const Strategy& strategy, Order order) {
  std::vector<Order::Transform> left;
  for (const Order::Transform& transform : std::vector<Order::Transform>(order.transforms)) {
    switch (transform.kind) {
      case Order::Transform::Kind::trim:
        if (is_split_into(strategy, transform.dim)) {
          order = trim(order, transform.dim, transform.bound);
          continue;
        }
        break;
      case Order::Transform::Kind::fill:
      case Order::Transform::Kind::compact:
      case Order::Transform::Kind::squeeze: break;
    }
    left.push_back(transform);
  }
  order.transforms = std::move(left);
  return order;
}

}  // namespace

std::optional<Strategy> evaluate_orders(const Strategy& strategy) {
  const auto is_transformed = [](const Directive& directive) {
    const auto* order = std::get_if<Order>(&directive);
    return order != nullptr && !order->transforms.empty();
  };
  if (std::none_of(strategy.directives.begin(), strategy.directives.end(), is_transformed)) return std::nullopt;
  Strategy evaluated{strategy.mesh, strategy.device_sets, {}, strategy.settings, strategy.missing};
  for (const Directive& directive : strategy.directives) {
    evaluated.directives.push_back(is_transformed(directive) ? Directive(evaluate(strategy, std::get<Order>(directive))) : directive);
  }
  return evaluated;
}

}  // namespace piper::passes
