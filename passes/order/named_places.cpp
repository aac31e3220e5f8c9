#include "passes/order/named_places.h"

#include <algorithm>

namespace piper::passes {

using namespace dag;

std::vector<NamedPlaces::Place>& NamedPlaces::of_claim(Named named, std::uint32_t claim,
                                                       const RankOp& at) {
  std::vector<Place>& places = places_[named];
  if (places.empty() || places.back().claim != claim) places.push_back({claim, at, {}, 0});
  return places;
}

std::uint64_t NamedPlaces::summand(NodeId work) {
  std::uint64_t mixed = (std::uint64_t{work.value()} + 1) * 0x9E3779B97F4A7C15ull;
  mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9ull;
  mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EBull;
  return mixed ^ mixed >> 31;
}

void NamedPlaces::add(Named named, std::uint32_t claim, const RankOp& at,
                      const std::vector<std::uint32_t>& previous, std::uint64_t before) {
  Place& place = of_claim(named, claim, at).back();
  place.before += before;
  std::vector<NodeId>& behind = place.behind;
  for (const std::uint32_t unit : previous) behind.push_back(graph_.front(unit));
  std::sort(behind.begin(), behind.end());
  behind.erase(std::unique(behind.begin(), behind.end()), behind.end());
}

void NamedPlaces::replace(Named named, std::uint32_t claim, const RankOp& at,
                          const std::vector<std::uint32_t>& previous, std::uint64_t before) {
  if (std::vector<Place>& places = places_[named]; !places.empty() && places.back().claim == claim)
    places.pop_back();
  add(named, claim, at, previous, before);
}

const std::vector<std::uint32_t>& NamedPlaces::claims_on(DeviceSetId devices) {
  on_set_.resize(dag_.device_sets.size());
  std::optional<std::vector<std::uint32_t>>& known = on_set_[devices.index()];
  if (!known) {
    known.emplace();
    for (std::uint32_t claim = 0; claim < claims_.size(); ++claim) {
      if (roles_.contains(devices, claims_[claim]->devices)) known->push_back(claim);
    }
  }
  return *known;
}

/// False after a report.
bool NamedPlaces::same(const std::vector<Place>& places, DeviceSetId devices) {
  const Place& first = places.front();
  for (const std::uint32_t claim : claims_on(devices)) {
    const auto own = std::find_if(places.begin(), places.end(),
                                  [&](const Place& place) { return place.claim == claim; });
    if (own == places.end()) {
      reports_.named_apart(first.at, first.behind, *claims_[claim], nullptr, {});
      return false;
    }
    if (own->before == first.before) continue;
    reports_.named_apart(first.at, first.behind, *claims_[claim], &own->at, own->behind);
    return false;
  }
  return true;
}

void NamedPlaces::check() {
  for (const auto& [named, places] : places_) {
    const NodeId work = named.second.valid() ? named.second : named.first;
    if (!same(places, dag_.node(work).devices)) return;
  }
}

}  // namespace piper::passes
