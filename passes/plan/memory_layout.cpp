#include "passes/plan/memory_layout.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

namespace piper::passes {
namespace {

/// Up to this many values the quadratic second attempt is made.
constexpr std::size_t kSecondAttempt = 2048;

struct Block {
  std::int64_t offset = 0, bytes = 0;
};

/// Free blocks below `top`, never adjacent. The smallest that fits is taken, the lowest of equal
/// ones. Few blocks are in a sorted list, many in trees.
class FreeList {
 public:
  std::int64_t take(std::int64_t bytes) {
    if (many_) return take_of_many(bytes);
    std::size_t best = blocks_.size();
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      if (blocks_[i].bytes < bytes ||
          (best < blocks_.size() && blocks_[i].bytes >= blocks_[best].bytes))
        continue;
      best = i;
      if (blocks_[i].bytes == bytes) break;
    }
    if (best < blocks_.size()) {
      Block& block = blocks_[best];
      const std::int64_t offset = block.offset;
      block.offset += bytes;
      block.bytes -= bytes;
      if (block.bytes == 0) blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(best));
      return offset;
    }
    // Nothing fits: grow, from the free block at the top if there is one.
    std::int64_t offset = top_;
    if (!blocks_.empty() && blocks_.back().offset + blocks_.back().bytes == top_) {
      offset = blocks_.back().offset;
      blocks_.pop_back();
    }
    top_ = offset + bytes;
    return offset;
  }

  void give(std::int64_t offset, std::int64_t bytes) {
    if (many_) return give_to_many(offset, bytes);
    const auto next =
        std::lower_bound(blocks_.begin(), blocks_.end(), offset,
                         [](const Block& block, std::int64_t at) { return block.offset < at; });
    const bool joins_next = next != blocks_.end() && offset + bytes == next->offset;
    const bool joins_before =
        next != blocks_.begin() && std::prev(next)->offset + std::prev(next)->bytes == offset;
    if (joins_before) {
      std::prev(next)->bytes += bytes;
      if (!joins_next) return;
      std::prev(next)->bytes += next->bytes;
      blocks_.erase(next);
    } else if (joins_next) {
      next->offset = offset;
      next->bytes += bytes;
    } else {
      blocks_.insert(next, Block{offset, bytes});
    }
    if (blocks_.size() <= kFew) return;
    many_ = true;
    for (const Block& block : blocks_) add(block.offset, block.bytes);
    blocks_.clear();
  }

  std::int64_t top() const { return top_; }

 private:
  static constexpr std::size_t kFew = 64;

  std::int64_t take_of_many(std::int64_t bytes) {
    if (const auto best = by_size_.lower_bound({bytes, 0}); best != by_size_.end()) {
      const auto [size, offset] = *best;
      remove(by_offset_.find(offset));
      if (size > bytes) add(offset + bytes, size - bytes);
      return offset;
    }
    std::int64_t offset = top_;
    if (!by_offset_.empty()) {
      const auto last = std::prev(by_offset_.end());
      if (last->first + last->second == top_) {
        offset = last->first;
        remove(last);
      }
    }
    top_ = offset + bytes;
    return offset;
  }

  void give_to_many(std::int64_t offset, std::int64_t bytes) {
    const auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == offset) {
        offset = before->first;
        bytes += before->second;
        remove(before);
      }
    }
    if (next != by_offset_.end() && offset + bytes == next->first) {
      bytes += next->second;
      remove(next);
    }
    add(offset, bytes);
  }

  void add(std::int64_t offset, std::int64_t bytes) {
    by_offset_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }
  void remove(std::map<std::int64_t, std::int64_t>::iterator block) {
    by_size_.erase({block->second, block->first});
    by_offset_.erase(block);
  }

  bool many_ = false;
  std::vector<Block> blocks_;
  std::map<std::int64_t, std::int64_t> by_offset_;
  std::set<std::pair<std::int64_t, std::int64_t>> by_size_;  // (bytes, offset)
  std::int64_t top_ = 0;
};

/// Positions of the values by the time at which they end.
template <typename End>
std::vector<std::uint32_t> by_end(std::span<const LiveRange> values, const End& end_of) {
  std::uint32_t end = 0;
  for (const LiveRange& value : values) end = std::max(end, end_of(value));
  std::vector<std::uint32_t> first(static_cast<std::size_t>(end) + 2, 0);
  for (const LiveRange& value : values) ++first[end_of(value) + 1];
  for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
  std::vector<std::uint32_t> sorted(values.size());
  for (std::uint32_t i = 0; i < values.size(); ++i) sorted[first[end_of(values[i])]++] = i;
  return sorted;
}

/// The largest sum of aligned sizes at one time.
template <typename End>
std::int64_t most(std::span<const LiveRange> values, std::span<const std::uint32_t> by_end,
                  const End& end_of) {
  std::int64_t live = 0, found = 0;
  std::size_t ended = 0;
  for (const LiveRange& value : values) {
    for (; ended < by_end.size() && end_of(values[by_end[ended]]) < value.first; ++ended)
      live -= aligned(values[by_end[ended]].bytes);
    live += aligned(value.bytes);
    found = std::max(found, live);
  }
  return found;
}

std::int64_t in_order_of_use(std::span<LiveRange> values, std::span<const std::uint32_t> given) {
  FreeList free;
  std::size_t ended = 0;
  for (LiveRange& value : values) {
    for (; ended < given.size() && values[given[ended]].given() < value.first; ++ended) {
      free.give(values[given[ended]].offset, aligned(values[given[ended]].bytes));
    }
    value.offset = free.take(aligned(value.bytes));
  }
  return free.top();
}

/// Largest first, each in the lowest gap between the values with overlapping live ranges.
std::int64_t by_size(std::span<const LiveRange> values, std::vector<std::int64_t>& offsets) {
  std::vector<std::uint32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return values[a].bytes > values[b].bytes;
  });
  offsets.assign(values.size(), 0);
  std::vector<std::uint32_t> placed;  // ascending by offset
  std::int64_t top = 0;
  for (const std::uint32_t v : order) {
    const std::int64_t bytes = aligned(values[v].bytes);
    std::int64_t at = 0;  // the end of the conflicting values so far
    for (const std::uint32_t other : placed) {
      if (values[other].given() < values[v].first || values[v].given() < values[other].first)
        continue;
      if (offsets[other] >= at + bytes) break;
      at = std::max(at, offsets[other] + aligned(values[other].bytes));
    }
    offsets[v] = at;
    top = std::max(top, at + bytes);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), at,
                         [&](std::int64_t x, std::uint32_t other) { return x < offsets[other]; }),
        v);
  }
  return top;
}

}  // namespace

LayoutSize lay_out(std::span<LiveRange> values) {
  LayoutSize size;
  if (values.empty()) return size;
  const auto last = [](const LiveRange& value) { return value.last; };
  const auto given = [](const LiveRange& value) { return value.given(); };
  const std::vector<std::uint32_t> by_given = by_end(values, given);
  const std::int64_t least = most(values, by_given, given);
  const bool kept = std::any_of(values.begin(), values.end(), [](const LiveRange& value) {
    return value.kept_until > value.last;
  });
  size.live = kept ? most(values, by_end(values, last), last) : least;
  size.bytes = in_order_of_use(values, by_given);
  if (values.size() > kSecondAttempt || size.bytes - least <= least / 50) return size;
  std::vector<std::int64_t> offsets;
  const std::int64_t second = by_size(values, offsets);
  if (second >= size.bytes) return size;
  size.bytes = second;
  for (std::size_t i = 0; i < values.size(); ++i) values[i].offset = offsets[i];
  return size;
}

}  // namespace piper::passes
