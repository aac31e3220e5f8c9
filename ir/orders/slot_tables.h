#pragma once
// Tables over the slots 0 to n - 1 of a rank, with operations in O(log n).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace piper::orders {

/// Which slots are free.
class FreeSlots {
 public:
  explicit FreeSlots(std::size_t size) {
    while (leaves_ < size) leaves_ *= 2;
    runs_.assign(2 * leaves_, {});
    for (std::size_t i = 0; i < leaves_; ++i) runs_[leaves_ + i] = leaf(i < size);
    for (std::size_t i = leaves_; i-- > 1;) pull(i);
  }

  void set(std::int64_t begin, std::int64_t end, bool free) {
    for (std::int64_t slot = begin; slot < end; ++slot) {
      std::size_t i = leaves_ + static_cast<std::size_t>(slot);
      runs_[i] = leaf(free);
      while ((i /= 2) > 0) pull(i);
    }
  }

  /// The first slot from `from` on that begins `size` free ones.
  std::optional<std::int64_t> first(std::int64_t from, std::int64_t size) const {
    std::int64_t before = 0;  // free slots directly before the current node
    return search(1, 0, leaves_, from, size, before);
  }

 private:
  struct Run {
    std::int64_t size = 0, prefix = 0, suffix = 0, longest = 0;
  };
  static Run leaf(bool free) { return free ? Run{1, 1, 1, 1} : Run{1, 0, 0, 0}; }
  void pull(std::size_t i) {
    const Run &a = runs_[2 * i], &b = runs_[2 * i + 1];
    runs_[i] = {a.size + b.size, a.prefix == a.size ? a.size + b.prefix : a.prefix,
                b.suffix == b.size ? b.size + a.suffix : b.suffix,
                std::max({a.longest, b.longest, a.suffix + b.prefix})};
  }
  std::optional<std::int64_t> search(std::size_t i, std::int64_t begin, std::size_t width,
                                     std::int64_t from, std::int64_t size,
                                     std::int64_t& before) const {
    const std::int64_t end = begin + static_cast<std::int64_t>(width);
    if (end <= from) return std::nullopt;
    const Run& run = runs_[i];
    if (begin >= from) {
      if (before + run.prefix >= size) return begin - before;
      if (run.longest < size) {
        before = run.suffix == run.size ? before + run.size : run.suffix;
        return std::nullopt;
      }
    }
    if (width == 1) return std::nullopt;
    const auto half = static_cast<std::int64_t>(width / 2);
    if (const auto found = search(2 * i, begin, width / 2, from, size, before)) return found;
    return search(2 * i + 1, begin + half, width / 2, from, size, before);
  }

  std::size_t leaves_ = 1;
  std::vector<Run> runs_;
};

/// An amount for each slot, such as the activations that a rank holds.
class SlotAmounts {
 public:
  explicit SlotAmounts(std::size_t size) {
    while (leaves_ < size) leaves_ *= 2;
    largest_.assign(2 * leaves_, 0);
    added_.assign(2 * leaves_, 0);
  }

  void add(std::int64_t begin, std::int64_t end, double amount) {
    add(1, 0, static_cast<std::int64_t>(leaves_), begin, end, amount);
  }
  double largest() const { return largest_[1]; }
  /// The last slot of [begin, end) whose amount is above the limit.
  std::optional<std::int64_t> last_above(std::int64_t begin, std::int64_t end, double limit) const {
    return last_above(1, 0, static_cast<std::int64_t>(leaves_), begin, end, limit);
  }

 private:
  void add(std::size_t i, std::int64_t from, std::int64_t to, std::int64_t begin, std::int64_t end,
           double amount) {
    if (end <= from || to <= begin) return;
    if (begin <= from && to <= end) {
      largest_[i] += amount;
      added_[i] += amount;
      return;
    }
    const std::int64_t middle = from + (to - from) / 2;
    add(2 * i, from, middle, begin, end, amount);
    add(2 * i + 1, middle, to, begin, end, amount);
    largest_[i] = std::max(largest_[2 * i], largest_[2 * i + 1]) + added_[i];
  }
  /// `limit` is that of the subtree: without what was added to the trees around it.
  std::optional<std::int64_t> last_above(std::size_t i, std::int64_t from, std::int64_t to,
                                         std::int64_t begin, std::int64_t end, double limit) const {
    if (end <= from || to <= begin || largest_[i] <= limit) return std::nullopt;
    if (to - from == 1) return from;
    const std::int64_t middle = from + (to - from) / 2;
    const double inside = limit - added_[i];
    if (const auto found = last_above(2 * i + 1, middle, to, begin, end, inside)) return found;
    return last_above(2 * i, from, middle, begin, end, inside);
  }

  std::size_t leaves_ = 1;
  std::vector<double> largest_;  // of the subtree, its own additions included
  std::vector<double> added_;
};

}  // namespace piper::orders
