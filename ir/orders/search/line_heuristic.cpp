// The heuristic of ZB-1p and ZB-2p (arXiv 2401.10241): idle time hurts only on the rank that has
// most of it; the others may wait, and use weight gradients as filler.

#include <algorithm>

#include "ir/orders/search/starts.h"

namespace piper::orders {

namespace {

struct Options {
  bool idle_before_backward = false, prefers_backward = false, fills_slack = false;
};

class LineHeuristic {
 public:
  LineHeuristic(const SearchProblem& problem, const Shape& shape, const Options& options)
      : problem_(problem),
        shape_(shape),
        options_(options),
        c_(problem.rule().comm),
        stages_(shape.p) {}

  /// The order is incomplete if the cap forbids a forward that it needs.
  CodeLists run() {
    warm_up();
    for (std::uint32_t i = 1; i < shape_.m; ++i) {
      choose_forwards(i);
      for (std::uint32_t s = 0; s < shape_.p; ++s) {
        if (takes_forward_[s]) forward(s);
      }
      for (std::uint32_t s = shape_.p; s-- > 0;) backward(s, i);
    }
    CodeLists lists(shape_.p);
    for (std::uint32_t s = 0; s < shape_.p; ++s) {
      while (pending(s) > 0) add(s, kTrackW);
      lists[shape_.rank_of[s]] = std::move(stages_[s].list);
    }
    return lists;
  }

 private:
  struct Stage {
    double clock = 0, idle = 0;
    std::uint32_t done[kTrackPasses] = {};
    std::vector<double> ends[2];  // of forwards and backwards
    std::vector<Code> list;
  };

  double seconds(std::uint32_t s, TrackPass pass) const {
    return problem_.seconds(kTrackPasses * s + pass);
  }
  std::uint32_t held(std::uint32_t s) const {
    return stages_[s].done[kTrackF] - stages_[s].done[kTrackW];
  }
  std::uint32_t pending(std::uint32_t s) const {
    return stages_[s].done[kTrackB] - stages_[s].done[kTrackW];
  }
  bool has_room(std::uint32_t s) const { return held(s) < problem_.capacity(); }

  void add(std::uint32_t s, TrackPass pass, double arrival = 0) {
    Stage& stage = stages_[s];
    const double start = std::max(stage.clock, arrival);
    if (!stage.list.empty()) stage.idle += start - stage.clock;
    stage.clock = start + seconds(s, pass);
    if (pass != kTrackW) stage.ends[pass].push_back(stage.clock);
    ++stage.done[pass];
    stage.list.push_back(kTrackPasses * s + pass);
  }

  double worst() const {
    double idle = 0;
    for (const Stage& stage : stages_) idle = std::max(idle, stage.idle);
    return idle;
  }
  /// The arrival of the next forward; the stage before must have run it.
  double next_forward(std::uint32_t s) const {
    return s == 0 ? 0 : stages_[s - 1].ends[kTrackF][stages_[s].done[kTrackF]] + c_;
  }

  void warm_up() {
    const std::uint32_t p = shape_.p;
    for (std::uint32_t s = 0; s < p; ++s) add(s, kTrackF, next_forward(s));
    std::vector<std::uint32_t> more(p, 0);
    double arrival = stages_[p - 1].clock;  // of the first backward
    for (std::uint32_t s = p; s-- > 0;) {
      double clock = stages_[s].clock;
      const double f = seconds(s, kTrackF);
      while (held(s) + more[s] < problem_.capacity() && 1 + more[s] < shape_.m &&
             (options_.idle_before_backward ? clock + f <= arrival : clock < arrival)) {
        ++more[s];
        clock += f;
      }
      arrival = std::max(arrival, clock) + seconds(s, kTrackB) + c_;
    }
    for (std::uint32_t s = 1; s < p; ++s)
      more[s] = std::min(more[s], std::max(more[s - 1], 1u) - 1);
    for (std::uint32_t s = 0; s < p; ++s) {
      for (std::uint32_t i = 0; i < more[s]; ++i) add(s, kTrackF, next_forward(s));
    }
    for (std::uint32_t s = p; s-- > 0;)
      add(s, kTrackB, s + 1 < p ? stages_[s + 1].ends[kTrackB][0] + c_ : 0);
  }

  /// Whether each stage runs one more forward before backward `i`.
  void choose_forwards(std::uint32_t i) {
    const std::uint32_t p = shape_.p;
    takes_forward_.assign(p, true);
    for (std::uint32_t s = p; s-- > 0;) {
      const Stage& stage = stages_[s];
      bool takes = stage.done[kTrackF] < shape_.m;
      if (takes && options_.prefers_backward && s + 1 < p &&
          stage.done[kTrackF] >= stages_[s + 1].done[kTrackF] + 2) {
        const double back =
            stages_[s + 1].clock + seconds(s + 1, kTrackF) + seconds(s + 1, kTrackB) + c_;
        const double forced = has_room(s) ? 0 : seconds(s, kTrackW);
        if (back <= stage.clock) {
          takes = false;
        } else if (stage.clock + seconds(s, kTrackF) + forced > back) {
          takes = back - stage.clock > worst() - stage.idle;
        }
      }
      if (s + 1 < p) takes = takes && takes_forward_[s + 1];
      // Its own backward needs the forward.
      takes_forward_[s] = takes || stage.done[kTrackF] <= i;
    }
  }

  /// Weight gradients before an operation that arrives then.
  void fill_until(std::uint32_t s, double arrival) {
    const Stage& stage = stages_[s];
    const double w = seconds(s, kTrackW);
    while (pending(s) > 0 && stage.clock < arrival && stage.clock + w <= arrival) add(s, kTrackW);
    if (pending(s) == 0 || stage.clock >= arrival) return;
    if (options_.fills_slack || arrival - stage.clock > worst() - stage.idle) add(s, kTrackW);
  }

  /// Nothing happens if its input is missing, or if neither weight gradients make room.
  void forward(std::uint32_t s) {
    if (s > 0 && stages_[s - 1].done[kTrackF] <= stages_[s].done[kTrackF]) return;
    while (!has_room(s)) {
      if (pending(s) == 0) return;
      add(s, kTrackW);
    }
    const double arrival = next_forward(s);
    fill_until(s, arrival);
    add(s, kTrackF, arrival);
  }

  void backward(std::uint32_t s, std::uint32_t i) {
    const double arrival = s + 1 < shape_.p ? stages_[s + 1].ends[kTrackB][i] + c_ : 0;
    fill_until(s, arrival);
    if (s == 0 && stages_[s].done[kTrackF] == shape_.m) {
      while (pending(s) > 0) add(s, kTrackW);
    }
    add(s, kTrackB, arrival);
  }

  const SearchProblem& problem_;
  const Shape& shape_;
  const Options options_;
  const double c_;
  std::vector<Stage> stages_;
  std::vector<bool> takes_forward_;
};

}  // namespace

void line_heuristic(const SearchProblem& problem, const Shape& shape, const TakeStart& take) {
  if (shape.family != Family::line || !problem.split()) return;
  for (unsigned bits = 0; bits < 8; ++bits) {
    const Options options{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
    if (!take(LineHeuristic(problem, shape, options).run())) return;
  }
}

}  // namespace piper::orders
