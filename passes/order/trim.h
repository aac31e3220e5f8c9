#pragma once
// `trim`: an order without the operations whose index along a dimension is at or beyond a bound.
//
//   trim({F mb[0]; { F mb[7] & B mb[0] }; F mb[8]}, mb, 7)   ->   {F mb[0]; { B mb[0] }}
//
// Operations need not exist in the program.

#include "ir/directive/directive.h"

namespace piper::passes {

/// Steps, sequences and groups that become empty are removed; ranks stay.
directive::Order trim(const directive::Order& order, Symbol dim, std::uint32_t bound);

}  // namespace piper::passes
