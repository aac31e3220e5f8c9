#include "passes/plan/events.h"

#include <algorithm>

namespace piper::passes {
namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFFu;
constexpr std::size_t kBlock = 4;

}  // namespace

void WaitChooser::Clocks::resize(std::size_t actions, std::size_t streams) {
  width_ = (streams + kBlock - 1) / kBlock * kBlock;
  if (rows_.size() < actions * width_) rows_.resize(actions * width_);
}

void WaitChooser::Clocks::clear(std::int32_t* row) const { std::fill(row, row + width_, 0); }

void WaitChooser::Clocks::copy(std::int32_t* __restrict to,
                               const std::int32_t* __restrict from) const {
  for (std::size_t s = 0; s < width_; s += kBlock) {
    for (std::size_t k = 0; k < kBlock; ++k) to[s + k] = from[s + k];
  }
}

void WaitChooser::Clocks::merge(std::int32_t* __restrict to,
                                const std::int32_t* __restrict from) const {
  for (std::size_t s = 0; s < width_; s += kBlock) {
    for (std::size_t k = 0; k < kBlock; ++k) to[s + k] = std::max(to[s + k], from[s + k]);
  }
}

const Events& WaitChooser::choose(std::span<const Slot> slots, std::size_t streams,
                                  std::span<const std::uint32_t> first_need,
                                  std::span<const Need> needs) {
  slots_ = slots;
  first_need_ = first_need;
  needs_ = needs;
  events_.first.assign(slots.size() + 1, 0);
  events_.waits.clear();
  if (streams < 2) return events_;
  link_streams(streams);
  same_.resize(slots.size(), streams);
  next_.resize(slots.size(), streams);
  within_a_step();
  across_steps();
  return events_;
}

void WaitChooser::link_streams(std::size_t streams) {
  count_.assign(streams, 0);
  last_.assign(streams, kNone);
  previous_.resize(slots_.size());
  for (std::uint32_t a = 0; a < slots_.size(); ++a) {
    const std::uint32_t stream = slots_[a].stream;
    previous_[a] = last_[stream];
    last_[stream] = a;
    ++count_[stream];
  }
}

void WaitChooser::sort_needs(std::uint32_t action, std::uint32_t distance,
                             const std::int32_t* row) {
  sorted_.clear();
  for (const Need& need :
       needs_.subspan(first_need_[action], first_need_[action + 1] - first_need_[action])) {
    const Slot& target = slots_[need.action];
    if (need.distance == distance && target.stream != slots_[action].stream &&
        row[target.stream] <= target.position)
      sorted_.push_back(need);
  }
  if (sorted_.size() > 1)
    std::sort(sorted_.begin(), sorted_.end(),
              [](const Need& x, const Need& y) { return x.action > y.action; });
}

void WaitChooser::within_a_step() {
  first_same_.resize(slots_.size() + 1);
  first_same_[0] = 0;
  waits_same_.clear();
  for (std::uint32_t a = 0; a < slots_.size(); ++a) {
    std::int32_t* row = same_.row(a);
    if (previous_[a] != kNone) {
      same_.copy(row, same_.row(previous_[a]));
      row[slots_[a].stream] = slots_[a].position;
    } else {
      same_.clear(row);
    }
    sort_needs(a, 0, row);
    for (const Need& need : sorted_) {
      const Slot& target = slots_[need.action];
      if (row[target.stream] > target.position) continue;
      same_.merge(row, same_.row(need.action));
      row[target.stream] = target.position + 1;
      waits_same_.push_back(need.action);
    }
    first_same_[a + 1] = static_cast<std::uint32_t>(waits_same_.size());
  }
}

/// The next step: counts of the first step, then of the second.
void WaitChooser::across_steps() {
  for (std::uint32_t a = 0; a < slots_.size(); ++a) {
    const std::uint32_t stream = slots_[a].stream;
    std::int32_t* row = next_.row(a);
    next_.copy(row, previous_[a] != kNone ? next_.row(previous_[a]) : same_.row(last_[stream]));
    row[stream] = count_[stream] + slots_[a].position;
    for (std::uint32_t i = first_same_[a]; i < first_same_[a + 1]; ++i) {
      const std::uint32_t target = waits_same_[i];
      next_.merge(row, next_.row(target));
      row[slots_[target].stream] = std::max(
          row[slots_[target].stream], count_[slots_[target].stream] + slots_[target].position + 1);
      events_.waits.push_back({target, 0});
    }
    sort_needs(a, 1, row);
    for (const Need& need : sorted_) {
      const Slot& target = slots_[need.action];
      if (row[target.stream] > target.position) continue;
      next_.merge(row, same_.row(need.action));
      row[target.stream] = target.position + 1;
      events_.waits.push_back(need);
    }
    events_.first[a + 1] = static_cast<std::uint32_t>(events_.waits.size());
  }
}

}  // namespace piper::passes
