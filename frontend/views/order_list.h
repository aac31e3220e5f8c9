#pragma once
// An order as the text of a program: an explicit list of operations that gives the same plan.
//
//   order {
//       rank _p in p[0] { F stage[0] mb[0]; { F stage[0] mb[1] } & { B stage[0] mb[0] } }
//   }

#include <span>
#include <string>

#include "ir/directive/directive.h"

namespace piper::views {

/// One line per step; ranks in the order of the value. `dims`: the dimensions of the batch.
std::string order_list(const directive::Order& order, std::span<const Symbol> dims,
                       const DeviceSetTable& device_sets, const Mesh& mesh,
                       const SymbolTable& symbols);

}  // namespace piper::views
