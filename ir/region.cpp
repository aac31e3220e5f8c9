#include "ir/region.h"

namespace piper {

RegionId RegionTable::child(RegionId parent, Symbol name, std::uint32_t index) {
  const auto [entry, fresh] =
      ids_.try_emplace(Entry{parent, name, index}, RegionId::at(entries_.size()));
  if (fresh) {
    entries_.push_back(entry->first);
    has_inner_.push_back(false);
    if (parent.valid()) has_inner_[parent.index()] = true;
  }
  return entry->second;
}

std::optional<std::uint32_t> RegionTable::coordinate(RegionId region, Symbol name) const {
  for (; region.valid(); region = parent(region)) {
    if (this->name(region) == name) return index(region);
  }
  return std::nullopt;
}

std::string RegionTable::print(RegionId region, const SymbolTable& symbols) const {
  if (!region.valid()) return "model";
  std::string text =
      std::string(symbols.text(name(region))) + "[" + std::to_string(index(region)) + "]";
  return parent(region).valid() ? print(parent(region), symbols) + "." + text : text;
}

}  // namespace piper
