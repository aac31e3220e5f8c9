#pragma once
// The clock: what starts when, where everything starts as soon as all that it follows has ended.
//
// Grids, the measured `bubble`, the times of orders and the simulator read times from here. An activity is anything that takes time: a chunk, a message, an
// action of a plan. What one device runs one after the other is links from one to the next, so devices are not known here.
//
//   Network network;                       // 0 takes 1, 1 takes 2 and starts 0.5 after the end of 0
//   network.duration = {1, 2};
//   network.links = {{0, 1, 0.5}};
//   run_clock(network, context).start[1] == 1.5

#include <cstdint>
#include <vector>

#include "ir/context.h"

namespace piper::passes {

/// `to` starts no earlier than `latency` after the end of `from`.
struct Link {
  std::uint32_t from = 0, to = 0;
  double latency = 0;
};

struct Network {
  std::vector<double> duration;  // per activity
  std::vector<Link> links;
};

struct Times {
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  std::vector<double> start, finish;   // per activity; 0 for one that never starts
  std::vector<std::uint32_t> cause;    // per activity: the position among the links of that by which it could start last, the first of equals; kNone: of none
  std::vector<std::uint32_t> order;    // activities in an order in which they can start; shorter than all where some wait for each other in a circle

  bool complete() const { return order.size() == start.size(); }
};

/// Polls the context, as all clocks do.
Times run_clock(const Network& network, const Context& context);

/// The loop of the clock, for graphs of other shapes and other kinds of time: takes each activity when all before it have been taken, first come first served.
/// A State has `missing`, the links into it that were not followed yet; `leave(graph, activity)` says what its successors see, and `arrive(graph, left, link)`
/// how it takes that. `follow(activity, to)` calls `to(successor, link)` for each link. Gives the activities in the order in which they were taken.
template <typename Graph, typename State, typename Follow>
std::vector<std::uint32_t> take_in_order(const Graph& graph, std::vector<State>& states, const Follow& follow) {
  std::vector<std::uint32_t> order;
  order.reserve(states.size());
  for (std::uint32_t each = 0; each < states.size(); ++each) {
    if (states[each].missing == 0) order.push_back(each);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::uint32_t activity = order[i];
    const auto left = states[activity].leave(graph, activity);
    follow(activity, [&](std::uint32_t to, std::uint32_t link) {
      State& state = states[to];
      state.arrive(graph, left, link);
      if (--state.missing == 0) order.push_back(to);
    });
  }
  return order;
}

}  // namespace piper::passes
