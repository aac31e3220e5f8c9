#include "ir/orders/activations.h"

#include <algorithm>

namespace piper::orders {

using directive::NamedExtent;
using directive::OrderCoordinate;
using directive::OrderOp;

std::optional<double> activations(const OrderOp& op, const OrderTree& tree, const Facts& facts,
                                  std::uint32_t sharing_ranks) {
  if (op.part != directive::CommClass::none || op.pass == Pass::R || op.pass == Pass::BI) return 0;
  const NamedExtent* part = nullptr;
  for (std::uint32_t i = 0; i < op.num_coordinates; ++i) {
    const OrderCoordinate& at = tree.coordinates[op.first_coordinate + i];
    const auto named = [&](const NamedExtent& extent) {
      return extent.name == at.name && !at.rest;
    };
    if (std::any_of(facts.dims.begin(), facts.dims.end(), named)) continue;
    const auto found = std::find_if(facts.parts.begin(), facts.parts.end(), named);
    if (found == facts.parts.end() || at.all || part != nullptr) return std::nullopt;
    part = &*found;
  }
  if (part == nullptr) return std::nullopt;
  const double share = static_cast<double>(sharing_ranks) / part->extent;
  return op.pass == Pass::F ? share : -share;
}

}  // namespace piper::orders
