#include "ir/orders/greedy.h"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

#include "ir/orders/activations.h"

namespace piper::orders {

namespace {

/// The passes of an instance and part, as positions in tables.
enum Work : std::uint32_t { kForward, kBackward, kWeights, kKinds };

Work work_of(Pass pass) {
  return pass == Pass::F ? kForward : pass == Pass::BW ? kWeights : kBackward;
}

class ListSchedule {
 public:
  ListSchedule(const PlacedParts& work, const GreedyRule& rule)
      : work_(work),
        rule_(rule),
        parts_(work.part.extent),
        share_(work.share()),
        ranks_(work.ranks.size()) {
    for (const Pass pass : rule.preference) preference_.push_back(work_of(pass));
    seconds_[kForward] = rule.f;
    seconds_[kBackward] = rule.split_backward ? rule.bi : rule.bi + rule.bw;
    seconds_[kWeights] = rule.bw;
    missing_.assign(pieces(), 2);
    for (std::uint32_t piece = 0; piece < pieces(); piece += parts_) arrive(0, kForward, piece);
    if (rule.cap) note_demands();
  }

  /// The largest activations that one instance needs on a rank, and the rank.
  std::pair<double, std::uint32_t> largest_demand() const {
    std::pair<double, std::uint32_t> largest{0, 0};
    for (const auto& [places, demands] : demands_) {
      for (const auto& [rank, demand] : demands) {
        if (demand > largest.first + kSameAmount ||
            (demand > largest.first - kSameAmount && rank < largest.second))
          largest = {demand, rank};
      }
    }
    return largest;
  }

  void run() {
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) admit(rank);
    while (!events_.empty()) {
      const double now = events_.top().time;
      while (!events_.empty() && events_.top().time <= now) {
        const Event event = events_.top();
        events_.pop();
        handle(event);
      }
      for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
        if (std::exchange(ranks_[rank].changed, false)) start(rank, now);
      }
    }
  }

  OperationLists lists() const {
    OperationLists lists;
    for (const Rank& rank : ranks_) {
      auto& list = lists.emplace_back();
      for (const auto& [work, piece] : rank.order) list.push_back({pass_of(work), piece});
    }
    return lists;
  }

 private:
  struct Event {
    double time = 0;
    bool ends = false;  // else the operation becomes ready
    Work work{};
    std::uint32_t piece = 0;
    friend bool operator<(const Event& a, const Event& b) {  // the earliest is the largest
      return std::tuple(a.time, a.work, a.piece, a.ends) >
             std::tuple(b.time, b.work, b.piece, b.ends);
    }
  };
  /// Instance, then depth: the smallest first.
  using Ready = std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>>;
  struct Rank {
    Ready ready[kKinds];
    bool busy = false, changed = false;
    std::uint32_t admitted = 0;  // instances
    double reserved = 0;
    std::vector<std::pair<Work, std::uint32_t>> order;
  };

  std::uint32_t pieces() const { return static_cast<std::uint32_t>(work_.rank_of.size()); }
  std::uint32_t rank_of(std::uint32_t piece) const { return work_.rank_of[piece]; }
  bool is_first(std::uint32_t piece) const { return piece % parts_ == 0; }
  bool is_last(std::uint32_t piece) const { return piece % parts_ == parts_ - 1; }

  /// Notes the activations of each instance on the ranks of its parts.
  void note_demands() {
    for (std::uint32_t instance = 0; instance < work_.instances(); ++instance) {
      const auto begin = work_.rank_of.begin() + std::int64_t{instance} * parts_;
      std::vector<std::uint32_t> places(begin, begin + parts_);
      const auto [found, fresh] = demands_.try_emplace(std::move(places));
      if (fresh) {
        for (const std::uint32_t rank : found->first) found->second[rank] += share_;
      }
      demand_of_.push_back(&found->second);
    }
  }
  double demand(std::uint32_t instance, std::uint32_t rank) const {
    const auto found = demand_of_[instance]->find(rank);
    return found == demand_of_[instance]->end() ? 0 : found->second;
  }

  void admit(std::uint32_t rank) {
    Rank& at = ranks_[rank];
    while (at.admitted < work_.instances()) {
      const double more = rule_.cap ? demand(at.admitted, rank) : 0;
      if (rule_.cap && at.reserved + more > *rule_.cap + kSameAmount) return;
      at.reserved += more;
      ++at.admitted;
      at.changed = true;
    }
  }

  void arrive(double time, Work work, std::uint32_t piece) {
    events_.push({time, false, work, piece});
  }
  double sent(double time, std::uint32_t from, std::uint32_t to) const {
    return rank_of(from) == rank_of(to) ? time : time + rule_.comm;
  }
  /// A backward waits for its own forward and for its successor.
  void release_backward(double time, std::uint32_t piece) {
    if (--missing_[piece] == 0) arrive(time, kBackward, piece);
  }

  void handle(const Event& event) {
    Rank& rank = ranks_[rank_of(event.piece)];
    rank.changed = true;
    if (!event.ends) {
      const std::uint32_t part = event.piece % parts_;
      rank.ready[event.work].push(std::uint64_t{event.piece / parts_} << 32 | (parts_ - 1 - part));
      return;
    }
    rank.busy = false;
    switch (event.work) {
      case kForward:
        release_backward(event.time, event.piece);
        if (is_last(event.piece)) {
          release_backward(event.time, event.piece);
        } else {
          arrive(sent(event.time, event.piece, event.piece + 1), kForward, event.piece + 1);
        }
        break;
      case kBackward:
        if (!is_first(event.piece))
          release_backward(sent(event.time, event.piece, event.piece - 1), event.piece - 1);
        if (rule_.split_backward) {
          arrive(event.time, kWeights, event.piece);
        } else {
          give_back(event.piece);
        }
        break;
      case kWeights: give_back(event.piece); break;
      case kKinds: break;
    }
  }

  void give_back(std::uint32_t piece) {
    if (!rule_.cap) return;
    ranks_[rank_of(piece)].reserved -= share_;
    admit(rank_of(piece));
  }

  void start(std::uint32_t rank, double now) {
    Rank& at = ranks_[rank];
    if (at.busy) return;
    for (const Work work : preference_) {
      Ready& ready = at.ready[work];
      if (ready.empty()) continue;
      const auto instance = static_cast<std::uint32_t>(ready.top() >> 32);
      if (work == kForward && instance >= at.admitted) continue;
      const std::uint32_t part = parts_ - 1 - static_cast<std::uint32_t>(ready.top());
      const std::uint32_t piece = instance * parts_ + part;
      ready.pop();
      at.order.emplace_back(work, piece);
      at.busy = true;
      events_.push({now + seconds_[work], true, work, piece});
      return;
    }
  }

  Pass pass_of(Work work) const {
    return work == kForward       ? Pass::F
           : work == kWeights     ? Pass::BW
           : rule_.split_backward ? Pass::BI
                                  : Pass::B;
  }

  const PlacedParts& work_;
  const GreedyRule& rule_;
  const std::uint32_t parts_;
  const double share_;  // activations of one part
  std::vector<Work> preference_;
  double seconds_[kKinds] = {};
  std::vector<Rank> ranks_;
  using Demands = std::map<std::uint32_t, double>;         // by rank
  std::map<std::vector<std::uint32_t>, Demands> demands_;  // by the ranks of all parts
  std::vector<const Demands*> demand_of_;                  // by instance
  std::vector<std::uint8_t> missing_;                      // by piece: what its backward waits for
  std::priority_queue<Event> events_;
};

}  // namespace

GreedyOrder greedy(const PlacedParts& work, const GreedyRule& rule) {
  GreedyOrder result;
  ListSchedule schedule(work, rule);
  if (const auto [demand, rank] = schedule.largest_demand();
      rule.cap && demand > *rule.cap + kSameAmount) {
    result.min_cap = demand;
    result.largest = work.ranks[rank];
    return result;
  }
  schedule.run();
  result.lists = schedule.lists();
  return result;
}

}  // namespace piper::orders
