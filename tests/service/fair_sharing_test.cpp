// The fair-sharing clock: closed forms, and one written by definition: at every event all rates are
// computed again, by raising those of all transfers together until a link, or a transfer, has no
// more.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "passes/simulate/actions.h"
#include "passes/simulate/asap_times.h"
#include "passes/simulate/fair_sharing.h"
#include "tests/service/compiled.h"

namespace piper::service {
namespace {

using passes::Network;
using passes::Sharing;
using passes::Timeline;

constexpr double kExact = 1e-9;

struct Slow {
  const Network& network;
  const Sharing& sharing;
  std::vector<double> start, finish, seconds, bytes, rate;
  enum class State { waits, runs, over };
  std::vector<State> state;
  double now = 0;

  Slow(const Network& of, const Sharing& by)
      : network(of),
        sharing(by),
        start(of.duration.size(), -1),
        finish(of.duration.size(), -1),
        seconds(of.duration),
        bytes(of.duration.size(), 0),
        rate(of.duration.size(), 0),
        state(of.duration.size(), State::waits) {
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      if (moves(i)) seconds[i] = by.transfer[i].latency, bytes[i] = by.transfer[i].bytes;
    }
    while (begin_what_can() || advance()) {}
  }
  bool moves(std::size_t i) const { return sharing.transfer[i].most > 0; }
  bool begin_what_can() {
    bool any = false;
    for (std::size_t i = 0; i < state.size(); ++i) {
      const bool ready =
          std::none_of(network.links.begin(), network.links.end(), [&](const passes::Link& link) {
            return link.to == i && state[link.from] != State::over;
          });
      if (state[i] != State::waits || !ready) continue;
      state[i] = State::runs;
      start[i] = now;
      any = true;
    }
    return any;
  }
  void find_rates() {
    std::vector<std::size_t> open;
    std::vector<double> left = sharing.capacity;
    for (std::size_t i = 0; i < state.size(); ++i) {
      rate[i] = 1;
      if (state[i] != State::runs) continue;
      const std::uint32_t rank = sharing.ranks[i].front();
      const auto beside = [&](std::size_t k) {
        return state[k] == State::runs && moves(k) &&
               std::count(sharing.ranks[k].begin(), sharing.ranks[k].end(), rank) > 0;
      };
      if (!moves(i)) {
        for (std::size_t k = 0; k < state.size(); ++k) {
          if (beside(k)) rate[i] = 1 / sharing.overlap[rank];
        }
      } else if (seconds[i] <= 0) {
        rate[i] = 0;
        open.push_back(i);
      }
    }
    while (!open.empty()) {
      double more = std::numeric_limits<double>::infinity();
      std::vector<double> load(left.size(), 0);
      for (const std::size_t i : open) {
        more = std::min(more, sharing.transfer[i].most - rate[i]);
        for (const auto& [link, devices] : sharing.transfer[i].uses) load[link] += devices;
      }
      for (std::size_t l = 0; l < left.size(); ++l) {
        if (load[l] > 0) more = std::min(more, left[l] / load[l]);
      }
      for (const std::size_t i : open) rate[i] += more;
      for (std::size_t l = 0; l < left.size(); ++l) left[l] -= load[l] * more;
      std::erase_if(open, [&](std::size_t i) {
        const Sharing::Transfer& transfer = sharing.transfer[i];
        return rate[i] >= transfer.most * (1 - 1e-12) ||
               std::any_of(transfer.uses.begin(), transfer.uses.end(), [&](const auto& use) {
                 return left[use.first] <= 1e-12 * sharing.capacity[use.first];
               });
      });
    }
  }
  bool advance() {
    find_rates();
    double step = std::numeric_limits<double>::infinity();
    const auto left = [&](std::size_t i) {
      return seconds[i] > 0 ? seconds[i] / rate[i] : bytes[i] > 0 ? bytes[i] / rate[i] : 0;
    };
    for (std::size_t i = 0; i < state.size(); ++i) {
      if (state[i] == State::runs) step = std::min(step, left(i));
    }
    if (step == std::numeric_limits<double>::infinity()) return false;
    now += step;
    for (std::size_t i = 0; i < state.size(); ++i) {
      if (state[i] != State::runs) continue;
      const bool reached = left(i) <= step * (1 + 1e-12);
      double& what = seconds[i] > 0 ? seconds[i] : bytes[i];
      what = reached ? 0 : what - step * rate[i];
      if (seconds[i] > 0 || bytes[i] > 0) continue;
      state[i] = State::over;
      finish[i] = now;
    }
    return true;
  }
};

TEST(FairSharing, IsTheDefinition) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    const auto number = [&](std::uint32_t least, std::uint32_t most) {
      return least + static_cast<std::uint32_t>(random() % (most - least + 1));
    };
    // Small whole numbers, so that much ends at one time.
    Network network;
    Sharing sharing;
    const std::uint32_t ranks = number(1, 4), links = number(1, 3), activities = number(2, 24);
    for (std::uint32_t l = 0; l < links; ++l) sharing.capacity.push_back(number(1, 12));
    for (std::uint32_t r = 0; r < ranks; ++r) sharing.overlap.push_back(number(2, 5) / 2.0);
    for (std::uint32_t i = 0; i < activities; ++i) {
      const bool moves = number(0, 1) == 0;
      network.duration.push_back(moves ? 0 : number(0, 4));
      Sharing::Transfer transfer;
      std::vector<std::uint32_t> on = {number(0, ranks - 1)};
      if (moves) {
        transfer = {number(0, 2) / 2.0,
                    static_cast<double>(number(0, 12)),
                    static_cast<double>(number(1, 12)),
                    {}};
        for (std::uint32_t l = 0; l < links; ++l) {
          if (number(0, 1) == 0) transfer.uses.emplace_back(l, number(1, 2));
        }
        if (const std::uint32_t other = number(0, ranks - 1); other != on.front())
          on.push_back(other);
      }
      sharing.transfer.push_back(transfer);
      sharing.ranks.push_back(on);
      for (std::uint32_t from = 0; from < i; ++from) {
        if (number(0, 5) == 0) network.links.push_back({from, i, 0});
      }
    }
    const Context context;
    const passes::Times times = fair_sharing_times(network, sharing, context);
    const Slow slow(network, sharing);
    ASSERT_TRUE(times.complete()) << seed;
    for (std::uint32_t i = 0; i < activities; ++i) {
      ASSERT_NEAR(times.start[i], slow.start[i], 1e-9) << seed << ", " << i;
      ASSERT_NEAR(times.finish[i], slow.finish[i], 1e-9) << seed << ", " << i;
      if (times.cause[i] == passes::Times::kNone) continue;
      const passes::Link& cause = network.links[times.cause[i]];
      EXPECT_EQ(cause.to, i);
      EXPECT_NEAR(times.finish[cause.from], times.start[i], 1e-9) << seed << ", " << i;
    }
  }
}

TEST(FairSharing, PartsAreMaxMinFair) {
  // 0 and 1 share link 0 of 12; 1 has at most 2, so 0 has the rest. 2 is alone on link 1. 3 begins
  // after 1.
  const Context context;
  passes::Network network{{0, 0, 0, 5}, {{1, 3, 0}}};
  passes::Sharing sharing;
  sharing.capacity = {12, 3};
  sharing.transfer = {{0, 100, 100, {{0, 1}}}, {1, 4, 2, {{0, 1}}}, {0, 6, 10, {{1, 2}}}, {}};
  sharing.ranks = {{0}, {0}, {1}, {1}};
  sharing.overlap = {1, 2};
  const passes::Times times = fair_sharing_times(network, sharing, context);
  ASSERT_TRUE(times.complete());
  EXPECT_NEAR(times.finish[1], 3, kExact);  // latency 1, then 4 bytes at 2
  // 12 a second alone, 10 beside 1.
  EXPECT_NEAR(times.finish[0], 3 + (100 - 12 - 20) / 12.0, kExact);
  // Two devices of link 1 at once: 1.5 each.
  EXPECT_NEAR(times.finish[2], 4, kExact);
  EXPECT_NEAR(times.start[3], 3, kExact);
  EXPECT_NEAR(times.finish[3], 4 + 4.5, kExact);  // half speed while 2 runs on its rank
  EXPECT_EQ(times.cause[3], 0u);
}

/// The bandwidth that a transfer of several devices cannot use is left over once per device.
TEST(FairSharing, DevicesOfATransferCount) {
  const Context context;
  passes::Network network{{0, 0}, {}};
  passes::Sharing sharing;
  sharing.capacity = {12};
  sharing.transfer = {{0, 4, 2, {{0, 2}}}, {0, 80, 100, {{0, 1}}}};
  sharing.ranks = {{0}, {1}};
  sharing.overlap = {1, 1};
  const passes::Times times = fair_sharing_times(network, sharing, context);
  EXPECT_NEAR(times.finish[0], 2, kExact);
  // 8 a second beside the two that take 2 each.
  EXPECT_NEAR(times.finish[1], 2 + (80 - 2 * 8) / 12.0, kExact);
}

/// Work that is slower by less than can be seen takes the other clock.
TEST(FairSharing, AreAsapTimesWhereNothingIsShared) {
  for (const char* name : {"gpipe", "zbv", "dual_pipe"}) {
    const Planned planned(name, sizes(4, 8));
    passes::ActionCosts costs = planned.costs(1, 2);
    costs.machine = planned.machine();
    costs.machine->axes[0].link = MachineLink{.latency = 0.1, .bandwidth = 1e3};
    const Timeline plain = passes::simulate_actions(planned.dag(), costs);
    costs.machine->devices = {device_at(*costs.machine, 0, -1)};
    costs.machine->devices[0].overlap = 1 + 1e-15;
    const Timeline other = passes::simulate_actions(planned.dag(), costs);
    ASSERT_EQ(other.size(), plain.size());
    for (std::size_t entry = 0; entry < other.size(); ++entry) {
      ASSERT_NEAR(other.start[entry], plain.start[entry], kExact) << name;
      ASSERT_NEAR(other.finish[entry], plain.finish[entry], kExact) << name;
    }
  }
}

/// Work that ends at the same time as a transfer is not timed again, which would end it twice.
TEST(FairSharing, WorkEndsWithItsTransfer) {
  const Context context;
  // 0 sends 2 bytes from the rank of 1, which works 2 seconds at half speed; 2 follows both.
  passes::Network network{{0, 1, 4}, {{0, 2, 0}, {1, 2, 0}}};
  passes::Sharing sharing;
  sharing.capacity = {1};
  sharing.transfer = {{0, 2, 1, {{0, 1}}}, {}, {}};
  sharing.ranks = {{0}, {0}, {0}};
  sharing.overlap = {2};
  const passes::Times times = fair_sharing_times(network, sharing, context);
  EXPECT_NEAR(times.finish[0], 2, kExact);
  EXPECT_NEAR(times.finish[1], 2, kExact);
  EXPECT_NEAR(times.finish[2], 6, kExact);
  EXPECT_EQ(times.cause[2], 0u);
}

TEST(Clocks, AreCancelled) {
  Cancellation cancellation;
  cancellation.request();
  Context context;
  context.cancellation = &cancellation;
  passes::Network network{std::vector<double>(kNodesPerPoll, 1), {}};
  EXPECT_THROW(asap_times(network, context), Cancelled);
  passes::Sharing sharing;
  sharing.overlap = {1};
  sharing.transfer.resize(kNodesPerPoll);
  sharing.ranks.assign(kNodesPerPoll, {0});
  EXPECT_THROW(fair_sharing_times(network, sharing, context), Cancelled);
}

}  // namespace
}  // namespace piper::service
