// The formulas of the schedules of the library (stdlib/README.md) against the simulator, over ranges
// of sizes. simulate_test.cpp has those of the schedules that it also uses for other tests.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "passes/simulate/operations.h"
#include "tests/service/compiled.h"

namespace piper::service {
namespace {

using passes::OperationCosts;
using passes::Timeline;

constexpr double kExact = 1e-9;

/// Equal times, unequal times with a short and a long BW.
constexpr OperationCosts kCosts[] = {{}, {.f = 10, .bi = 11, .bw = 8}, {.f = 4, .bi = 6, .bw = 5}};

double most_work(const Timeline& timeline) {
  double largest = 0;
  for (const Timeline::Rank& rank : timeline.ranks) largest = std::max(largest, rank.work);
  return largest;
}

std::vector<lower::Override> with(int p, int m, std::vector<std::pair<std::string, int>> more) {
  std::vector<lower::Override> given = sizes(p, m);
  for (const auto& [name, value] : more) given.push_back({name, std::to_string(value)});
  return given;
}

Timeline timeline_of(const char* name, std::vector<lower::Override> given,
                     const OperationCosts& costs = {}) {
  Compiled compiled(name, "", std::move(given));
  const auto timeline = compiled.simulate(costs);
  EXPECT_TRUE(timeline) << name << compiled.reports();
  return timeline.value_or(Timeline{});
}

/// `peak` gives the microbatches of a device share of each rank.
void expect_peaks(const Timeline& timeline, const std::function<double(int)>& peak) {
  for (std::size_t r = 0; r < timeline.ranks.size(); ++r)
    EXPECT_NEAR(timeline.ranks[r].peak, peak(static_cast<int>(r)), kExact) << "rank " << r;
}

TEST(LibraryFormulas, LoopedBreadthFirst) {
  for (int p = 2; p <= 6; ++p) {
    for (int v = 1; v <= 3; ++v) {
      for (const int m : {p, p + 1, 2 * p, 3 * p + 1}) {
        SCOPED_TRACE(testing::Message() << p << " " << m << " " << v);
        for (const OperationCosts& costs : kCosts) {
          const Timeline timeline = timeline_of("looped_bfs", with(p, m, {{"v", v}}), costs);
          EXPECT_NEAR(timeline.makespan - most_work(timeline),
                      (p - 1) * (costs.f + costs.bi + costs.bw) / v, kExact);
          expect_peaks(timeline, [&](int) { return m; });
        }
      }
    }
  }
}

TEST(LibraryFormulas, GroupInterleaved) {
  for (int p = 2; p <= 6; ++p) {
    for (int v = 2; v <= 3; ++v) {
      for (int group = (p + 1) / 2; group <= p; ++group) {
        SCOPED_TRACE(testing::Message() << p << " " << v << " " << group);
        const Timeline timeline =
            timeline_of("group_interleaved", with(p, 2 * p + group, {{"v", v}, {"group", group}}));
        expect_peaks(timeline, [&](int r) { return ((v - 1.0) * group + p - r) / v; });
      }
      for (const int m : {p, 2 * p, 3 * p}) {
        for (const OperationCosts& costs : kCosts) {
          const Timeline timeline =
              timeline_of("group_interleaved", with(p, m, {{"v", v}, {"group", p}}), costs);
          EXPECT_NEAR(timeline.makespan - most_work(timeline),
                      (p - 1) * (costs.f + costs.bi + costs.bw) / v, kExact)
              << p << " " << m << " " << v;
        }
      }
    }
  }
}

TEST(LibraryFormulas, InterleavedZeroBubble) {
  for (int p = 2; p <= 6; ++p) {
    for (int v = 2; v <= 3; ++v) {
      for (const int m : {2 * p, 3 * p}) {
        SCOPED_TRACE(testing::Message() << p << " " << m << " " << v);
        for (const OperationCosts& costs : kCosts) {
          const Timeline timeline = timeline_of("interleaved_zb", with(p, m, {{"v", v}}), costs);
          const double idle = costs.bw <= costs.f ? costs.f + costs.bi - costs.bw : costs.bi;
          EXPECT_NEAR(timeline.span - most_work(timeline), (p - 1) * idle / v, kExact);
          expect_peaks(timeline, [&](int) { return p; });
        }
      }
    }
  }
}

TEST(LibraryFormulas, ZeroBubbleH2) {
  for (int p = 2; p <= 8; ++p) {
    for (int m = 2 * p; m <= 4 * p; m += 3) {
      SCOPED_TRACE(testing::Message() << p << " " << m);
      for (const OperationCosts& costs :
           {OperationCosts{}, OperationCosts{.f = 10, .bi = 11, .bw = 8},
            OperationCosts{.f = 4, .bi = 6, .bw = 2}}) {
        const Timeline timeline = timeline_of("zb_h2", sizes(p, m), costs);
        EXPECT_NEAR(timeline.span - most_work(timeline),
                    (p - 1) * (costs.f + costs.bi - 2 * costs.bw), kExact);
        expect_peaks(timeline, [&](int) { return 2 * p - 1; });
      }
      EXPECT_NEAR(timeline_of("zb_h2", sizes(p, m)).makespan,
                  timeline_of("zb_h1", sizes(p, m)).makespan, kExact);
    }
  }
}

TEST(LibraryFormulas, Chimera) {
  for (int p = 2; p <= 8; p += 2) {
    for (int m = p; m <= 4 * p; m += p) {
      SCOPED_TRACE(testing::Message() << p << " " << m);
      const double equal = timeline_of("chimera", sizes(p, m), {.f = 1, .b = 1}).makespan;
      EXPECT_NEAR(1 - 2.0 * m / equal, (p - 2.0) / (2 * m + p - 2), kExact);
      const Timeline timeline = timeline_of("chimera", sizes(p, m), {.f = 1, .b = 2});
      EXPECT_NEAR(timeline.makespan, 3 * m + (p - 2) * (m / p + 1), kExact);
      expect_peaks(timeline, [&](int r) { return p / 2 + 1 + std::min(r, p - 1 - r); });
    }
  }
}

TEST(LibraryFormulas, BitPipe) {
  for (int p = 2; p <= 8; p += 2) {
    for (int m = p; m <= 4 * p; m += p) {
      SCOPED_TRACE(testing::Message() << p << " " << m);
      const Timeline timeline = timeline_of("bit_pipe", sizes(p, m), {.f = 1, .b = 2});
      EXPECT_NEAR(timeline.makespan, 3 * m + (p - 2) * (m / p + 1) / 2.0, kExact);
      if (m == p) {
        EXPECT_NEAR(timeline.bubble_makespan, (p - 2.0) / (3 * m + p - 2), kExact);
      }
      expect_peaks(timeline,
                   [&](int r) { return (3 * p + 2) / 4.0 + std::min(r, p - 1 - r) / 2.0; });
    }
  }
}

TEST(LibraryFormulas, Gems) {
  for (int p = 1; p <= 7; ++p) {
    for (int m = 2; m <= 12; m += 2) {
      SCOPED_TRACE(testing::Message() << p << " " << m);
      for (const OperationCosts& costs :
           {OperationCosts{.f = 1, .b = 1}, OperationCosts{.f = 1, .b = 2},
            OperationCosts{.f = 3, .b = 5}}) {
        const Timeline timeline = timeline_of("gems", sizes(p, m), costs);
        EXPECT_NEAR(timeline.makespan, (m + p - 1) * costs.f + m * p * *costs.b, kExact);
        expect_peaks(timeline, [](int) { return 1; });
      }
    }
  }
}

/// The paper's formula is an approximation.
TEST(LibraryFormulas, HanayoIsNearItsFormula) {
  for (int p = 2; p <= 6; ++p) {
    for (int waves = 1; waves <= 4; ++waves) {
      const Timeline timeline =
          timeline_of("hanayo", with(p, p, {{"waves", waves}}), {.f = 1, .b = 2});
      const double published = (2.0 * p - 2) / (3 * p * waves + p - 1);
      EXPECT_LE(timeline.bubble_makespan, 1.02 * published) << p << " " << waves;
      EXPECT_GE(timeline.bubble_makespan, 0.8 * published) << p << " " << waves;
      for (const Timeline::Rank& rank : timeline.ranks)
        EXPECT_LE(rank.peak, p + kExact) << p << " " << waves;
    }
  }
}

double largest_peak(const Timeline& timeline) {
  double largest = 0;
  for (const Timeline::Rank& rank : timeline.ranks) largest = std::max(largest, rank.peak);
  return largest;
}

TEST(LibraryFormulas, ControllableMemory) {
  for (int p = 2; p <= 8; ++p) {
    for (const int m : {2 * p, 2 * p + 1, 3 * p + 2}) {
      SCOPED_TRACE(testing::Message() << p << " " << m);
      const Timeline v_min = timeline_of("v_min", sizes(p, m));
      EXPECT_NEAR(largest_peak(v_min), (p + 4) / 3, kExact);
      EXPECT_NEAR(v_min.span - 3 * m, 2 * p - 2.5 - (p % 3 == 0 ? 1 : 0), kExact);
      const Timeline v_half = timeline_of("v_half", sizes(p, m));
      EXPECT_NEAR(largest_peak(v_half), (p + 2) / 2, kExact);
      if (p > 2) {
        EXPECT_NEAR(v_half.span - 3 * m, (p % 2 == 0 ? 3 * p - 7 : 3 * p - 4) / 2.0, kExact);
      }
      const Timeline v_1f1b = timeline_of("v_1f1b", sizes(p, m));
      EXPECT_NEAR(largest_peak(v_1f1b), 2 * p / 3 + 1, kExact);
    }
  }
}

/// Makespans at equal times for the sizes of a published comparison (AMD's Primus on MI300).
TEST(LibraryFormulas, ScheduleOfAPublishedComparison) {
  const std::pair<const char*, double> rows[] = {{"one_f_one_b", 117}, {"interleaved", 106.5},
                                                 {"zb_h1", 103},       {"zbv", 99.5},
                                                 {"v_half", 104.5},    {"v_min", 109.5}};
  for (const auto& [name, makespan] : rows)
    EXPECT_NEAR(timeline_of(name, sizes(8, 32)).makespan, makespan, kExact) << name;
}

/// Idle time beside work for the sizes of Megatron-LM's paper (arXiv 2104.04473, table 1), where it
/// is (p-1)/(v m).
TEST(LibraryFormulas, MegatronsTable) {
  for (const auto& [p, m, v] : {std::tuple(2, 12, 1), {4, 28, 3}, {8, 48, 2}}) {
    const Timeline timeline = timeline_of("interleaved", sizes(p, m, v));
    EXPECT_NEAR(timeline.makespan / most_work(timeline) - 1, (p - 1.0) / (v * m), kExact) << p;
  }
}

TEST(LibraryFormulas, SearchedLine) {
  for (int p = 2; p <= 5; ++p) {
    for (int cap = p; cap <= 2 * p; ++cap) {
      for (const int m : {2 * p, 3 * p}) {
        const Timeline timeline = timeline_of("zb_auto", with(p, m, {{"cap", cap}}));
        EXPECT_NEAR(timeline.span - 3 * m, std::max(0, 2 * p - 1 - cap), kExact)
            << p << " " << m << " " << cap;
        EXPECT_LE(largest_peak(timeline), cap + kExact);
      }
    }
  }
}

/// The searched order has no longer span than a published one with the same peak.
TEST(LibraryFormulas, SearchedV) {
  for (int p = 2; p <= 6; ++p) {
    for (const char* published : {"v_min", "v_half", "zbv"}) {
      const int m = 2 * p + 1;
      const Timeline other = timeline_of(published, sizes(p, m));
      std::vector<lower::Override> given = sizes(p, m);
      given.push_back({"cap", std::to_string(largest_peak(other))});
      const Timeline timeline = timeline_of("v_auto", given);
      EXPECT_LE(timeline.span, other.span + kExact) << published << " " << p;
      EXPECT_LE(largest_peak(timeline), largest_peak(other) + kExact) << published << " " << p;
    }
  }
}

}  // namespace
}  // namespace piper::service
