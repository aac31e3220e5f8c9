#include "ir/orders/search/improve.h"

#include <algorithm>

namespace piper::orders {

namespace {

/// Tries between an order and the one that it is compared with.
constexpr std::size_t kHistory = 400;

class Walk {
 public:
  Walk(const SearchProblem& problem, Timing& timing, ScoredLists start, SearchNumbers& numbers)
      : problem_(problem),
        timing_(timing),
        numbers_(numbers),
        best_(std::move(start)),
        current_(best_),
        done_(problem.tracks().size() * kTrackPasses) {
    for (std::uint32_t rank = 0; rank < problem.ranks(); ++rank) {
      if (current_.lists[rank].size() > 1) movable_.push_back(rank);
    }
  }

  ScoredLists run(std::uint64_t tries, double bound) {
    if (movable_.empty()) return std::move(best_);
    std::vector<double> history(kHistory, weighed(current_.score));
    timing_.run(current_.lists);
    critical_ = timing_.critical(current_.lists);
    for (std::uint64_t i = 0; i < tries && !reaches(best_.score.value, bound); ++i) {
      double& before = history[i % kHistory];
      if (const auto score = move()) {
        const double now = weighed(*score), last = weighed(current_.score);
        if (now <= last || now <= before) {
          current_.score = *score;
          critical_ = timing_.critical(current_.lists);
          if (*score < best_.score) best_ = current_;
        } else {
          undo();
        }
      }
      before = std::min(before, weighed(current_.score));
    }
    return std::move(best_);
  }

 private:
  /// The mean guides the walk where the objective is the same.
  static double weighed(const Score& score) { return score.value + score.mean / 16; }

  /// Nothing if the move gives no legal order; it is undone then.
  std::optional<Score> move() {
    choose_place();
    std::vector<Code>& list = current_.lists[rank_];
    saved_ = list;
    const bool changed = numbers_.below(8) == 0 ? exchange_pairs() : shift();
    if (!changed) return std::nullopt;
    std::optional<Score> score;
    if (keeps(rank_)) score = timing_.run(current_.lists);
    if (!score) undo();
    return score;
  }
  void undo() { current_.lists[rank_].swap(saved_); }

  /// Takes an operation from one position of the list to another one.
  void rotate(std::uint32_t from, std::uint32_t to) {
    const auto list = current_.lists[rank_].begin();
    if (from < to) {
      std::rotate(list + from, list + from + 1, list + to + 1);
    } else {
      std::rotate(list + to, list + from, list + from + 1);
    }
  }

  std::uint32_t distance() {
    std::uint32_t bound = 2;
    while (bound < 64 && numbers_.below(3) != 0) bound *= 2;
    return 1 + numbers_.below(bound);
  }

  /// An operation, most often one of those that decide the objective.
  void choose_place() {
    if (!critical_.empty() && numbers_.below(4) != 0) {
      const Timing::Place place = critical_[numbers_.below(critical_.size())];
      rank_ = place.rank;
      position_ = place.position;
    } else {
      rank_ = movable_[numbers_.below(movable_.size())];
      position_ = numbers_.below(current_.lists[rank_].size());
    }
  }

  /// The operation, or one before it, moves.
  bool shift() {
    const std::vector<Code>& list = current_.lists[rank_];
    const auto last = static_cast<std::uint32_t>(list.size()) - 1;
    const std::uint32_t step = distance();
    const std::uint32_t earlier = position_ > step ? position_ - step : 0;
    const std::uint32_t later = std::min(last, position_ + step);
    std::uint32_t from = position_, to = position_;
    switch (numbers_.below(3)) {
      case 0: to = earlier; break;
      case 1: to = later; break;
      default: from = earlier; break;
    }
    // Operations of one code are equal: moves across them are shorter ones.
    const Code code = list[from];
    while (from < to && list[to] == code) --to;
    while (from > to && list[to] == code) ++to;
    if (from == to) return false;
    rotate(from, to);
    return true;
  }

  /// Exchanges the operation with the next one, and all pairs of these codes in some stretch behind
  /// it: a period of the steady phase changes everywhere.
  bool exchange_pairs() {
    std::vector<Code>& list = current_.lists[rank_];
    if (position_ + 1 >= list.size() || list[position_] == list[position_ + 1]) return false;
    const Code first = list[position_], second = list[position_ + 1];
    const std::size_t end = position_ + 2 + numbers_.below(list.size() - position_);
    for (std::size_t i = position_; i + 1 < std::min(end, list.size()); ++i) {
      if (list[i] != first || list[i + 1] != second) continue;
      std::swap(list[i], list[i + 1]);
      ++i;
    }
    return true;
  }

  bool keeps(std::uint32_t rank) {
    for (const std::uint32_t track : problem_.tracks_on(rank))
      std::fill_n(done_.begin() + kTrackPasses * track, std::size_t{kTrackPasses}, 0u);
    std::uint32_t held = 0;
    for (const Code code : current_.lists[rank]) {
      const std::uint32_t pass = code % kTrackPasses;
      ++done_[code];
      if (pass != kTrackF && done_[code] > done_[code - 1]) return false;
      held += static_cast<std::uint32_t>(problem_.change(pass));
      if (held > problem_.capacity()) return false;
    }
    return true;
  }

  const SearchProblem& problem_;
  Timing& timing_;
  SearchNumbers& numbers_;
  ScoredLists best_, current_;
  std::vector<std::uint32_t> done_;
  std::vector<std::uint32_t> movable_;  // ranks
  std::vector<Timing::Place> critical_;
  std::vector<Code> saved_;  // the list of the rank before the move
  std::uint32_t rank_ = 0, position_ = 0;
};

}  // namespace

ScoredLists improve(const SearchProblem& problem, Timing& timing, ScoredLists start,
                    std::uint64_t tries, double bound, SearchNumbers& numbers) {
  return Walk(problem, timing, std::move(start), numbers).run(tries, bound);
}

}  // namespace piper::orders
