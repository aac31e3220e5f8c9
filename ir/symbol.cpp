#include "ir/symbol.h"

namespace piper {

Symbol SymbolTable::intern(std::string_view text) {
  if (auto found = symbols_.find(text); found != symbols_.end()) return found->second;
  const Symbol symbol = Symbol::at(texts_.size());
  symbols_.emplace(texts_.emplace_back(text), symbol);
  return symbol;
}

Symbol SymbolTable::find(std::string_view text) const {
  const auto found = symbols_.find(text);
  return found == symbols_.end() ? Symbol() : found->second;
}

}  // namespace piper
