#pragma once
// `trim`: an order without the operations whose index along a dimension is at or beyond a bound.
//
//   trim({F mb[0]; { F mb[7] & B mb[0] }; F mb[8]}, mb, 7)   ->   {F mb[0]; { B mb[0] }}
//
// What an order means is not asked here, so operations of no program at all are trimmed too.

#include "ir/directive/directive.h"

namespace piper::passes {

/// Steps, sequences and groups of which nothing remains are gone; ranks stay.
directive::Order trim(const directive::Order& order, Symbol dim, std::uint32_t bound);

}  // namespace piper::passes
