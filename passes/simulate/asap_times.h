#pragma once
// ASAP times: every activity starts as soon as all its predecessors have ended.
//
// Grids, the measured `bubble`, the times of orders and the simulator read times from here. An
// activity is anything that takes time: a chunk, a message, an action of a plan. The sequence of
// one device is given as links from one activity to the next, so there are no devices here.
//
//   Network network;                       // 0 takes 1, 1 takes 2 and starts 0.5 after the end of 0
//   network.duration = {1, 2};
//   network.links = {{0, 1, 0.5}};
//   asap_times(network, context).start[1] == 1.5

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
  std::vector<double> start, finish;  // per activity; 0 for one that never starts
  // Per activity: the last link to allow its start, the first of equals; kNone: no link.
  std::vector<std::uint32_t> cause;
  // A topological order of the activities; incomplete if there is a cycle.
  std::vector<std::uint32_t> order;

  bool complete() const { return order.size() == start.size(); }
};

/// Polls the context, as all clocks do.
Times asap_times(const Network& network, const Context& context);

}  // namespace piper::passes
