#pragma once
// The problem that `search` solves, and lists of operations as its solutions.
//
// Instances (microbatches) whose parts are placed alike are equal, so some best order runs each
// pass of each part in the order of instances. A solution is therefore a list of codes by rank: the
// k-th occurrence of a code is the operation of the k-th instance.
//
//   2 stages on 2 ranks, 2 microbatches   ->   rank 0: F0 F0 BI0 BW0 BI0 BW0, rank 1: F1 BI1 F1 BI1 BW1 BW1

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/orders/placed_parts.h"
#include "ir/orders/search/objective.h"

namespace piper::orders {

struct SearchRule : OrderRule {
  Objective minimize = Objective::span;
  std::uint64_t tries = 0;  // orders that the improvement looks at
  std::uint64_t seed = 0;
};

/// A pass of a track. `kBackward` is `BI` if backwards are split, else `B`.
enum TrackPass : std::uint32_t { kTrackF, kTrackB, kTrackW, kTrackPasses };

/// The times of one part, by pass; that of `BW` is 0 if backwards are whole.
using PartSeconds = std::array<double, kTrackPasses>;

/// `kTrackPasses * track + pass`.
using Code = std::uint32_t;
using CodeLists = std::vector<std::vector<Code>>;  // by rank

class SearchProblem {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;

  /// The operations of one part in all instances of one group.
  struct Track {
    std::uint32_t rank = 0, group = 0, part = 0;
    std::uint32_t count = 0;                      // instances of the group
    std::uint32_t before = kNone, after = kNone;  // tracks of the neighbouring parts
  };

  SearchProblem(const PlacedParts& work, const SearchRule& rule);
  /// With times of their own for each part, in place of those of the rule.
  SearchProblem(const PlacedParts& work, const SearchRule& rule,
                const std::vector<PartSeconds>& seconds);

  std::uint32_t ranks() const { return static_cast<std::uint32_t>(tracks_on_.size()); }
  std::uint32_t parts() const { return parts_; }
  std::uint32_t groups() const { return static_cast<std::uint32_t>(instances_.size()); }
  std::span<const Track> tracks() const { return tracks_; }
  const Track& track(std::uint32_t group, std::uint32_t part) const {
    return tracks_[group * parts_ + part];
  }
  /// Tracks of a rank, ascending.
  std::span<const std::uint32_t> tracks_on(std::uint32_t rank) const { return tracks_on_[rank]; }
  /// Instances of a group, ascending.
  std::span<const std::uint32_t> instances(std::uint32_t group) const { return instances_[group]; }
  bool split() const { return rule_.split_backward; }
  const SearchRule& rule() const { return rule_; }
  /// The time of an operation of a code.
  double seconds(Code code) const {
    return seconds_[tracks_[code / kTrackPasses].part][code % kTrackPasses];
  }
  const PartSeconds& seconds_of(std::uint32_t part) const { return seconds_[part]; }
  /// The time of a message between the ranks of two tracks.
  double sent(std::uint32_t from, std::uint32_t to) const {
    return tracks_[from].rank == tracks_[to].rank ? 0 : rule_.comm;
  }
  /// The number of parts whose activations a rank may hold; at most that of all its operations.
  std::uint32_t capacity() const { return capacity_; }
  /// Operations of all ranks.
  std::uint64_t operations() const { return operations_; }
  /// The change of the parts held by an operation: 1, 0 or -1.
  int change(std::uint32_t pass) const {
    return pass == kTrackF ? 1 : pass == (split() ? kTrackW : kTrackB) ? -1 : 0;
  }
  /// The parts that one instance needs on a rank at once, at most, and that rank.
  std::pair<std::uint32_t, std::uint32_t> largest_demand() const;

  /// Whether each rank runs its operations, in a legal order by itself, and holds at most
  /// `capacity` parts. Ranks may still wait for each other forever.
  bool keeps(const CodeLists& lists) const;

  CodeLists codes_of(const PlacedParts& work, const OperationLists& lists) const;
  OperationLists operations_of(const CodeLists& lists) const;

 private:
  SearchRule rule_;
  std::uint32_t parts_;
  std::vector<Track> tracks_;
  std::vector<std::vector<std::uint32_t>> tracks_on_;
  std::vector<std::vector<std::uint32_t>> instances_;  // by group
  std::vector<PartSeconds> seconds_;                   // by part
  std::uint32_t capacity_ = 0;
  std::uint64_t operations_ = 0;
};

}  // namespace piper::orders
