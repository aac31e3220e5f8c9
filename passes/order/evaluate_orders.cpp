#include "passes/order/evaluate_orders.h"

#include <variant>
#include <vector>

#include "passes/order/trim.h"
#include "passes/selectors/split_dimensions.h"

namespace piper::passes {

using namespace directive;

void evaluate_orders(Strategy& strategy) {
  for (Directive& directive : strategy.directives) {
    auto* order = std::get_if<Order>(&directive);
    if (order == nullptr || order->trims.empty()) continue;
    std::vector<Order::Trim> left;
    for (const Order::Trim& each : std::vector<Order::Trim>(order->trims)) {
      if (is_split_into(strategy, each.dim)) {
        *order = trim(*order, each.dim, each.bound);
      } else {
        left.push_back(each);
      }
    }
    order->trims = std::move(left);
  }
}

}  // namespace piper::passes
