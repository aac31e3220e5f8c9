#include "ir/orders/compact.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "ir/orders/activations.h"
#include "ir/orders/only.h"
#include "ir/orders/slot_tables.h"
#include "ir/orders/squeeze.h"

namespace piper::orders {

using directive::OrderOp;

namespace {

/// Slots may reach so many times further than the work of a rank before `squeeze` closes gaps.
constexpr std::int64_t kMaxSpread = 64;
/// Rounds over all steps; a later one uses the room that the one before left.
constexpr int kRounds = 8;
/// Attempts to find a cap that a result keeps, before that of the order itself.
constexpr int kAttempts = 8;

/// A step as a unit that moves.
struct Moving {
  std::uint32_t rank = 0, step = 0;
  std::uint32_t first = 0, end = 0;  // its operations in the graph
  std::int64_t slot = 0, length = 0;
  double keeps = 0, releases = 0;  // activations; both positive
};

/// When the inputs of steps end, as the steps are placed one after the other.
class InputEnds {
 public:
  explicit InputEnds(const OrderGraph& graph)
      : graph_(graph), missing_(graph.indegree()), ready_(graph.vertices(), kNever) {
    for (std::uint32_t vertex = 0; vertex < graph.vertices(); ++vertex) {
      if (missing_[vertex] == 0 && vertex >= graph.operations().size()) open_.push_back(vertex);
    }
    settle();
  }

  /// The earliest slot of the step, as far as steps that are placed decide it.
  std::int64_t earliest(const Moving& step) const {
    std::int64_t slot = kNever, offset = 0;
    for (std::uint32_t op = step.first; op < step.end; ++op) {
      if (ready_[op] != kNever) slot = std::max(slot, ready_[op] - offset);
      offset += graph_.operations()[op].length;
    }
    return slot;
  }

  /// False if an input of the step is not placed.
  bool place(const Moving& step, std::int64_t slot) {
    for (std::uint32_t op = step.first; op < step.end; ++op) {
      if (missing_[op] > 0) return false;
      slot += graph_.operations()[op].length;
      release(op, slot);
      settle();
    }
    return true;
  }

  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

 private:
  void release(std::uint32_t vertex, std::int64_t end) {
    for (const std::uint32_t to : graph_.successors(vertex)) {
      ready_[to] = std::max(ready_[to], end);
      if (--missing_[to] == 0 && to >= graph_.operations().size()) open_.push_back(to);
    }
  }
  void settle() {
    while (!open_.empty()) {
      const std::uint32_t barrier = open_.back();
      open_.pop_back();
      release(barrier, ready_[barrier]);
    }
  }

  const OrderGraph& graph_;
  std::vector<std::uint32_t> missing_;
  std::vector<std::int64_t> ready_;
  std::vector<std::uint32_t> open_;  // barriers
};

/// The largest activations of each rank, and of all of them before steps moved.
struct Outcome {
  std::vector<double> largest;
  double before = 0;
  double maximum() const {
    return largest.empty() ? 0.0 : *std::max_element(largest.begin(), largest.end());
  }
};

class Compaction {
 public:
  Compaction(const OrderTree& tree, const OrderGraph& graph, const std::vector<double>& amounts)
      : graph_(graph) {
    const auto& operations = graph.operations();
    for (std::uint32_t op = 0; op < operations.size(); ++op) {
      const OrderGraph::Operation& at = operations[op];
      if (steps_.empty() || steps_.back().rank != at.rank || steps_.back().step != at.step) {
        steps_.push_back({at.rank, at.step, op, op, 0, 0, 0, 0});
        steps_.back().slot = tree.ranks[at.rank].steps[at.step].slot;
      }
      Moving& step = steps_.back();
      step.end = op + 1;
      step.length += at.length;
      (amounts[op] > 0 ? step.keeps : step.releases) +=
          amounts[op] > 0 ? amounts[op] : -amounts[op];
    }
    sort();
  }

  /// Whether the slots are times: no step begins before its inputs end, or while another one runs,
  /// and there are not many more slots than work.
  bool slots_are_times(std::size_t ranks) const {
    InputEnds ends(graph_);
    std::vector<std::int64_t> first(ranks, InputEnds::kNever), last(ranks, 0), work(ranks, 0);
    for (const Moving& step : steps_) {
      if (first[step.rank] == InputEnds::kNever) {
        first[step.rank] = last[step.rank] = step.slot;
      }
      if (step.slot < ends.earliest(step) || step.slot < last[step.rank] ||
          !ends.place(step, step.slot))
        return false;
      last[step.rank] = step.slot + step.length;
      work[step.rank] += step.length;
    }
    const std::int64_t begin = steps_.empty() ? 0 : steps_.front().slot;
    for (std::size_t r = 0; r < ranks; ++r) {
      if (work[r] > 0 && last[r] - begin > kMaxSpread * (work[r] + kMaxSpread)) return false;
    }
    return true;
  }

  /// Moves the steps.
  Outcome run(std::size_t ranks, std::optional<double> cap) {
    const std::int64_t begin = steps_.empty() ? 0 : steps_.front().slot;
    std::vector<std::int64_t> ends(ranks, 0);
    for (Moving& step : steps_) {
      step.slot -= begin;
      ends[step.rank] = std::max(ends[step.rank], step.slot + step.length);
    }
    std::vector<FreeSlots> free;
    std::vector<SlotAmounts> held;
    for (std::size_t r = 0; r < ranks; ++r) {
      free.emplace_back(static_cast<std::size_t>(ends[r]) + 1);
      held.emplace_back(static_cast<std::size_t>(ends[r]) + 1);
    }
    for (const Moving& step : steps_) {
      free[step.rank].set(step.slot, step.slot + step.length, false);
      held[step.rank].add(step.slot, ends[step.rank] + 1, step.keeps);
      held[step.rank].add(step.slot + 1, ends[step.rank] + 1, -step.releases);
    }
    Outcome outcome;
    for (const SlotAmounts& amounts : held)
      outcome.before = std::max(outcome.before, amounts.largest());
    for (int round = 0; round < kRounds && move_all(free, held, cap); ++round) sort();
    for (const SlotAmounts& amounts : held) outcome.largest.push_back(amounts.largest());
    return outcome;
  }

  /// Writes the slots, from 0 on, and sorts the steps of each rank by them.
  void write(OrderTree& tree) const {
    for (const Moving& step : steps_) tree.ranks[step.rank].steps[step.step].slot = step.slot;
    for (RankTree& rank : tree.ranks) {
      rank.slotted = true;
      std::stable_sort(rank.steps.begin(), rank.steps.end(),
                       [](const StepTree& a, const StepTree& b) { return a.slot < b.slot; });
    }
  }

 private:
  /// Gives each step the earliest slot that it can have; whether one has moved.
  bool move_all(std::vector<FreeSlots>& free, std::vector<SlotAmounts>& held,
                std::optional<double> cap) {
    bool moved = false;
    InputEnds inputs(graph_);
    for (Moving& step : steps_) {
      FreeSlots& slots = free[step.rank];
      SlotAmounts& amounts = held[step.rank];
      std::int64_t from = std::max<std::int64_t>(0, inputs.earliest(step));
      if (cap && step.keeps > 0) {
        const auto last = amounts.last_above(from, step.slot, *cap - step.keeps + kSameAmount);
        if (last) from = *last + 1;
      }
      slots.set(step.slot, step.slot + step.length, true);
      const std::int64_t slot =
          std::min(step.slot, slots.first(from, step.length).value_or(step.slot));
      slots.set(slot, slot + step.length, false);
      amounts.add(slot, step.slot, step.keeps);
      amounts.add(slot + 1, step.slot + 1, -step.releases);
      moved = moved || slot < step.slot;
      step.slot = slot;
      inputs.place(step, slot);
    }
    return moved;
  }

  void sort() {
    std::stable_sort(steps_.begin(), steps_.end(), [](const Moving& a, const Moving& b) {
      return std::pair(a.slot, a.rank) < std::pair(b.slot, b.rank);
    });
  }

  const OrderGraph& graph_;
  std::vector<Moving> steps_;  // as they are placed
};

/// The activations of each operation of the graph; 0 for all without a cap. Nothing if those of
/// `unknown` are unknown.
std::optional<std::vector<double>> amounts_of(const OrderTree& tree, const Facts& facts,
                                              bool needed, const OrderOp*& unknown) {
  const std::uint32_t ranks = sharing_ranks(tree);
  std::vector<double> amounts;
  for (const RankTree& rank : tree.ranks) {
    for (const StepTree& step : rank.steps) {
      for_each_op(step, [&](const OrderOp& op) {
        const std::optional<double> amount =
            needed ? activations(op, tree, facts, ranks) : std::optional(0.0);
        if (!amount && unknown == nullptr) unknown = &op;
        amounts.push_back(amount.value_or(0));
      });
    }
  }
  return unknown == nullptr ? std::optional(std::move(amounts)) : std::nullopt;
}

}  // namespace

Compacted compact(OrderTree& tree, const Facts& facts, std::optional<double> cap) {
  Compacted result;
  const std::size_t ranks = tree.ranks.size();
  const OrderGraph graph(tree, facts);
  const auto amounts = amounts_of(tree, facts, cap.has_value(), result.unknown);
  if (!amounts) return result;
  OrderTree start = tree;
  const bool all_slotted = std::all_of(start.ranks.begin(), start.ranks.end(),
                                       [](const RankTree& rank) { return rank.slotted; });
  if (!all_slotted || !Compaction(start, graph, *amounts).slots_are_times(ranks)) {
    if (!squeeze(start, graph)) return result;
  }
  const auto attempt = [&](std::optional<double> bound) {
    Compaction compaction(start, graph, *amounts);
    Outcome outcome = compaction.run(ranks, bound);
    return std::pair(std::move(compaction), std::move(outcome));
  };
  const auto [compaction, outcome] = attempt(cap);
  if (!cap || outcome.maximum() <= *cap + kSameAmount) {
    tree = std::move(start);
    compaction.write(tree);
    return result;
  }
  const std::vector<double>& largest = outcome.largest;
  result.min_cap = outcome.maximum();
  // The bound of the order itself always works, because no step moves beyond it.
  for (int i = 0;; ++i) {
    const double found = attempt(result.min_cap).second.maximum();
    if (found <= *result.min_cap + kSameAmount) break;
    result.min_cap = i < kAttempts ? found : outcome.before;
    if (i == kAttempts) break;
  }
  result.largest =
      tree.ranks[static_cast<std::size_t>(std::max_element(largest.begin(), largest.end()) -
                                          largest.begin())]
          .devices;
  return result;
}

}  // namespace piper::orders
