#pragma once
// Interned names: dimensions, regions, parameters, streams. Comparing two is comparing two
// integers.
//
// Guarantees: equal texts have equal symbols within one table; `text` stays valid as long as the
// table; symbols are numbered in the order of interning, so iteration by symbol is deterministic
// but not alphabetical.

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "ir/ids.h"

namespace piper {

using Symbol = Id<struct SymbolTag>;

class SymbolTable {
 public:
  Symbol intern(std::string_view text);
  /// The symbol of `text` if it was interned before, else an invalid one.
  Symbol find(std::string_view text) const;
  /// The text of a symbol; empty for an invalid one.
  std::string_view text(Symbol symbol) const {
    return symbol.valid() ? std::string_view(texts_[symbol.index()]) : std::string_view();
  }
  std::size_t size() const { return texts_.size(); }

 private:
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, Symbol> symbols_;
};

}  // namespace piper
