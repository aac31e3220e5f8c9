#include "frontend/views/choice_search.h"

#include <limits>
#include <map>
#include <random>
#include <utility>

namespace piper::views {
namespace {

/// Less is better, and every figure is better than a refusal.
bool is_better(const std::optional<double>& a, const std::optional<double>& b) {
  return a && (!b || *a < *b);
}

class ChoiceSearch {
 public:
  ChoiceSearch(const std::vector<std::size_t>& sizes, const SearchLimits& limits,
               const Judge& judge)
      : sizes_(sizes), limits_(limits), judge_(judge), random_(limits.seed) {}

  void all(const Choice& initial) {
    judged(initial);
    Choice choice(sizes_.size(), 0);
    do {
      judged(choice);
    } while (!ended() && advance(choice));
  }

  void descend(const Choice& initial) {
    Choice start = initial;
    do {
      descend_from(start);
      start = unseen();
    } while (!ended());
  }

 private:
  bool ended() const { return known_.size() >= limits_.tries || limits_.stopped(); }

  std::optional<double> judged(const Choice& choice) {
    if (const auto found = known_.find(choice); found != known_.end()) return found->second;
    if (ended()) return std::nullopt;
    return known_.emplace(choice, judge_(choice)).first->second;
  }

  void descend_from(Choice at) {
    std::optional<double> value = judged(at);
    bool better = true;
    while (better && !ended()) {
      better = false;
      for (std::size_t hole = 0; hole < sizes_.size() && !ended(); ++hole) {
        Choice next = at;
        for (next[hole] = 0; next[hole] < sizes_[hole]; ++next[hole]) {
          const std::optional<double> other = judged(next);
          if (!is_better(other, value)) continue;
          value = other;
          at[hole] = next[hole];
          better = true;
        }
      }
    }
  }

  /// A random combination that was not judged. There are more than may be judged.
  Choice unseen() {
    Choice choice(sizes_.size());
    for (std::size_t hole = 0; hole < sizes_.size(); ++hole)
      choice[hole] = static_cast<std::size_t>(random_() % sizes_[hole]);
    while (known_.contains(choice)) {
      if (!advance(choice)) choice.assign(sizes_.size(), 0);
    }
    return choice;
  }

  /// The next combination, the last hole fastest; false after the last one.
  bool advance(Choice& choice) const {
    for (std::size_t hole = sizes_.size(); hole-- > 0;) {
      if (++choice[hole] < sizes_[hole]) return true;
      choice[hole] = 0;
    }
    return false;
  }

  const std::vector<std::size_t>& sizes_;
  const SearchLimits& limits_;
  const Judge& judge_;
  std::mt19937_64 random_;
  std::map<Choice, std::optional<double>> known_;
};

}  // namespace

std::uint64_t combinations(const std::vector<std::size_t>& sizes) {
  constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t count = 1;
  for (const std::size_t size : sizes) count = count > kLargest / size ? kLargest : count * size;
  return count;
}

void search_choices(const std::vector<std::size_t>& sizes, const Choice& initial,
                    const SearchLimits& limits, const Judge& judge) {
  ChoiceSearch search(sizes, limits, judge);
  if (combinations(sizes) <= limits.tries) {
    search.all(initial);
  } else {
    search.descend(initial);
  }
}

}  // namespace piper::views
