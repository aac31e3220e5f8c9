#pragma once
// Orders of operations by hand, each operation, group and rank on its own line.
//
//   strategy.directives.push_back(make_order(context, {{rank, {{Pass::F, {{stage, 0}, {mb, 0}}}, {Pass::B, {{stage, 0}, {mb, 0}}}}}}));

#include <utility>
#include <vector>

#include "ir/directive/directive.h"

namespace piper::test {

/// The operations of one rank; group -1: in none.
struct OrderedOp {
  Pass pass;
  std::vector<std::pair<Symbol, std::uint32_t>> at;
  int group = -1;
};

/// `ranks`: device set and operations. Consecutive operations of one group overlap.
directive::Order make_order(
    Context& context, const std::vector<std::pair<DeviceSetId, std::vector<OrderedOp>>>& ranks);

}  // namespace piper::test
