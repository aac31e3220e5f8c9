#pragma once
// Numbered device sets, found by a set that they intersect without a search through all of them.
//
//   index.add(set, 7);
//   index.for_each_intersecting(other, [](std::uint32_t number) { ... });

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ir/mesh.h"

namespace piper::lower {

class DeviceSetIndex {
 public:
  void add(const DeviceSet& set, std::uint32_t number) {
    const auto position = static_cast<std::uint32_t>(sets_.size());
    sets_.push_back({set, number});
    axes_.resize(std::max(axes_.size(), set.at.size()));
    for (std::size_t a = 0; a < set.at.size(); ++a)
      (set.at[a] == DeviceSet::kWhole ? axes_[a].whole : axes_[a].at[set.at[a]])
          .push_back(position);
  }

  /// Visits the number and the set of each entry that has a device in common with `set`.
  template <typename Visit>
  void for_each_intersecting(const DeviceSet& set, const Visit& visit) const {
    if (sets_.empty()) return;
    const auto look = [&](std::uint32_t position) {
      if (sets_[position].set.intersects(set)) visit(sets_[position].number, sets_[position].set);
    };
    // The axis with the fewest candidates.
    const std::vector<std::uint32_t>* fixed = nullptr;
    const std::vector<std::uint32_t>* whole = nullptr;
    std::size_t fewest = sets_.size();
    static const std::vector<std::uint32_t> kNone;
    for (std::size_t a = 0; a < set.at.size(); ++a) {
      if (set.at[a] == DeviceSet::kWhole) continue;
      const auto found = axes_[a].at.find(set.at[a]);
      const std::vector<std::uint32_t>& at = found == axes_[a].at.end() ? kNone : found->second;
      if (at.size() + axes_[a].whole.size() > fewest) continue;
      fewest = at.size() + axes_[a].whole.size();
      fixed = &at;
      whole = &axes_[a].whole;
    }
    if (fixed == nullptr) {
      for (std::uint32_t position = 0; position < sets_.size(); ++position) look(position);
      return;
    }
    std::for_each(fixed->begin(), fixed->end(), look);
    std::for_each(whole->begin(), whole->end(), look);
  }

 private:
  struct Entry {
    DeviceSet set;
    std::uint32_t number;
  };
  struct Axis {
    std::unordered_map<std::int32_t, std::vector<std::uint32_t>> at;  // by coordinate
    std::vector<std::uint32_t> whole;
  };
  std::vector<Entry> sets_;
  std::vector<Axis> axes_;
};

}  // namespace piper::lower
