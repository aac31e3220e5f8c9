#include "frontend/lower/schedule/held_table.h"

#include <algorithm>

namespace piper::lower {

namespace {

using Covers = HeldTable::Covers;

const directive::Coordinate* coordinate(const directive::Selector& selector, Symbol name) {
  const auto found = std::find_if(selector.coordinates.begin(), selector.coordinates.end(),
                                  [&](const auto& c) { return c.name == name && !c.rest; });
  return found == selector.coordinates.end() ? nullptr : &*found;
}

/// `part` is set if a name makes the difference.
Covers covers_of(const directive::Selector& target, const directive::Selector& asked, Symbol made,
                 std::span<const Symbol> dims, Symbol& part) {
  const directive::Coordinate* mine = coordinate(target, made);
  Covers covers = target.pass ? Covers::part : Covers::all;
  for (const directive::Coordinate& c : target.coordinates) {
    if (&c == mine) continue;
    const bool is_dimension = !c.rest && std::find(dims.begin(), dims.end(), c.name) != dims.end();
    // The stages of a region of the model are known after the partition.
    if (!is_dimension && mine == nullptr) return Covers::no;
    if (is_dimension && c.all) continue;
    const directive::Coordinate* given = is_dimension ? coordinate(asked, c.name) : nullptr;
    const auto named = [&](std::uint32_t i) {
      return std::find(c.indices.begin(), c.indices.end(), i) != c.indices.end();
    };
    if (given != nullptr && !given->all) {
      if (std::none_of(given->indices.begin(), given->indices.end(), named)) return Covers::no;
      if (std::all_of(given->indices.begin(), given->indices.end(), named)) continue;
    }
    part = c.name;
    covers = Covers::part;
  }
  return covers;
}

}  // namespace

HeldTable::HeldTable(const directive::Selector& asked, const directive::Partition& made,
                     std::span<const directive::Place* const> places, std::span<const Symbol> dims,
                     const DeviceSetTable& sets)
    : chains_(made.into.extent), sets_(&sets), partition_name_(made.into.name) {
  for (const directive::Place* place : places) {
    for (const directive::Selector& target : place->targets) {
      Placed placed{place, &target, coordinate(target, made.into.name), Covers::no, Symbol()};
      placed.covers = covers_of(target, asked, made.into.name, dims, placed.part);
      if (placed.covers != Covers::no) placed_.push_back(placed);
    }
  }
  std::stable_sort(placed_.begin(), placed_.end(), [](const Placed& a, const Placed& b) {
    return directive::holds_over(*a.place, *a.target, *b.place, *b.target);
  });

  std::vector<bool> whole(chains_.size());
  const auto meet = [&](std::uint32_t index, std::uint32_t position) {
    if (index >= chains_.size() || whole[index]) return;
    const Placed& placed = placed_[position];
    std::vector<std::uint32_t>& chain = chains_[index];
    const bool as_before =
        !chain.empty() && placed_[chain.back()].place->devices == placed.place->devices;
    chain.push_back(position);
    whole[index] = placed.covers == Covers::all;
    if (!as_before) indices_.add(sets[placed.place->devices], index);
  };
  for (std::uint32_t position = 0; position < placed_.size(); ++position) {
    const directive::Coordinate* const named = placed_[position].indices;
    if (named != nullptr && !named->all) {
      for (const std::uint32_t index : named->indices) meet(index, position);
    } else {
      for (std::uint32_t index = 0; index < chains_.size(); ++index) meet(index, position);
    }
  }
}

HeldTable::Held HeldTable::held(const DeviceSet& devices, std::uint32_t depth) const {
  Held held;
  std::vector<std::uint32_t> sharing;
  indices_.for_each_intersecting(
      devices, [&](std::uint32_t index, const DeviceSet&) { sharing.push_back(index); });
  std::sort(sharing.begin(), sharing.end());
  sharing.erase(std::unique(sharing.begin(), sharing.end()), sharing.end());
  held.looked_at = sharing.size();
  const auto is_here = [&](std::uint32_t position) {
    return (*sets_)[placed_[position].place->devices].intersects(devices);
  };
  std::uint32_t first_outer = UINT32_MAX, first_mixed = UINT32_MAX;
  for (const std::uint32_t index : sharing) {
    const std::vector<std::uint32_t>& chain = chains_[index];
    const bool here = is_here(chain.front());
    const Placed* part = nullptr;  // the first that names a part alone
    for (const std::uint32_t position : chain) {
      if (placed_[position].covers == Covers::part && part == nullptr) part = &placed_[position];
      const bool also = is_here(position);
      if (also && placed_[position].place->depth != depth)
        first_outer = std::min(first_outer, position);
      if (also == here) continue;
      // A place of the whole ends the chain, so a line of a part comes before it.
      if (position < first_mixed) held.depends = part;
      first_mixed = std::min(first_mixed, position);
      break;
    }
    if (here) held.indices.push_back(index);
  }
  if (first_outer != UINT32_MAX) held.outer = placed_[first_outer].place;
  return held;
}

}  // namespace piper::lower
