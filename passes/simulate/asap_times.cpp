#include "passes/simulate/asap_times.h"

#include <cstddef>
#include <span>

#include "passes/order/take_in_order.h"

namespace piper::passes {

namespace {

struct Timed {
  std::uint32_t missing = 0, cause = Times::kNone;
  double start = 0;

  double leave(const Network& network, std::uint32_t activity) const {
    return start + network.duration[activity];
  }
  void arrive(const Network& network, double end, std::uint32_t link) {
    const double at = end + network.links[link].latency;
    if (cause != Times::kNone && (at < start || (at == start && link > cause))) return;
    start = at;
    cause = link;
  }
};

/// The links that leave each activity.
class Leaving {
 public:
  explicit Leaving(const Network& network)
      : first_(network.duration.size() + 1, 0), links_(network.links.size()) {
    for (const Link& link : network.links) ++first_[link.from + 1];
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for (std::uint32_t i = 0; i < network.links.size(); ++i)
      links_[next[network.links[i].from]++] = i;
  }
  std::span<const std::uint32_t> of(std::uint32_t activity) const {
    return {links_.data() + first_[activity], first_[activity + 1] - first_[activity]};
  }

 private:
  std::vector<std::uint32_t> first_, links_;
};

}  // namespace

Times asap_times(const Network& network, const Context& context) {
  const std::size_t count = network.duration.size();
  std::vector<Timed> states(count);
  for (const Link& link : network.links) ++states[link.to].missing;
  const Leaving leaving(network);
  Times times;
  NodePolls polls(context.cancellation);
  times.order = take_in_order(network, states, [&](std::uint32_t activity, const auto& to) {
    polls.visit();
    for (const std::uint32_t link : leaving.of(activity)) to(network.links[link].to, link);
  });
  times.start.resize(count);
  times.finish.resize(count);
  times.cause.resize(count, Times::kNone);
  for (const std::uint32_t activity : times.order) {
    times.start[activity] = states[activity].start;
    times.finish[activity] = states[activity].start + network.duration[activity];
    times.cause[activity] = states[activity].cause;
  }
  return times;
}

}  // namespace piper::passes
