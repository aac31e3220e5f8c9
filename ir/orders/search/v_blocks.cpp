// Building blocks: the operations of one microbatch start at fixed slots of a period, which is
// repeated for all of them (arXiv 2405.15362). Orders of a folded line with little memory come from
// these.

#include <algorithm>
#include <array>

#include "ir/orders/search/starts.h"

namespace piper::orders {

namespace {

constexpr std::uint32_t kPeriod = 6;  // operations of one microbatch on a rank
/// Operations that all blocks together place, beyond a few blocks.
constexpr std::uint64_t kMaxPlaced = 3'000'000;

/// The first slots of a block, by rank: F out, F back, B back, B out, W back, W out.
using Starts = std::vector<std::array<std::int64_t, kPeriod>>;

/// The first slot from `from` on with the remainder.
std::int64_t next_slot(std::int64_t from, std::int64_t remainder) {
  const std::int64_t period = kPeriod;
  return from + ((remainder - from) % period + period) % period;
}

/// The operations out move by `first` slots per rank up to rank `turn`, and by `second` behind it;
/// those back by one. `slots`: of F back, B back and B out on rank 0, in a period.
struct BlockShape {
  std::array<std::int64_t, 3> slots;
  std::int64_t first, second;
  std::uint32_t turn;
};

class Block {
 public:
  Block(std::uint32_t p, const BlockShape& shape, bool split) : starts_(p) {
    const std::array<std::int64_t, 3>& slots = shape.slots;
    const auto shift = [&](std::uint32_t r) {
      return shape.first * std::min(r, shape.turn) +
             shape.second * (r > shape.turn ? r - shape.turn : 0);
    };
    const auto last = static_cast<std::int64_t>(p) - 1;
    const std::int64_t forward_turn = next_slot(shift(p - 1) + 1, slots[0] - last);
    const std::int64_t back = next_slot(forward_turn + last + 1, slots[1]);
    const std::int64_t backward_turn = next_slot(back + shift(p - 1) + 1, slots[2] - last);
    for (std::uint32_t r = 0; r < p; ++r) {
      const std::int64_t up = last - static_cast<std::int64_t>(r);
      starts_[r] = {shift(r), forward_turn + up, back + shift(r), backward_turn + up, 0, 0};
    }
    collides_ = !place_weights(split);
  }

  /// Whether two operations of a rank have one slot of the period.
  bool collides() const { return collides_; }

  /// The parts that a rank holds in the steady phase, on average over a period, at most.
  double held() const {
    double largest = 0;
    for (const auto& starts : starts_) {
      const std::int64_t slots = (starts[5] - starts[0]) + (starts[4] - starts[1]) + 2;
      largest = std::max(largest, static_cast<double>(slots) / kPeriod);
    }
    return largest;
  }

  /// The order by slots.
  CodeLists lists(const SearchProblem& problem, const Shape& shape) const {
    CodeLists lists(shape.p);
    std::vector<std::pair<std::int64_t, Code>> slots;
    for (std::uint32_t r = 0; r < shape.p; ++r) {
      const std::uint32_t out = r, back = 2 * shape.p - 1 - r;
      const std::array<Code, kPeriod> codes = {
          kTrackPasses * out + kTrackF,  kTrackPasses * back + kTrackF,
          kTrackPasses * back + kTrackB, kTrackPasses * out + kTrackB,
          kTrackPasses * back + kTrackW, kTrackPasses * out + kTrackW};
      slots.clear();
      for (std::uint32_t i = 0; i < shape.m; ++i) {
        for (std::size_t k = 0; k < (problem.split() ? kPeriod : 4u); ++k)
          slots.emplace_back(starts_[r][k] + std::int64_t{kPeriod} * i, codes[k]);
      }
      std::sort(slots.begin(), slots.end());
      for (const auto& [slot, code] : slots) lists[shape.rank_of[r]].push_back(code);
    }
    return lists;
  }

 private:
  /// False if operations collide.
  bool place_weights(bool split) {
    for (std::array<std::int64_t, kPeriod>& starts : starts_) {
      std::array<bool, kPeriod> taken{};
      for (std::size_t i = 0; i < 4; ++i) {
        bool& slot = taken[static_cast<std::size_t>(starts[i] % kPeriod)];
        if (slot) return false;
        slot = true;
      }
      for (std::size_t i = 4; i < kPeriod; ++i) {  // W back follows B back, W out follows B out
        std::int64_t slot = starts[i - 2] + 1;
        while (split && taken[static_cast<std::size_t>(slot % kPeriod)]) ++slot;
        taken[static_cast<std::size_t>(slot % kPeriod)] = true;
        starts[i] = slot;
      }
    }
    return true;
  }

  Starts starts_;
  bool collides_ = false;
};

/// The blocks without collisions that may keep the cap.
std::vector<BlockShape> block_shapes(const SearchProblem& problem, std::uint32_t p) {
  std::vector<BlockShape> found;
  const auto add = [&](const BlockShape& shape) {
    const Block block(p, shape, problem.split());
    if (!block.collides() && block.held() <= problem.capacity() + 1.0) found.push_back(shape);
  };
  for (std::int64_t a = 1; a < kPeriod; ++a) {
    for (std::int64_t b = 1; b < kPeriod; ++b) {
      for (std::int64_t c = 1; c < kPeriod; ++c) {
        if (a == b || b == c || a == c) continue;
        for (std::int64_t first = 1; first < kPeriod; ++first) {
          for (std::int64_t second = 1; second < first; ++second) {
            for (std::uint32_t turn = 1; turn < p; ++turn) add({{a, b, c}, first, second, turn});
          }
          add({{a, b, c}, first, first, p});
        }
      }
    }
  }
  return found;
}

}  // namespace

void block_starts(const SearchProblem& problem, const Shape& shape, const TakeStart& take) {
  if (shape.family != Family::folded || shape.p < 2) return;
  const std::vector<BlockShape> found = block_shapes(problem, shape.p);
  // If there are many, some of them with equal distances.
  const std::size_t wanted =
      std::max<std::size_t>(16, kMaxPlaced / std::max<std::uint64_t>(problem.operations(), 1));
  const std::size_t stride = (found.size() + wanted - 1) / wanted;
  for (std::size_t i = 0; i < found.size(); i += stride) {
    const Block block(shape.p, found[i], problem.split());
    if (!take(block.lists(problem, shape))) return;
  }
}

}  // namespace piper::orders
