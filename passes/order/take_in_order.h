#pragma once
// A topological traversal, for any graph and any value that goes along its links.
//
//   struct Counted { std::uint32_t missing = 0, depth = 0; ... };
//   take_in_order(graph, states, follow)      // each activity after all its predecessors

#include <cstdint>
#include <vector>

namespace piper::passes {

/// A topological traversal of activities with a state each: takes each activity once all its
/// predecessors are taken, first come first served. A State has `missing`, the number of links
/// into it that were not followed yet; `leave(graph, activity)` returns the value for its
/// successors, and `arrive(graph, left, link)` receives it. `follow(activity, to)` calls
/// `to(successor, link)` for each link. Returns the activities in this order.
template <typename Graph, typename State, typename Follow>
std::vector<std::uint32_t> take_in_order(const Graph& graph, std::vector<State>& states,
                                         const Follow& follow) {
  std::vector<std::uint32_t> order;
  order.reserve(states.size());
  for (std::uint32_t first = 0; first < states.size(); ++first) {
    if (states[first].missing == 0) order.push_back(first);
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
