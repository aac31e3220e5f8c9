#pragma once
// Which value had which bytes of an arena last. A range is made by each value and cut where another one takes a part of it, so that what many values take is
// near-linear in their number, however many places values begin and end at.
//
//   ByteRanges ranges;
//   ranges.take(0, 128, {1, true}, see);    // nothing
//   ranges.take(64, 256, {2, true}, see);   // see({1, true}); value 1 keeps [0, 64)

#include <cstdint>
#include <iterator>
#include <map>

namespace piper::passes {

class ByteRanges {
 public:
  struct Holder {
    std::uint32_t value = 0;
    bool this_step = false;
    friend bool operator==(const Holder&, const Holder&) = default;
  };

  /// The bytes have this holder from here on. Calls `visit` with those that had some of them, by place.
  template <typename Visit>
  void take(std::int64_t begin, std::int64_t end, Holder holder, Visit visit) {
    if (begin >= end) return;
    auto at = ranges_.lower_bound(begin);
    if (at != ranges_.begin() && std::prev(at)->second.end > begin) {
      Range& before = std::prev(at)->second;
      at = ranges_.emplace_hint(at, begin, before);
      before.end = begin;
    }
    while (at != ranges_.end() && at->first < end) {
      visit(at->second.holder);
      if (at->second.end > end) ranges_.emplace_hint(std::next(at), end, at->second);
      at = ranges_.erase(at);
    }
    ranges_.emplace_hint(at, begin, Range{end, holder});
  }

 private:
  struct Range {
    std::int64_t end;
    Holder holder;
  };
  std::map<std::int64_t, Range> ranges_;  // by their first bytes; no two overlap
};

}  // namespace piper::passes
