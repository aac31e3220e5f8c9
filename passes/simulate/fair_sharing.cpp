#include "passes/simulate/fair_sharing.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

namespace piper::passes {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Ends with a smaller relative difference are one event: they differ by rounding.
constexpr double kSameTime = 1e-14;

class FairSharing {
 public:
  FairSharing(const Network& network, const Sharing& sharing)
      : network_(network),
        sharing_(sharing),
        missing_(network.duration.size(), 0),
        first_(network.duration.size() + 1, 0),
        leaving_(network.links.size()),
        running_(network.duration.size()),
        working_(sharing.overlap.size()),
        transfers_(sharing.overlap.size(), 0),
        load_(sharing.capacity.size(), 0),
        left_(sharing.capacity.size(), 0) {
    const std::size_t count = network.duration.size();
    times_.start.resize(count, 0);
    times_.finish.resize(count, 0);
    times_.cause.resize(count, Times::kNone);
    for (const Link& link : network.links) {
      ++missing_[link.to];
      ++first_[link.from + 1];
    }
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for (std::uint32_t i = 0; i < network.links.size(); ++i)
      leaving_[next[network.links[i].from]++] = i;
  }

  Times run(const Context& context) {
    for (std::uint32_t each = 0; each < missing_.size(); ++each) {
      if (missing_[each] == 0) begin(each);
    }
    while (find_next()) {
      context.poll();
      take_ends();
      if (std::exchange(moving_changed_, false)) find_rates();
    }
    return std::move(times_);
  }

 private:
  /// The remaining seconds of latency or work of an activity, then bytes, since a time.
  struct Running {
    double left = 0, since = 0, rate = 0;
    std::uint32_t version = 0;
    bool moves = false;  // bytes
  };
  /// The end of an activity; stale if its rate changed since, which increments its version.
  struct End {
    double time;
    std::uint32_t activity, version;
    bool operator<(const End& other) const { return time > other.time; }
  };
  /// A transfer that moves bytes, during the computation of rates.
  struct Moving {
    std::uint32_t activity = 0;
    double rate = 0;
    bool frozen = false;
  };

  bool is_transfer(std::uint32_t activity) const { return sharing_.transfer[activity].most > 0; }

  void run_for(std::uint32_t activity, double left, double rate) {
    Running& running = running_[activity];
    running = {left, now_, rate, running.version + 1, running.moves};
    ends_.push({left > 0 ? now_ + left / rate : now_, activity, running.version});
  }

  void run_at(std::uint32_t activity, double rate) {
    const Running& running = running_[activity];
    if (rate != running.rate)
      run_for(activity, std::max(0.0, running.left - (now_ - running.since) * running.rate), rate);
  }

  /// Work is slower beside transfers.
  double work_rate(std::uint32_t rank) const {
    return transfers_[rank] > 0 ? 1 / sharing_.overlap[rank] : 1;
  }

  void begin(std::uint32_t activity) {
    times_.start[activity] = now_;
    times_.order.push_back(activity);
    if (is_transfer(activity)) {
      for (const std::uint32_t rank : sharing_.ranks[activity]) {
        ++transfers_[rank];
        for (const std::uint32_t work : working_[rank]) run_at(work, work_rate(rank));
      }
      run_for(activity, sharing_.transfer[activity].latency, 1);
      return;
    }
    const std::uint32_t rank = sharing_.ranks[activity].front();
    working_[rank].push_back(activity);
    run_for(activity, network_.duration[activity], work_rate(rank));
  }

  void end(std::uint32_t activity) {
    times_.finish[activity] = now_;
    if (is_transfer(activity)) {
      for (const std::uint32_t rank : sharing_.ranks[activity]) {
        --transfers_[rank];
        for (const std::uint32_t work : working_[rank]) run_at(work, work_rate(rank));
      }
    }
    for (std::uint32_t i = first_[activity]; i < first_[activity + 1]; ++i) {
      const std::uint32_t link = leaving_[i], to = network_.links[link].to;
      // Ends arrive in order, so the last one is the cause; of equal ones the first link.
      std::uint32_t& cause = times_.cause[to];
      if (cause == Times::kNone || times_.finish[network_.links[cause].from] < now_ || link < cause)
        cause = link;
      if (--missing_[to] == 0) begin(to);
    }
  }

  /// Advances to the next end. False: no activity is running.
  bool find_next() {
    while (!ends_.empty() && !is_current(ends_.top())) ends_.pop();
    if (ends_.empty()) return false;
    now_ = ends_.top().time;
    return true;
  }
  bool is_current(const End& end) const { return end.version == running_[end.activity].version; }

  /// Handles all ends at this time; a transfer whose latency is over begins to move bytes.
  void take_ends() {
    over_.clear();
    for (; !ends_.empty() && ends_.top().time <= now_ * (1 + kSameTime); ends_.pop()) {
      if (!is_current(ends_.top())) continue;
      const std::uint32_t activity = ends_.top().activity;
      Running& running = running_[activity];
      const double bytes = sharing_.transfer[activity].bytes;
      if (is_transfer(activity) && !running.moves && bytes > 0) {
        running = {bytes, now_, 0, running.version + 1, true};
        moving_.push_back({activity});
        moving_changed_ = true;
        continue;
      }
      // An activity that has ended gets no new rate from another end at the same time.
      if (running.moves) {
        std::erase_if(moving_, [&](const Moving& each) { return each.activity == activity; });
        moving_changed_ = true;
      } else if (!is_transfer(activity)) {
        std::erase(working_[sharing_.ranks[activity].front()], activity);
      }
      over_.push_back(activity);
    }
    std::sort(over_.begin(), over_.end());
    for (const std::uint32_t activity : over_) end(activity);
  }

  /// Computes rates (max-min fair): the slowest links determine the rates of their users first, the
  /// others share the remaining bandwidth.
  void find_rates() {
    std::fill(load_.begin(), load_.end(), 0);
    left_ = sharing_.capacity;
    for (Moving& each : moving_) {
      each.frozen = false;
      for (const auto& [link, devices] : sharing_.transfer[each.activity].uses)
        load_[link] += devices;
    }
    for (std::size_t open = moving_.size(); open > 0;) {
      double least = kInfinity;
      for (const Moving& each : moving_) {
        if (!each.frozen) least = std::min(least, part_of(each));
      }
      fixed_.clear();
      for (Moving& each : moving_) {
        if (each.frozen || part_of(each) > least) continue;
        each.rate = least;
        each.frozen = true;
        fixed_.push_back(each.activity);
      }
      open -= fixed_.size();
      for (const std::uint32_t activity : fixed_) {
        for (const auto& [link, devices] : sharing_.transfer[activity].uses) {
          load_[link] -= devices;
          left_[link] = std::max(0.0, left_[link] - devices * least);
        }
      }
    }
    for (const Moving& each : moving_) run_at(each.activity, each.rate);
  }

  double part_of(const Moving& each) const {
    const Sharing::Transfer& transfer = sharing_.transfer[each.activity];
    double part = transfer.most;
    for (const auto& [link, devices] : transfer.uses)
      part = std::min(part, left_[link] / load_[link]);
    return part;
  }

  const Network& network_;
  const Sharing& sharing_;
  std::vector<std::uint32_t> missing_, first_, leaving_;
  std::vector<Running> running_;  // per activity
  std::priority_queue<End> ends_;
  std::vector<std::vector<std::uint32_t>> working_;  // per rank: the running work
  std::vector<std::uint32_t> transfers_;             // per rank: the number of running transfers
  std::vector<Moving> moving_;
  bool moving_changed_ = false;
  // Per link: devices of transfers without a rate, and the unassigned bandwidth.
  std::vector<double> load_, left_;
  std::vector<std::uint32_t> over_, fixed_;
  Times times_;
  double now_ = 0;
};

}  // namespace

Times fair_sharing_times(const Network& network, const Sharing& sharing, const Context& context) {
  return FairSharing(network, sharing).run(context);
}

}  // namespace piper::passes
