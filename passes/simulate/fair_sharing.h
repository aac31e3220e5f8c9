#pragma once
// ASAP times of activities that slow each other down: transfers share links fairly, and work takes
// longer while its rank communicates.
//
//   Sharing sharing;
//   sharing.capacity = {12e9};                                             // of one link, in bytes per second
//   sharing.transfer = {{.latency = 5e-6, .bytes = 1e6, .most = 12e9, .uses = {{0, 2}}}, ...};  // two devices at once: half of it each
//   fair_sharing_times(network, sharing, context)
//
// Sharing is max-min fair: a transfer that another link limits leaves the rest of its share to the
// others. Events are handled one after the other: an end of work or of a latency in time
// logarithmic in the running activities, a change of the transfers that move bytes in time linear
// in these, for each distinct rate.

#include <utility>
#include <vector>

#include "passes/simulate/asap_times.h"

namespace piper::passes {

struct Sharing {
  /// A transfer; its bytes move once its latency has passed.
  struct Transfer {
    double latency = 0, bytes = 0;
    // Bytes per second without other transfers.
    double most = 0;
    // Links, and the number of devices of the link that move these bytes at once.
    std::vector<std::pair<std::uint32_t, double>> uses;
  };
  std::vector<double> capacity;  // per link
  // Per activity; `most` 0: it is work, and takes its duration.
  std::vector<Transfer> transfer;
  std::vector<std::vector<std::uint32_t>> ranks;  // per activity: its ranks
  // Per rank: factor on the time of work while a transfer runs on it.
  std::vector<double> overlap;
};

/// `network.duration` is for work; the links of `network` have no latency.
Times fair_sharing_times(const Network& network, const Sharing& sharing, const Context& context);

}  // namespace piper::passes
