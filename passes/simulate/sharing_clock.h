#pragma once
// The clock where activities slow each other down: transfers that share a link have equal parts of it, and work takes longer while its rank communicates.
//
//   Sharing sharing;
//   sharing.capacity = {12e9};                                             // of one link, in bytes per second
//   sharing.transfer = {{.latency = 5e-6, .bytes = 1e6, .most = 12e9, .uses = {{0, 2}}}, ...};  // two devices at once: half of it each
//   run_sharing_clock(network, sharing, context)
//
// The parts are max-min fair: a transfer that cannot use its part, because another link holds it up, leaves the rest to the others. Events are handled one after the
// other: an end of work or of a latency in time logarithmic in what runs,
// a change of the transfers that move bytes in time linear in these, for each part that differs.

#include <utility>
#include <vector>

#include "passes/simulate/clock.h"

namespace piper::passes {

struct Sharing {
  /// An activity: of a transfer the bytes move once its latency has passed; work has none.
  struct Transfer {
    double latency = 0, bytes = 0;
    double most = 0;                                       // bytes per second, where nobody else is
    std::vector<std::pair<std::uint32_t, double>> uses;    // links, and how many devices of the link move these bytes at once
  };
  std::vector<double> capacity;                            // per link
  std::vector<Transfer> transfer;                          // per activity; `most` 0: it is work, and takes its duration
  std::vector<std::vector<std::uint32_t>> ranks;           // per activity: on which ranks it runs
  std::vector<double> overlap;                             // per rank: how much longer work takes while a transfer runs on it
};

/// `network.duration` is that of work; its links have no latency.
Times run_sharing_clock(const Network& network, const Sharing& sharing, const Context& context);

}  // namespace piper::passes
