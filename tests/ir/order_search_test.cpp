// `search`: against all orders at small sizes, against published figures at larger ones.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "ir/orders/search/search.h"
#include "ir/orders/search/timing.h"

namespace piper::orders {
namespace {

enum class Placement { line, folded, loop, mirrored };

PlacedParts placed(Placement placement, std::uint32_t p, std::uint32_t m) {
  PlacedParts work;
  const bool two = placement == Placement::folded || placement == Placement::loop;
  work.part.extent = two ? 2 * p : p;
  work.dims.push_back({Symbol(), m});
  for (std::uint32_t r = 0; r < p; ++r) work.ranks.push_back(DeviceSetId(r));
  for (std::uint32_t i = 0; i < m; ++i) {
    for (std::uint32_t s = 0; s < work.part.extent; ++s) {
      std::uint32_t rank = s;
      if (placement == Placement::folded) rank = std::min(s, 2 * p - 1 - s);
      if (placement == Placement::loop) rank = s % p;
      if (placement == Placement::mirrored) rank = i < m / 2 ? s : p - 1 - s;
      work.rank_of.push_back(rank);
    }
  }
  return work;
}

SearchRule rule(const PlacedParts& work, double f, double bi, double bw, double comm,
                std::optional<double> cap) {
  SearchRule rule;
  rule.split_backward = true;
  rule.f = f;
  rule.bi = bi;
  rule.bw = bw;
  rule.comm = comm;
  rule.cap = cap;
  // A tenth of those of a program is enough here, and takes a tenth of the time.
  rule.tries = default_tries(work.rank_of.size() * 3) / 10;
  return rule;
}

/// All lists of one rank that it may run by itself, under the cap.
std::vector<std::vector<Code>> all_lists(const SearchProblem& problem, std::uint32_t rank) {
  std::vector<std::vector<Code>> lists;
  std::vector<std::uint32_t> done(problem.tracks().size() * kTrackPasses, 0);
  std::vector<Code> list;
  const std::uint32_t passes = problem.split() ? 3 : 2;
  std::size_t length = 0;
  for (const std::uint32_t track : problem.tracks_on(rank))
    length += std::size_t{problem.tracks()[track].count} * passes;
  std::uint32_t held = 0;
  const std::function<void()> extend = [&] {
    if (list.size() == length) lists.push_back(list);
    for (const std::uint32_t track : problem.tracks_on(rank)) {
      for (std::uint32_t pass = 0; pass < passes; ++pass) {
        const Code code = kTrackPasses * track + pass;
        const std::uint32_t bound =
            pass == kTrackF ? problem.tracks()[track].count : done[code - 1];
        if (done[code] == bound) continue;
        if (pass == kTrackF && held == problem.capacity()) continue;
        ++done[code];
        held += static_cast<std::uint32_t>(problem.change(pass));
        list.push_back(code);
        extend();
        list.pop_back();
        held -= static_cast<std::uint32_t>(problem.change(pass));
        --done[code];
      }
    }
  };
  extend();
  return lists;
}

/// The best value of all orders.
double brute_force(const SearchProblem& problem) {
  std::vector<std::vector<std::vector<Code>>> choices;
  for (std::uint32_t rank = 0; rank < problem.ranks(); ++rank)
    choices.push_back(all_lists(problem, rank));
  Timing timing(problem);
  double best = std::numeric_limits<double>::infinity();
  CodeLists lists(problem.ranks());
  const std::function<void(std::size_t)> choose = [&](std::size_t rank) {
    if (rank == choices.size()) {
      if (const auto score = timing.run(lists)) best = std::min(best, score->value);
      return;
    }
    for (const std::vector<Code>& list : choices[rank]) {
      lists[rank] = list;
      choose(rank + 1);
    }
  };
  choose(0);
  return best;
}

struct Small {
  Placement placement;
  std::uint32_t p, m;
  bool split;
};

TEST(OrderSearch, IsAsGoodAsAllOrders) {
  const Small sizes[] = {
      {Placement::line, 2, 3, true},     {Placement::line, 3, 2, true},
      {Placement::line, 4, 2, true},     {Placement::line, 2, 4, false},
      {Placement::line, 3, 4, false},    {Placement::line, 4, 3, false},
      {Placement::folded, 2, 2, false},  {Placement::loop, 2, 2, false},
      {Placement::mirrored, 2, 2, true}, {Placement::mirrored, 2, 4, false},
  };
  const double costs[][4] = {
      {1, 1, 1, 0}, {10, 11, 8, 0}, {2, 1, 3, 0}, {3, 5, 1, 1}, {0, 1, 1, 0}};
  for (const Small& size : sizes) {
    const PlacedParts work = placed(size.placement, size.p, size.m);
    for (const auto& [f, bi, bw, comm] : costs) {
      for (double cap = 1; cap <= size.m; ++cap) {
        for (const Objective objective : {Objective::span, Objective::makespan}) {
          SearchRule asked = rule(work, f, bi, bw, comm, cap);
          asked.split_backward = size.split;
          asked.minimize = objective;
          const SearchProblem problem(work, asked);
          SCOPED_TRACE(testing::Message()
                       << static_cast<int>(size.placement) << " p " << size.p << " m " << size.m
                       << " costs " << f << " " << bi << " " << bw << " " << comm << " cap " << cap
                       << " objective " << static_cast<int>(objective));
          const SearchedOrder order = search(work, asked);
          if (problem.largest_demand().first > problem.capacity()) {
            ASSERT_TRUE(order.min_cap);
            continue;
          }
          const double best = brute_force(problem);
          EXPECT_NEAR(order.value, best, 1e-9);
          EXPECT_LE(order.bound, best + 1e-9);
          EXPECT_TRUE(problem.keeps(problem.codes_of(work, order.lists)));
        }
      }
    }
  }
}

/// The bubble of ZB-1p and ZB-2p at equal times is that of ZB-H1 and ZB-H2 (arXiv 2401.10241), and a
/// straight line between; that of the V schedules has a formula, too (arXiv 2405.15362).
TEST(OrderSearch, IsNoWorseThanPublishedOrders) {
  const std::uint32_t p = 8, m = 24;
  const PlacedParts line = placed(Placement::line, p, m);
  for (std::uint32_t cap = p; cap <= 2 * p; ++cap) {
    const SearchedOrder order = search(line, rule(line, 1, 1, 1, 0, cap));
    EXPECT_NEAR(order.value - 3 * m, std::max(0, static_cast<int>(2 * p - 1 - cap)), 1e-9) << cap;
    EXPECT_NEAR(order.value, order.bound, 1e-9);
  }
  const PlacedParts folded = placed(Placement::folded, p, m);
  for (int chunks = 8; chunks <= 16; ++chunks) {
    const SearchedOrder order = search(folded, rule(folded, 1, 1, 1, 0, chunks / 2.0));
    const int published =
        static_cast<int>(3 * p) - 1 - 3 * chunks +
        std::max(static_cast<int>(3 * p), static_cast<int>(p) - 1 + 2 * (1 + (chunks + 1) / 2));
    // Half microbatches: within one time of a chunk.
    EXPECT_LE(order.value - 6 * m, published + chunks % 2 + 1e-9) << chunks;
    EXPECT_GE(order.value, order.bound - 1e-9);
  }
}

/// The setting of DualPipe with its profile (DeepSeek-V3): whole pairs leave it idle for 841.5.
TEST(OrderSearch, MirroredLines) {
  constexpr double kWithoutPairs = 420;
  for (const std::uint32_t m : {16u, 20u}) {
    const PlacedParts work = placed(Placement::mirrored, 8, m);
    const SearchedOrder order = search(work, rule(work, 98.7, 113, 29.9, 0, 9));
    EXPECT_LE(order.value - m * (98.7 + 113 + 29.9), kWithoutPairs) << m;
  }
}

TEST(OrderSearch, DependsOnTheSeedAlone) {
  const PlacedParts work = placed(Placement::folded, 4, 9);
  const SearchRule asked = rule(work, 5, 7, 3, 1, 2.5);
  const auto same = [](const OperationLists& a, const OperationLists& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
      return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                        [](const PlacedOperation& left, const PlacedOperation& right) {
                          return left.pass == right.pass && left.piece == right.piece;
                        });
    });
  };
  const SearchedOrder first = search(work, asked), second = search(work, asked);
  EXPECT_TRUE(same(first.lists, second.lists));
}

TEST(OrderSearch, SmallestCap) {
  const PlacedParts work = placed(Placement::folded, 3, 4);
  const SearchedOrder refused = search(work, rule(work, 1, 1, 1, 0, 0.5));
  ASSERT_TRUE(refused.min_cap);
  EXPECT_EQ(*refused.min_cap, 1);
  EXPECT_FALSE(search(work, rule(work, 1, 1, 1, 0, 1)).min_cap);
}

}  // namespace
}  // namespace piper::orders
