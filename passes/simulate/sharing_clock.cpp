#include "passes/simulate/sharing_clock.h"

#include <algorithm>
#include <limits>

namespace piper::passes {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Clock {
 public:
  Clock(const Network& network, const Sharing& sharing)
      : network_(network), sharing_(sharing), missing_(network.duration.size(), 0), first_(network.duration.size() + 1, 0), leaving_(network.links.size()),
        transfers_(sharing.overlap.size(), 0), load_(sharing.capacity.size(), 0), left_(sharing.capacity.size(), 0) {
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
    for (std::uint32_t i = 0; i < network.links.size(); ++i) leaving_[next[network.links[i].from]++] = i;
  }

  Times run() {
    for (std::uint32_t each = 0; each < missing_.size(); ++each) {
      if (missing_[each] == 0) begin(each);
    }
    while (!running_.empty()) {
      find_rates();
      double step = kInfinity;
      for (const Running& each : running_) step = std::min(step, time_left(each));
      advance(step);
    }
    return std::move(times_);
  }

 private:
  /// What is left of an activity: seconds of latency or work, then bytes.
  struct Running {
    std::uint32_t activity = 0;
    double seconds = 0, bytes = 0, rate = 1;
    bool frozen = false;
  };

  bool is_transfer(std::uint32_t activity) const { return sharing_.transfer[activity].most > 0; }

  void begin(std::uint32_t activity) {
    times_.start[activity] = now_;
    times_.order.push_back(activity);
    const Sharing::Transfer& transfer = sharing_.transfer[activity];
    if (!is_transfer(activity)) {
      running_.push_back({activity, network_.duration[activity], 0});
      return;
    }
    for (const std::uint32_t rank : sharing_.ranks[activity]) ++transfers_[rank];
    running_.push_back({activity, transfer.latency, transfer.bytes});
  }

  void end(std::uint32_t activity) {
    times_.finish[activity] = now_;
    if (is_transfer(activity)) {
      for (const std::uint32_t rank : sharing_.ranks[activity]) --transfers_[rank];
    }
    for (std::uint32_t i = first_[activity]; i < first_[activity + 1]; ++i) {
      const std::uint32_t link = leaving_[i], to = network_.links[link].to;
      // Ends come in their order: the last is what the activity waited for, of equals the first of the links.
      std::uint32_t& cause = times_.cause[to];
      if (cause == Times::kNone || times_.finish[network_.links[cause].from] < now_ || link < cause) cause = link;
      if (--missing_[to] == 0) begin(to);
    }
  }

  double time_left(const Running& each) const {
    if (each.seconds > 0) return each.seconds / each.rate;
    return each.bytes > 0 ? each.bytes / each.rate : 0;
  }

  /// Work is slower beside transfers. Of transfers that move bytes the slowest links say first what their users have, and the others share what is left.
  void find_rates() {
    std::fill(load_.begin(), load_.end(), 0);
    left_ = sharing_.capacity;
    std::size_t open = 0;
    for (Running& each : running_) {
      each.frozen = true;
      each.rate = 1;
      if (!is_transfer(each.activity)) {
        const std::uint32_t rank = sharing_.ranks[each.activity].front();
        if (transfers_[rank] > 0) each.rate = 1 / sharing_.overlap[rank];
      } else if (each.seconds <= 0 && each.bytes > 0) {
        each.frozen = false;
        ++open;
        for (const auto& [link, devices] : sharing_.transfer[each.activity].uses) load_[link] += devices;
      }
    }
    while (open > 0) {
      double least = kInfinity;
      for (const Running& each : running_) {
        if (!each.frozen) least = std::min(least, part_of(each));
      }
      for (Running& each : running_) {
        if (each.frozen || part_of(each) > least) continue;
        each.rate = least;
        each.frozen = true;
        frozen_.push_back(each.activity);
        --open;
      }
      for (const std::uint32_t activity : frozen_) {
        for (const auto& [link, devices] : sharing_.transfer[activity].uses) {
          load_[link] -= devices;
          left_[link] = std::max(0.0, left_[link] - devices * least);
        }
      }
      frozen_.clear();
    }
  }

  double part_of(const Running& each) const {
    const Sharing::Transfer& transfer = sharing_.transfer[each.activity];
    double part = transfer.most;
    for (const auto& [link, devices] : transfer.uses) part = std::min(part, left_[link] / load_[link]);
    return part;
  }

  void advance(double step) {
    now_ += step;
    std::vector<Running> over;
    std::erase_if(running_, [&](Running& each) {
      const bool reached = time_left(each) <= step;
      if (each.seconds > 0) {
        each.seconds = reached ? 0 : each.seconds - step * each.rate;
      } else {
        each.bytes = reached ? 0 : each.bytes - step * each.rate;
      }
      const bool ends = each.seconds <= 0 && each.bytes <= 0;
      if (ends) over.push_back(each);
      return ends;
    });
    std::sort(over.begin(), over.end(), [](const Running& a, const Running& b) { return a.activity < b.activity; });
    for (const Running& each : over) end(each.activity);
  }

  const Network& network_;
  const Sharing& sharing_;
  std::vector<std::uint32_t> missing_, first_, leaving_;
  std::vector<std::uint32_t> transfers_;  // that run on a rank
  std::vector<double> load_, left_;       // per link: devices of open transfers, and what is not given to others
  std::vector<std::uint32_t> frozen_;
  std::vector<Running> running_;
  Times times_;
  double now_ = 0;
};

}  // namespace

Times run_sharing_clock(const Network& network, const Sharing& sharing) { return Clock(network, sharing).run(); }

}  // namespace piper::passes
