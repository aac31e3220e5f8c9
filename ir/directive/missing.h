#pragma once
// What a strategy lacks because the front end could not evaluate it. The lines that are left are looked at: what depends on something missing would
// be told as a mistake that it is not.
//
//   partition model into stage: 4 / 0     ->   names: stage
//   place stage[0] on pp[7]               ->   place

#include <vector>

#include "ir/symbol.h"

namespace piper::directive {

struct Missing {
  bool any = false;           // something of the program
  bool model = false;         // the whole of it
  bool unknown = false;       // nobody knows which directives: a schedule was not applied, or a statement did not parse
  bool place = false;
  std::vector<Symbol> names;  // that partitions and splits would have made
};

}  // namespace piper::directive
