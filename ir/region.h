#pragma once
// Regions: the place of an operation in the model, as a path of counted names
// (`gpt[0].block[3].norm[1]`).
//
// Regions are counted per name within the enclosing region instance. A path is an interned trie
// node, so one region may be under several stages if the partition cuts it: `stage[0].block[0]` and
// `stage[1].block[0]` are two paths with the same `block` coordinate. A selector is a conjunction
// of coordinates over such a path.
//
//   RegionTable regions;
//   RegionId block = regions.child(regions.child(RegionId(), gpt, 0), block_name, 3);
//   regions.coordinate(block, block_name)  ->  3

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/context.h"

namespace piper {

/// An invalid id is the root: work outside every region, selectable as the implicit region `model`.
using RegionId = Id<struct RegionTag>;

class RegionTable {
 public:
  /// The region `name[index]` directly inside `parent`.
  RegionId child(RegionId parent, Symbol name, std::uint32_t index);
  RegionId parent(RegionId region) const { return entries_[region.index()].parent; }
  Symbol name(RegionId region) const { return entries_[region.index()].name; }
  std::uint32_t index(RegionId region) const { return entries_[region.index()].index; }
  /// The index of the innermost `name[...]` on the path; nothing if the name is not on it.
  std::optional<std::uint32_t> coordinate(RegionId region, Symbol name) const;
  /// `gpt[0].block[3].norm[1]`; `model` for the root.
  std::string print(RegionId region, const SymbolTable& symbols) const;
  /// Whether it contains regions.
  bool has_inner(RegionId region) const {
    return region.valid() ? has_inner_[region.index()] : !entries_.empty();
  }
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    RegionId parent;
    Symbol name;
    std::uint32_t index;
  };
  struct KeyHash {
    std::size_t operator()(const Entry& e) const {
      return (std::size_t{e.parent.value()} * 0x9E3779B97F4A7C15ull) ^
             (std::size_t{e.name.value()} << 32) ^ e.index;
    }
  };
  struct KeyEqual {
    bool operator()(const Entry& a, const Entry& b) const {
      return a.parent == b.parent && a.name == b.name && a.index == b.index;
    }
  };
  std::vector<Entry> entries_;
  std::vector<bool> has_inner_;  // per entry
  std::unordered_map<Entry, RegionId, KeyHash, KeyEqual> ids_;
};

}  // namespace piper
