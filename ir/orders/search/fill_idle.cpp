#include "ir/orders/search/fill_idle.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

namespace piper::orders {

namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

class Filling {
 public:
  Filling(const SearchProblem& problem, CodeLists lists, const FillRule& rule)
      : problem_(problem),
        fits_(rule.fits),
        weights_last_(rule.weights_last && problem.split()),
        lists_(std::move(lists)),
        at_(problem.ranks()),
        ends_(problem.tracks().size() * kTrackPasses),
        looked_at_(ends_.size(), 0) {
    if (weights_last_) {
      for (std::vector<Code>& list : lists_)
        std::erase_if(list, [](Code code) { return code % kTrackPasses == kTrackW; });
    }
    for (std::uint32_t number = 0; number < problem.tracks().size(); ++number) {
      for (std::uint32_t pass = 0; pass < kTrackPasses; ++pass)
        ends_[kTrackPasses * number + pass].reserve(problem.tracks()[number].count);
    }
  }

  CodeLists run() {
    for (std::uint32_t rank = 0; rank < at_.size(); ++rank) events_.emplace(0, rank);
    while (!events_.empty()) {
      const auto [now, rank] = events_.top();
      while (!events_.empty() && events_.top() == std::pair(now, rank)) events_.pop();
      if (at_[rank].free <= now) start(rank, now);
    }
    CodeLists filled;
    for (Rank& rank : at_) filled.push_back(std::move(rank.list));
    return filled;
  }

 private:
  struct Rank {
    std::size_t head = 0;  // into the list that is left
    double free = 0;
    std::int64_t held = 0;
    std::vector<Code> list;
    std::vector<Code> queue;  // pending weight gradients that are in no list, the oldest first
    std::size_t oldest = 0;
    std::int64_t pending() const { return static_cast<std::int64_t>(queue.size() - oldest); }
  };

  /// When an operation can start, as far as its inputs have started.
  double ready(Code code) const {
    const std::uint32_t number = code / kTrackPasses, pass = code % kTrackPasses;
    const std::size_t occurrence = ends_[code].size();
    double time = 0;
    if (pass != kTrackF) {
      if (ends_[code - 1].size() <= occurrence) return kUnknown;
      time = ends_[code - 1][occurrence];
    }
    const SearchProblem::Track& track = problem_.tracks()[number];
    const std::uint32_t from = pass == kTrackF   ? track.before
                               : pass == kTrackB ? track.after
                                                 : SearchProblem::kNone;
    if (from == SearchProblem::kNone) return time;
    const std::vector<double>& input = ends_[kTrackPasses * from + pass];
    if (input.size() <= occurrence) return kUnknown;
    return std::max(time, input[occurrence] + problem_.sent(from, number));
  }

  /// The change of the parts that a rank has to hold: it can run pending weight gradients.
  int change(std::uint32_t pass) const {
    return weights_last_ && pass == kTrackB ? -1 : problem_.change(pass);
  }

  /// Starts an operation of an idle rank, if one can start.
  void start(std::uint32_t rank, double now) {
    constexpr std::size_t kWindow = 64;
    Rank& at = at_[rank];
    std::vector<Code>& left = lists_[rank];
    const double next = at.head < left.size() ? ready(left[at.head]) : kUnknown;
    std::int64_t held = at.held - at.pending(), largest = held;
    const std::size_t codes = problem_.tracks_on(rank).size() * (problem_.split() ? 3 : 2);
    ++look_;
    std::size_t seen = 0;  // codes: the first of each is the one that can start
    for (std::size_t i = at.head; i < left.size() && i < at.head + kWindow && seen < codes; ++i) {
      const Code code = left[i];
      const bool first = std::exchange(looked_at_[code], look_) != look_;
      if (first) ++seen;
      const std::uint32_t pass = code % kTrackPasses;
      const bool has_room = change(pass) <= 0 || largest + 1 <= problem_.capacity();
      const bool in_time = i == at.head || in_time_before(next, now, code);
      if (first && has_room && in_time && ready(code) <= now) {
        if (pass == kTrackF && at.held == problem_.capacity()) {
          run_weights(rank, now);
          return;
        }
        std::rotate(left.begin() + static_cast<std::ptrdiff_t>(at.head),
                    left.begin() + static_cast<std::ptrdiff_t>(i),
                    left.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        ++at.head;
        run_operation(rank, code, now);
        if (weights_last_ && pass == kTrackB) at.queue.push_back(code + kTrackW - kTrackB);
        return;
      }
      held += change(pass);
      largest = std::max(largest, held);
    }
    if (at.pending() > 0 && in_time_before(next, now, at.queue[at.oldest])) run_weights(rank, now);
  }
  bool in_time_before(double next, double now, Code code) const {
    return !fits_ || next == kUnknown || now + problem_.seconds(code) <= next;
  }

  void run_operation(std::uint32_t rank, Code code, double now) {
    Rank& at = at_[rank];
    const std::uint32_t pass = code % kTrackPasses;
    at.held += problem_.change(pass);
    at.list.push_back(code);
    at.free = now + problem_.seconds(code);
    ends_[code].push_back(at.free);
    events_.emplace(at.free, rank);
    wake_reader(code, at.free);
  }
  void run_weights(std::uint32_t rank, double now) {
    Rank& at = at_[rank];
    if (at.pending() > 0) run_operation(rank, at.queue[at.oldest++], now);
  }

  /// The rank of the operation that reads the result looks again when it is there.
  void wake_reader(Code code, double end) {
    const std::uint32_t number = code / kTrackPasses, pass = code % kTrackPasses;
    const SearchProblem::Track& track = problem_.tracks()[number];
    const std::uint32_t reader = pass == kTrackF   ? track.after
                                 : pass == kTrackB ? track.before
                                                   : SearchProblem::kNone;
    if (reader == SearchProblem::kNone) return;
    events_.emplace(end + problem_.sent(number, reader), problem_.tracks()[reader].rank);
  }

  const SearchProblem& problem_;
  const bool fits_, weights_last_;
  CodeLists lists_;
  std::vector<Rank> at_;
  std::vector<std::vector<double>> ends_;  // by code, occurrence
  std::vector<std::uint64_t> looked_at_;   // by code: the last look
  std::uint64_t look_ = 0;
  using Event = std::pair<double, std::uint32_t>;  // time, rank
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace

CodeLists fill_idle(const SearchProblem& problem, CodeLists lists, const FillRule& rule) {
  return Filling(problem, std::move(lists), rule).run();
}

}  // namespace piper::orders
