#include "passes/events.h"

#include <algorithm>
#include <memory>

namespace piper::passes {
namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFFu;

/// What is known to have ended when an action starts: per stream a count of actions, those of the step before included in the second pass. Rows are
/// padded to whole blocks, so that they are copied and merged by vector instructions.
class Clocks {
 public:
  Clocks(std::size_t actions, std::size_t streams) : width_((streams + kBlock - 1) / kBlock * kBlock), rows_(new std::int32_t[actions * width_]) {}
  std::int32_t* row(std::size_t action) { return rows_.get() + action * width_; }
  void clear(std::int32_t* row) const { std::fill(row, row + width_, 0); }
  void copy(std::int32_t* __restrict to, const std::int32_t* __restrict from) const {
    for (std::size_t s = 0; s < width_; s += kBlock) {
      for (std::size_t k = 0; k < kBlock; ++k) to[s + k] = from[s + k];
    }
  }
  void merge(std::int32_t* __restrict to, const std::int32_t* __restrict from) const {
    for (std::size_t s = 0; s < width_; s += kBlock) {
      for (std::size_t k = 0; k < kBlock; ++k) to[s + k] = std::max(to[s + k], from[s + k]);
    }
  }

 private:
  static constexpr std::size_t kBlock = 4;
  std::size_t width_;
  std::unique_ptr<std::int32_t[]> rows_;  // a row is written before it is read
};

}  // namespace

Events choose_waits(std::span<const Slot> slots, std::size_t streams, std::span<const std::uint32_t> first_need, std::span<const Need> needs) {
  Events events;
  events.first.assign(slots.size() + 1, 0);
  if (streams < 2) return events;

  std::vector<std::int32_t> count(streams, 0);  // actions per stream
  std::vector<std::uint32_t> previous(slots.size(), kNone), last(streams, kNone);
  for (std::uint32_t a = 0; a < slots.size(); ++a) {
    previous[a] = last[slots[a].stream];
    last[slots[a].stream] = a;
    ++count[slots[a].stream];
  }
  std::vector<Need> sorted;
  const auto later_first = [](const Need& x, const Need& y) { return x.action > y.action; };
  const auto of_distance = [&](std::size_t a, std::uint32_t distance) {
    sorted.clear();
    for (std::uint32_t i = first_need[a]; i < first_need[a + 1]; ++i) {
      if (needs[i].distance == distance && slots[needs[i].action].stream != slots[a].stream) sorted.push_back(needs[i]);
    }
    if (sorted.size() > 1) std::sort(sorted.begin(), sorted.end(), later_first);
  };

  // Within a step.
  Clocks same(slots.size(), streams);
  std::vector<std::uint32_t> first_same(slots.size() + 1, 0);
  std::vector<std::uint32_t> waits_same;
  for (std::uint32_t a = 0; a < slots.size(); ++a) {
    std::int32_t* row = same.row(a);
    if (previous[a] != kNone) {
      same.copy(row, same.row(previous[a]));
      row[slots[a].stream] = slots[a].position;
    } else {
      same.clear(row);
    }
    of_distance(a, 0);
    for (const Need& need : sorted) {
      const Slot& target = slots[need.action];
      if (row[target.stream] > target.position) continue;
      same.merge(row, same.row(need.action));
      row[target.stream] = target.position + 1;
      waits_same.push_back(need.action);
    }
    first_same[a + 1] = static_cast<std::uint32_t>(waits_same.size());
  }

  // The step after: counts of the first step, then of the second.
  Clocks next(slots.size(), streams);
  for (std::uint32_t a = 0; a < slots.size(); ++a) {
    const std::uint32_t stream = slots[a].stream;
    std::int32_t* row = next.row(a);
    if (previous[a] != kNone) {
      next.copy(row, next.row(previous[a]));
    } else {
      next.copy(row, same.row(last[stream]));
    }
    row[stream] = count[stream] + slots[a].position;
    for (std::uint32_t i = first_same[a]; i < first_same[a + 1]; ++i) {
      const std::uint32_t target = waits_same[i];
      next.merge(row, next.row(target));
      row[slots[target].stream] = std::max(row[slots[target].stream], count[slots[target].stream] + slots[target].position + 1);
      events.waits.push_back({target, 0});
    }
    of_distance(a, 1);
    for (const Need& need : sorted) {
      const Slot& target = slots[need.action];
      if (row[target.stream] > target.position) continue;
      next.merge(row, same.row(need.action));
      row[target.stream] = target.position + 1;
      events.waits.push_back(need);
    }
    events.first[a + 1] = static_cast<std::uint32_t>(events.waits.size());
  }
  return events;
}

}  // namespace piper::passes
