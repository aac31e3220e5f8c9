#include "ir/orders/search/problem.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "ir/orders/activations.h"

namespace piper::orders {

SearchProblem::SearchProblem(const PlacedParts& work, const SearchRule& rule)
    : SearchProblem(work, rule,
                    std::vector<PartSeconds>(work.part.extent,
                                             {rule.f, rule.bi + (rule.split_backward ? 0 : rule.bw),
                                              rule.split_backward ? rule.bw : 0})) {}

SearchProblem::SearchProblem(const PlacedParts& work, const SearchRule& rule,
                             const std::vector<PartSeconds>& seconds)
    : rule_(rule), parts_(work.part.extent), tracks_on_(work.ranks.size()), seconds_(seconds) {
  std::map<std::vector<std::uint32_t>, std::uint32_t> group_of;
  for (std::uint32_t instance = 0; instance < work.instances(); ++instance) {
    const auto begin = work.rank_of.begin() + std::int64_t{instance} * parts_;
    std::vector<std::uint32_t> places(begin, begin + parts_);
    const auto [found, fresh] =
        group_of.try_emplace(std::move(places), static_cast<std::uint32_t>(instances_.size()));
    if (fresh) instances_.emplace_back();
    instances_[found->second].push_back(instance);
  }
  tracks_.resize(instances_.size() * parts_);
  for (const auto& [places, group] : group_of) {
    for (std::uint32_t part = 0; part < parts_; ++part) {
      const std::uint32_t number = group * parts_ + part;
      Track& track = tracks_[number];
      track = {places[part],
               group,
               part,
               static_cast<std::uint32_t>(instances_[group].size()),
               part > 0 ? number - 1 : kNone,
               part + 1 < parts_ ? number + 1 : kNone};
      operations_ += std::uint64_t{track.count} * (split() ? 3 : 2);
    }
  }
  for (std::uint32_t number = 0; number < tracks_.size(); ++number)
    tracks_on_[tracks_[number].rank].push_back(number);
  const double all_parts = static_cast<double>(work.rank_of.size());
  capacity_ = static_cast<std::uint32_t>(
      rule.cap ? std::min(all_parts, std::floor(*rule.cap / work.share() + kSameAmount))
               : all_parts);
}

std::pair<std::uint32_t, std::uint32_t> SearchProblem::largest_demand() const {
  std::pair<std::uint32_t, std::uint32_t> largest{0, 0};
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
    std::vector<std::uint32_t> demand(groups(), 0);
    for (const std::uint32_t track : tracks_on_[rank]) {
      const std::uint32_t needed = ++demand[tracks_[track].group];
      if (needed > largest.first) largest = {needed, rank};
    }
  }
  return largest;
}

bool SearchProblem::keeps(const CodeLists& lists) const {
  std::vector<std::uint32_t> done(tracks_.size() * kTrackPasses, 0);
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
    std::int64_t held = 0;
    for (const Code code : lists[rank]) {
      const std::uint32_t pass = code % kTrackPasses;
      const Track& track = tracks_[code / kTrackPasses];
      if (track.rank != rank || (pass == kTrackW && !split())) return false;
      if (++done[code] > (pass == kTrackF ? track.count : done[code - 1])) return false;
      held += change(pass);
      if (held > capacity_) return false;
    }
  }
  for (std::uint32_t number = 0; number < tracks_.size(); ++number) {
    const std::uint32_t last = kTrackPasses * number + (split() ? kTrackW : kTrackB);
    if (done[last] != tracks_[number].count) return false;
  }
  return true;
}

CodeLists SearchProblem::codes_of(const PlacedParts& work, const OperationLists& lists) const {
  std::vector<std::uint32_t> group_of(work.instances(), 0);
  for (std::uint32_t group = 0; group < groups(); ++group) {
    for (const std::uint32_t instance : instances_[group]) group_of[instance] = group;
  }
  CodeLists codes(ranks());
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
    for (const PlacedOperation& operation : lists[rank]) {
      const std::uint32_t track =
          group_of[operation.piece / parts_] * parts_ + operation.piece % parts_;
      const TrackPass pass = operation.pass == Pass::F    ? kTrackF
                             : operation.pass == Pass::BW ? kTrackW
                                                          : kTrackB;
      codes[rank].push_back(kTrackPasses * track + pass);
    }
  }
  return codes;
}

OperationLists SearchProblem::operations_of(const CodeLists& lists) const {
  std::vector<std::uint32_t> done(tracks_.size() * kTrackPasses, 0);
  OperationLists operations(ranks());
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
    for (const Code code : lists[rank]) {
      const Track& track = tracks_[code / kTrackPasses];
      const std::uint32_t pass = code % kTrackPasses;
      operations[rank].push_back({pass == kTrackF   ? Pass::F
                                  : pass == kTrackW ? Pass::BW
                                  : split()         ? Pass::BI
                                                    : Pass::B,
                                  instances_[track.group][done[code]++] * parts_ + track.part});
    }
  }
  return operations;
}

}  // namespace piper::orders
