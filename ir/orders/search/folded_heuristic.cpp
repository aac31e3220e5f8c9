// The heuristic of ZB-V (arXiv 2401.10241) for a folded line: rounds of one backward and one forward
// per rank, with weight gradients as filler.

#include <algorithm>

#include "ir/orders/search/starts.h"

namespace piper::orders {

namespace {

class FoldedHeuristic {
 public:
  /// `worst`: idle time that every rank may have.
  FoldedHeuristic(const SearchProblem& problem, const Shape& shape, bool fills_backward,
                  bool fills_forward, double worst)
      : problem_(problem),
        shape_(shape),
        fills_backward_(fills_backward),
        fills_forward_(fills_forward),
        worst_(worst),
        ends_(2 * std::size_t{shape.p} * kTrackPasses),
        at_(shape.p) {}

  /// The order is incomplete if the cap forbids an operation that it needs.
  CodeLists run() {
    warm_up();
    while (round()) {}
    CodeLists lists(shape_.p);
    for (std::uint32_t r = 0; r < shape_.p; ++r) {
      while (pending(r)) weight_gradient(r);
      lists[shape_.rank_of[r]] = std::move(at_[r].list);
    }
    return lists;
  }

  double worst() const {
    double idle = worst_;
    for (const Rank& rank : at_) idle = std::max(idle, rank.idle);
    return idle;
  }

 private:
  struct Rank {
    double clock = 0, idle = 0;
    std::uint32_t held = 0;
    std::vector<Code> list;
    std::vector<Code> queue;  // weight gradients, the oldest first
    std::size_t oldest = 0;
  };

  std::uint32_t out(std::uint32_t r) const { return r; }
  std::uint32_t back(std::uint32_t r) const { return 2 * shape_.p - 1 - r; }
  std::uint32_t rank_of(std::uint32_t stage) const {
    return std::min(stage, 2 * shape_.p - 1 - stage);
  }
  std::size_t done(std::uint32_t stage, TrackPass pass) const {
    return ends_[kTrackPasses * stage + pass].size();
  }
  bool pending(std::uint32_t r) const { return at_[r].oldest < at_[r].queue.size(); }

  /// When the next operation of the stage can start; nothing if its inputs have not started.
  std::optional<double> arrival(std::uint32_t stage, TrackPass pass) const {
    const std::size_t next = done(stage, pass);
    const std::uint32_t last = 2 * shape_.p - 1;
    if (next >= shape_.m) return std::nullopt;
    double time = 0;
    if (pass == kTrackB) {
      if (done(stage, kTrackF) <= next) return std::nullopt;
      time = ends_[kTrackPasses * stage + kTrackF][next];
    }
    if (stage == (pass == kTrackF ? 0 : last)) return time;
    const std::uint32_t from = pass == kTrackF ? stage - 1 : stage + 1;
    if (done(from, pass) <= next) return std::nullopt;
    return std::max(time, ends_[kTrackPasses * from + pass][next] + problem_.sent(from, stage));
  }

  void add(std::uint32_t stage, TrackPass pass, double arrives) {
    Rank& rank = at_[rank_of(stage)];
    const double start = std::max(rank.clock, arrives);
    if (!rank.list.empty()) rank.idle += start - rank.clock;
    rank.clock = start + problem_.seconds(kTrackPasses * stage + pass);
    ends_[kTrackPasses * stage + pass].push_back(rank.clock);
    rank.list.push_back(kTrackPasses * stage + pass);
    if (pass == kTrackF) ++rank.held;
    if (pass == kTrackB) rank.queue.push_back(kTrackPasses * stage + kTrackW);
  }
  void weight_gradient(std::uint32_t r) {
    Rank& rank = at_[r];
    const Code code = rank.queue[rank.oldest++];
    rank.list.push_back(code);
    rank.clock += problem_.seconds(code);
    --rank.held;
  }

  /// Runs the next forward if its input has started and the rank has room.
  bool forward(std::uint32_t stage) {
    const auto arrives = arrival(stage, kTrackF);
    if (!arrives || at_[rank_of(stage)].held >= problem_.capacity()) return false;
    add(stage, kTrackF, *arrives);
    return true;
  }

  void warm_up() {
    const std::uint32_t p = shape_.p;
    for (std::uint32_t r = 0; r < p; ++r) forward(out(r));
    for (std::uint32_t r = p; r-- > 0;) {
      const auto arrives = arrival(back(r), kTrackF);
      while (arrives && at_[r].held + 2 + 2 * r <= problem_.capacity() &&
             at_[r].clock + problem_.seconds(kTrackPasses * out(r) + kTrackF) <= *arrives &&
             done(out(0), kTrackF) < shape_.m) {
        for (std::uint32_t before = 0; before <= r; ++before) forward(out(before));
      }
      forward(back(r));
    }
    for (std::uint32_t r = 1; r < p; ++r) {
      const auto forwards = [&](std::uint32_t rank) {
        return done(out(rank), kTrackF) + done(back(rank), kTrackF);
      };
      for (bool moved = true; moved && forwards(r) < forwards(r - 1);) {
        moved = false;
        for (std::uint32_t rank = r; rank < p; ++rank) moved = forward(out(rank)) || moved;
        for (std::uint32_t rank = p; rank-- > r;) moved = forward(back(rank)) || moved;
      }
    }
  }

  void fill_until(std::uint32_t r, double arrives, bool fills) {
    Rank& rank = at_[r];
    const auto fits = [&] {
      return pending(r) && rank.clock < arrives &&
             rank.clock + problem_.seconds(rank.queue[rank.oldest]) <= arrives;
    };
    while (fits()) weight_gradient(r);
    if (!pending(r) || rank.clock >= arrives) return;
    if (fills || arrives - rank.clock > worst() - rank.idle) weight_gradient(r);
  }

  bool backward(std::uint32_t stage, bool fills) {
    const auto arrives = arrival(stage, kTrackB);
    if (!arrives) return false;
    fill_until(rank_of(stage), *arrives, fills);
    add(stage, kTrackB, *arrives);
    return true;
  }
  bool filled_forward(std::uint32_t stage) {
    const auto arrives = arrival(stage, kTrackF);
    if (!arrives) return false;
    const std::uint32_t r = rank_of(stage);
    // A forward out leaves room for the forward back of its microbatch.
    const std::uint32_t needed = stage < shape_.p ? 2 : 1;
    while (at_[r].held + needed > problem_.capacity()) {
      if (!pending(r)) return false;
      weight_gradient(r);
    }
    fill_until(r, *arrives, fills_forward_);
    add(stage, kTrackF, *arrives);
    return true;
  }

  /// One backward and one forward of each rank, where there is one; false if there is none.
  bool round() {
    const std::uint32_t p = shape_.p;
    std::vector<bool> ran_backward(p, false), ran_forward(p, false);
    for (std::uint32_t r = p; r-- > 0;) ran_backward[r] = backward(out(r), false);
    for (std::uint32_t r = 0; r < p; ++r)
      ran_backward[r] = ran_backward[r] || backward(back(r), fills_backward_);
    for (std::uint32_t r = p; r-- > 0;) ran_forward[r] = filled_forward(back(r));
    for (std::uint32_t r = 0; r < p; ++r) ran_forward[r] = ran_forward[r] || filled_forward(out(r));
    const auto any = [](const std::vector<bool>& ran) {
      return std::find(ran.begin(), ran.end(), true) != ran.end();
    };
    return any(ran_backward) || any(ran_forward);
  }

  const SearchProblem& problem_;
  const Shape& shape_;
  const bool fills_backward_, fills_forward_;
  const double worst_;
  std::vector<std::vector<double>> ends_;  // by code
  std::vector<Rank> at_;
};

}  // namespace

void folded_heuristic(const SearchProblem& problem, const Shape& shape, const TakeStart& take) {
  constexpr int kReruns = 4;
  if (shape.family != Family::folded || !problem.split()) return;
  for (unsigned bits = 0; bits < 4; ++bits) {
    double worst = 0;
    for (int run = 0; run < kReruns; ++run) {
      FoldedHeuristic heuristic(problem, shape, (bits & 1) != 0, (bits & 2) != 0, worst);
      if (!take(heuristic.run())) return;
      if (heuristic.worst() == worst) break;
      worst = heuristic.worst();
    }
  }
}

}  // namespace piper::orders
