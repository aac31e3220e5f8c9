// The simulator: closed forms of the field's schedules over ranges of sizes, reports of idle time,
// and plans in seconds.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "passes/simulate/actions.h"
#include "passes/simulate/figures.h"
#include "passes/simulate/lower_bounds.h"
#include "passes/simulate/operations.h"
#include "passes/simulate/work_fraction.h"
#include "tests/service/compiled.h"

namespace piper::service {
namespace {

using passes::OperationCosts;
using passes::Timeline;

constexpr double kExact = 1e-9;

double most_work(const Timeline& timeline) {
  double most = 0;
  for (const Timeline::Rank& rank : timeline.ranks) most = std::max(most, rank.work);
  return most;
}
double peak(const Timeline& timeline) {
  double most = 0;
  for (const Timeline::Rank& rank : timeline.ranks) most = std::max(most, rank.peak);
  return most;
}

// ---- closed forms

TEST(Simulate, GPipeAndOneFOneB) {
  for (const char* name : {"gpipe", "one_f_one_b"}) {
    for (int p = 2; p <= 8; ++p) {
      for (int m = 2; m <= 32; ++m) {
        Compiled compiled(name, "", sizes(p, m));
        for (const OperationCosts& costs :
             {OperationCosts{}, OperationCosts{.f = 10, .bi = 11, .bw = 8},
              OperationCosts{.f = 2, .b = 3}}) {
          const auto timeline = compiled.simulate(costs);
          ASSERT_TRUE(timeline) << compiled.reports();
          const double work = m * (costs.f + costs.b.value_or(costs.bi + costs.bw));
          EXPECT_NEAR(timeline->makespan / work - 1, (p - 1.0) / m, kExact)
              << name << " " << p << " " << m;
          EXPECT_NEAR(timeline->bubble_span, (p - 1.0) / (m + p - 1), kExact);
          for (int r = 0; r < p; ++r) {
            EXPECT_NEAR(timeline->ranks[r].work, work, kExact);
            EXPECT_NEAR(timeline->ranks[r].peak,
                        std::string(name) == "gpipe" ? m : std::min(p - r, m), kExact);
          }
        }
      }
    }
  }
}

TEST(Simulate, Interleaved) {
  for (int v = 2; v <= 4; ++v) {
    for (int p = 2; p <= 6; ++p) {
      for (int m = p; m <= 4 * p; m += p) {
        Compiled compiled("interleaved", "", sizes(p, m, v));
        for (const OperationCosts& costs : {OperationCosts{}, OperationCosts{.f = 10, .b = 19}}) {
          const auto timeline = compiled.simulate(costs);
          ASSERT_TRUE(timeline) << compiled.reports();
          EXPECT_NEAR(timeline->makespan / most_work(*timeline) - 1, (p - 1.0) / (v * m), kExact)
              << p << " " << m << " " << v;
          EXPECT_NEAR(timeline->ranks[0].peak, std::min<double>(p * (1 + (p - 1.0) / (p * v)), m),
                      kExact);
        }
      }
    }
  }
}

TEST(Simulate, ZeroBubble) {
  for (int p = 2; p <= 8; p += 2) {
    for (int m = 2 * p; m <= 4 * p; m += 3) {
      for (const OperationCosts& costs :
           {OperationCosts{}, OperationCosts{.f = 10, .bi = 11, .bw = 8}}) {
        const auto h1 = Compiled("zb_h1", "", sizes(p, m)).simulate(costs);
        ASSERT_TRUE(h1);
        EXPECT_NEAR(h1->span - most_work(*h1), (p - 1) * (costs.f + costs.bi - costs.bw), kExact)
            << p << " " << m;
        EXPECT_NEAR(peak(*h1), p, kExact);
      }
      const auto zbv = Compiled("zbv", "", sizes(p, m)).simulate({});
      ASSERT_TRUE(zbv);
      EXPECT_NEAR(zbv->bubble_span, 0, kExact);
      EXPECT_NEAR(peak(*zbv), p, kExact);
      const auto slow =
          Compiled("zbv", "", sizes(p, m)).simulate({.f = 1, .bi = 1, .bw = 1, .p2p = 0.25});
      EXPECT_GT(slow->bubble_span, 0);
      EXPECT_GT(slow->ranks[0].idle.message, 0);
    }
  }
}

TEST(Simulate, DualPipe) {
  for (int p = 2; p <= 8; p += 2) {
    for (int m = 2 * p; m <= 32; m += 2) {
      for (const double unit : {1.0, 0.3}) {
        const OperationCosts costs{.f = unit, .bi = unit, .bw = unit, .pair = 3 * unit};
        const double idle = (p / 2 - 1) * (*costs.pair + 2 * unit - 3 * unit);
        const auto timeline = Compiled("dual_pipe", "", sizes(p, m)).simulate(costs);
        ASSERT_TRUE(timeline);
        for (const Timeline::Rank& rank : timeline->ranks)
          EXPECT_NEAR(timeline->makespan - rank.work, idle, kExact) << p << " " << m;
        EXPECT_NEAR(peak(*timeline), p + 1, kExact) << p << " " << m;
      }
    }
  }
}

TEST(Simulate, DualPipeV) {
  for (int p = 2; p <= 8; ++p) {
    for (int m = 2 * p; m <= 3 * p; ++m) {
      const auto timeline = Compiled("dual_pipe_v", "", sizes(p, m)).simulate({.pair = 3});
      ASSERT_TRUE(timeline);
      EXPECT_NEAR(timeline->span - most_work(*timeline), p - 1, kExact) << p << " " << m;
      EXPECT_NEAR(peak(*timeline), p + 0.5, kExact) << p << " " << m;
    }
  }
}

/// A schedule in a separate file.
Compiled written(const std::string& name, const std::string& body, int p, int m) {
  return Compiled(
      "own.pipe", name, sizes(p, m), dag::Level::ordered,
      "schedule " + name + "(p: axis, m: int) {\n    split batch into mb: m\n" + body + "}\n");
}

/// All forwards, then all backwards after a recomputed forward: only the recomputation of the last
/// stage is waited for. A rank keeps `keep` of each microbatch, and all of the one whose backward
/// runs.
TEST(Simulate, GPipeThatRecomputes) {
  for (int p = 1; p <= 4; ++p) {
    for (int m = 2; m <= 8; m += 3) {
      Compiled compiled = written(
          "lean",
          "    partition model into stage: p\n    for s in 0..p { place stage[s] on p[s] }\n    recompute stage\n"
          "    order { rank r in p { cursor a = stage[r] mb[0..m]\n repeat m { F a }\n repeat m { B a } } }\n",
          p, m);
      for (const OperationCosts& costs :
           {OperationCosts{}, OperationCosts{.f = 2, .b = 3, .r = 1.5, .keep = 0.25},
            OperationCosts{.f = 2, .b = 3, .r = 0.5, .keep = 1}}) {
        const auto timeline = compiled.simulate(costs);
        ASSERT_TRUE(timeline) << compiled.reports();
        const double b = costs.b.value_or(costs.bi + costs.bw), r = costs.r.value_or(costs.f);
        EXPECT_NEAR(timeline->makespan, (m + p - 1) * (costs.f + b) + m * r, kExact)
            << p << " " << m;
        for (const Timeline::Rank& rank : timeline->ranks) {
          EXPECT_NEAR(rank.work, m * (costs.f + r + b), kExact);
          EXPECT_NEAR(rank.peak, m * costs.keep + 1 - costs.keep, kExact);
          EXPECT_NEAR(timeline->curve_value[timeline->curves[rank.first_curve].end - 1], 0, kExact);
        }
      }
    }
  }
}

/// The backward of a first stage that is frozen makes nothing and takes no time.
TEST(Simulate, GPipeWithAFrozenFirstStage) {
  for (int p = 2; p <= 4; ++p) {
    for (const int m : {1, 2, 5}) {
      Compiled compiled = written(
          "cold",
          "    partition model into stage: p\n    for s in 0..p { place stage[s] on p[s] }\n    freeze stage[0]\n"
          "    order { rank r in p { cursor a = stage[r] mb[0..m]\n repeat m { F a }\n repeat m { B a } } }\n",
          p, m);
      const auto timeline = compiled.simulate({.f = 2, .b = 3});
      ASSERT_TRUE(timeline) << compiled.reports();
      EXPECT_NEAR(timeline->makespan, (m + p - 1) * 2 + (m + p - 2) * 3, kExact) << p << " " << m;
      for (int r = 0; r < p; ++r)
        EXPECT_NEAR(timeline->ranks[r].work, m * (r == 0 ? 2 : 5), kExact) << p << " " << m;
    }
  }
}

/// A recomputed forward beside another forward is no pair: they run one after the other.
TEST(Simulate, PairsAreAForwardAndABackward) {
  for (const int m : {2, 5}) {
    const std::string placed =
        "    place model on p[0]\n    recompute model\n    order { rank r in p { F model mb[0]\n for i in 1..m { ";
    const std::string again =
        placed +
        "F model mb[i] & R model mb[i - 1]\n B model mb[i - 1] }\n B model mb[m - 1] } }\n";
    const std::string back =
        placed +
        "R model mb[i - 1]\n F model mb[i] & B model mb[i - 1] }\n R model mb[m - 1]\n B model mb[m - 1] } }\n";
    const OperationCosts costs{.f = 1, .b = 2, .pair = 1.75, .r = 0.5};
    for (const auto& [text, pairs] : {std::pair(again, 0), {back, m - 1}}) {
      Compiled compiled = written("beside", text, 1, m);
      const auto timeline = compiled.simulate(costs);
      ASSERT_TRUE(timeline) << compiled.reports();
      EXPECT_NEAR(timeline->makespan, m * 3.5 - pairs * 1.25, kExact) << m;
    }
  }
}

/// As a file of a plan may have it: work without a microbatch is that of all of them.
TEST(Simulate, WorkThatIsNotSplitCountsForAllMicrobatches) {
  Compiled compiled("gpipe", "", sizes(2, 4));
  const passes::WorkFractions fractions(compiled.dag(), passes::StageCosts::weighed);
  for (dag::Node node : compiled.dag().nodes) {
    if (!dag::runs_body(node.kind)) continue;
    EXPECT_NEAR(fractions.of(node, node.pass), 1.0 / 2, kExact);
    node.instance.at[0] = dag::Instance::kNone;
    EXPECT_NEAR(fractions.of(node, node.pass), 4.0 / 2, kExact);
  }
}

// ---- further contents of a timeline

TEST(Simulate, TimelinesAreWhatTheirHeaderSays) {
  for (const char* name : {"zbv", "dual_pipe_v", "interleaved"}) {
    Compiled compiled(name, "", sizes(4, 8), dag::Level::planned);
    for (const auto& timeline : {compiled.simulate({.pair = 2.5, .p2p = 0.5}),
                                 std::optional(passes::simulate_actions(
                                     compiled.dag(), passes::action_costs(compiled.dag(), {})))}) {
      ASSERT_TRUE(timeline);
      for (const Timeline::Lane& lane : timeline->lanes) {
        for (std::uint32_t e = lane.first; e < lane.end; ++e) {
          EXPECT_LE(timeline->start[e], timeline->finish[e]);
          if (e == lane.first) continue;
          const bool together = timeline->start[e] == timeline->start[e - 1] &&
                                timeline->finish[e] == timeline->finish[e - 1];
          EXPECT_TRUE(together || timeline->start[e] >= timeline->finish[e - 1]) << name;
        }
      }
      for (std::uint32_t e = 0; e < timeline->size(); ++e) {
        const std::uint32_t cause = timeline->cause[e];
        if (cause == Timeline::kNone)
          EXPECT_EQ(timeline->start[e], 0) << timeline->label(timeline->operation_of(e));
        else
          EXPECT_LE(timeline->finish[cause], timeline->start[e] + kExact)
              << timeline->label(timeline->operation_of(e));
      }
      ASSERT_FALSE(timeline->critical.empty());
      EXPECT_EQ(timeline->start[timeline->critical.front()], 0);
      EXPECT_EQ(timeline->finish[timeline->critical.back()], timeline->makespan);
      for (const Timeline::Rank& rank : timeline->ranks)
        EXPECT_NEAR(rank.idle.total(), timeline->makespan - rank.work, kExact);
      for (const Timeline::Message& message : timeline->messages)
        EXPECT_LE(message.leaves, message.arrives);
      EXPECT_FALSE(timeline->messages.empty());
      for (const Timeline::Curve& curve : timeline->curves) {
        for (std::uint32_t i = curve.first + 1; i < curve.end; ++i)
          EXPECT_LT(timeline->curve_time[i - 1], timeline->curve_time[i]);
        // Kept activations were released.
        EXPECT_TRUE(curve.cls || std::abs(timeline->curve_value[curve.end - 1]) < kExact);
      }
    }
  }
}

TEST(Simulate, ImbalanceIsWhatASlowStageMakesOthersWait) {
  const std::string text =
      "schedule uneven(p: axis, m: int) {\n    partition model into stage: 3\n    split batch into mb: m\n    place stage[0] on p[0]\n    place stage[1] on p[1]\n    place stage[2] on p[1]\n"
      "    order { rank r in p { if r == 0 { for i in 0..m { F stage[0] mb[i] }; for i in 0..m { B stage[0] mb[i] } } else {\n"
      "        for i in 0..m { F stage[1] mb[i]; F stage[2] mb[i]; B stage[2] mb[i]; B stage[1] mb[i] } } } }\n}\n";
  std::string lines = text;
  for (std::size_t at = 0; (at = lines.find("; ", at)) != std::string::npos;)
    lines.replace(at, 2, "\n");
  Compiled compiled("uneven.pipe", "uneven", sizes(2, 6), dag::Level::ordered, lines);
  const auto timeline = compiled.simulate({});
  ASSERT_TRUE(timeline) << compiled.reports();
  EXPECT_NEAR(timeline->ranks[0].work, 6 * 3 * 2.0 / 3, kExact);
  EXPECT_NEAR(timeline->ranks[1].work, 6 * 3 * 4.0 / 3, kExact);
  EXPECT_GT(timeline->ranks[0].idle.imbalance, 0);
  EXPECT_EQ(timeline->ranks[1].idle.imbalance, 0);
}

/// As grids draw them: from the first start to the last end.
TEST(Simulate, JoinedGroupsRunFromTheFirstStartToTheLastEnd) {
  Timeline timeline;
  timeline.operations.resize(1);
  for (const std::uint32_t lane : {0u, 1u}) {
    timeline.lanes.push_back({"compute", lane, 4 * lane, 4 * lane});
    const std::uint32_t none = Timeline::kNone, groups[2][4] = {{none, 0, 0, 0}, {0, 0, 1, none}};
    for (int e = 0; e < 4; ++e) timeline.add_entry(e, e + 1, 0, groups[lane][e]);
  }
  timeline.join_groups();
  EXPECT_EQ(timeline.start, (std::vector<double>{0, 1, 1, 1, 0, 0, 2, 3}));
  EXPECT_EQ(timeline.finish, (std::vector<double>{1, 4, 4, 4, 2, 2, 3, 4}));
}

/// A stage whose backward is another rank's: its activations go there when F has ended.
TEST(Simulate, ActivationsGoToTheRankOfTheBackward) {
  const std::string text = R"(schedule apart(p: axis, m: int) {
    partition model into stage: p
    split batch into mb: m
    for s in 0..p {
        place F stage[s] on p[s]
        place B stage[s] on p[p - 1 - s]
    }
}
)";
  Compiled compiled("apart.pipe", "apart", sizes(2, 1), dag::Level::ordered, text);
  const auto timeline = compiled.simulate({});
  ASSERT_TRUE(timeline) << compiled.reports();
  using Points = std::vector<std::pair<double, double>>;
  const Points wanted[] = {{{0, 1}, {1, 0}, {2, 1}, {4, 0}}, {{1, 2}, {2, 1}, {6, 0}}};
  for (std::size_t r = 0; r < 2; ++r) {
    const Timeline::Curve& curve = timeline->curves[timeline->ranks[r].first_curve];
    Points found;
    for (std::uint32_t i = curve.first; i < curve.end; ++i)
      found.emplace_back(timeline->curve_time[i], timeline->curve_value[i]);
    EXPECT_EQ(found, wanted[r]) << r;
  }
  EXPECT_EQ(timeline->ranks[0].peak, 1);
  EXPECT_EQ(timeline->ranks[1].peak, 2);
}

/// Messages of a second, work of no time: the first rank makes two, then each waits until the one
/// before the last has left its bytes.
TEST(Simulate, RoomIsWhatAMessageOnItsWayStillHolds) {
  for (const int m : {3, 4, 7}) {
    Compiled compiled("gpipe", "", sizes(2, m), dag::Level::planned);
    const Timeline timeline = passes::simulate_actions(
        compiled.dag(),
        passes::action_costs(compiled.dag(),
                             {.flops = 1e18, .bytes = 1e18, .latency = 1, .bandwidth = 1e18}));
    const Timeline::Idle& idle = timeline.ranks[0].idle;
    EXPECT_NEAR(idle.room, m - 2, 1e-6);
    EXPECT_NEAR(idle.message, m + 1, 1e-6);
    EXPECT_NEAR(idle.data, 2, 1e-6);
    EXPECT_NEAR(timeline.makespan, 2 * m + 1, 1e-6);
  }
}

/// Work that waits for a message which began late for want of room has waited for that, too.
TEST(Simulate, RoomOfAMessageIsThatOfWhoReadsIt) {
  Timeline timeline;
  timeline.operations.resize(2);
  timeline.operations[1].kind = dag::NodeKind::recv;
  timeline.lanes = {{"compute", 0, 0, 0}};
  timeline.add_entry(0, 1, 0, Timeline::kNone);
  timeline.add_entry(6, 7, 0, Timeline::kNone);
  timeline.lanes.push_back({"act", 0, 2, 2});
  timeline.add_entry(4, 6, 1, Timeline::kNone);
  timeline.ranks.push_back({.name = "p0", .first_lane = 0, .end_lane = 2, .work = 2, .idle = {}});
  timeline.cause = {Timeline::kNone, 2, 0};
  timeline.why = {Timeline::Why::start, Timeline::Why::message, Timeline::Why::window};
  passes::fill_figures(timeline);
  EXPECT_EQ(timeline.ranks[0].idle.room, 3);
  EXPECT_EQ(timeline.ranks[0].idle.message, 2);
  EXPECT_EQ(timeline.ranks[0].idle.data, 0);
  timeline.why[2] = Timeline::Why::data;
  passes::fill_figures(timeline);
  EXPECT_EQ(timeline.ranks[0].idle.room, 0);
  EXPECT_EQ(timeline.ranks[0].idle.data, 3);
}

/// Stages count as they cost: an order may hold more microbatches of small stages than of large
/// ones, and the bounds know that.
TEST(Simulate, NoOrderIsShorterThanTheBoundsOfItsWork) {
  const std::pair<const char*, int> schedules[] = {{"gpipe(pp, m)", 2}, {"one_f_one_b(pp, m)", 2},
                                                   {"zb_h1(pp, m)", 2}, {"interleaved(pp, m)", 4},
                                                   {"zbv(pp, m)", 4},   {"dual_pipe_v(pp, m)", 4}};
  const char* const kSizes[2][4] = {
      {"[1, 7]", "[7, 1]", "[3, 5]", "[4, 4]"},
      {"[1, 5, 1, 1]", "[1, 1, 1, 5]", "[3, 1, 2, 2]", "[5, 1, 1, 1]"}};
  const OperationCosts all_costs[] = {{},           {.f = 2, .b = 3},
                                      {.p2p = 0.5}, {.stages = passes::StageCosts::equal},
                                      {.f = 0},     {.w = 0.5}};
  int bounded = 0;
  for (const auto& [schedule, stages] : schedules) {
    const std::string name(schedule, std::string_view(schedule).find('('));
    for (const char* const cut : kSizes[stages == 4]) {
      for (const int m : {4, 5, 7}) {
        std::string text =
            "use std.models.mlp\nuse std.schedules." + name +
            "\nmesh line(pp: 2)\nparam m = " + std::to_string(m) +
            "\ntrain t = mlp(layers: 6, features: 16, hidden: 16, classes: 4) on line {\n"
            "    data: synthetic(batch: 8*m, classes: 4)\n    optim: sgd(lr: 0.1)\n    steps: 1\n"
            "    partition model into stage: " +
            std::to_string(stages) + " with sizes: " + cut + "\n    " + schedule + "\n}\n";
        Planned planned("net.pipe", {}, text);
        for (const OperationCosts& costs : all_costs) {
          const auto timeline = passes::simulate_operations(planned.dag(), costs, planned.sink());
          ASSERT_TRUE(timeline) << text;
          const auto bounds = passes::lower_bounds(*timeline, costs);
          if (!bounds) continue;
          ++bounded;
          EXPECT_LE(bounds->makespan, timeline->makespan * (1 + 1e-6)) << text;
          EXPECT_LE(bounds->span, timeline->span * (1 + 1e-6)) << text;
        }
      }
    }
  }
  EXPECT_GT(bounded, 100);
}

TEST(Simulate, PlansTakeNoMoreMemoryThanPlanned) {
  for (const char* name :
       {"gpipe", "one_f_one_b", "interleaved", "zb_h1", "zbv", "dual_pipe", "dual_pipe_v"}) {
    Compiled compiled(name, "", sizes(4, 8), dag::Level::planned);
    for (const passes::MachineRates& rates :
         {passes::MachineRates{}, passes::MachineRates{.latency = 1e-3},
          passes::MachineRates{.flops = 1e3, .latency = 0}}) {
      const Timeline timeline =
          passes::simulate_actions(compiled.dag(), passes::action_costs(compiled.dag(), rates));
      for (const Timeline::Rank& rank : timeline.ranks) {
        EXPECT_LE(rank.peak_bytes, rank.planned_bytes) << name;
        EXPECT_GT(rank.peak_bytes, 0) << name;
      }
      for (const Timeline::Message& message : timeline.messages) {
        EXPECT_EQ(message.leaves, timeline.start[message.from]) << name;
        EXPECT_EQ(message.arrives, timeline.finish[message.to]) << name;
      }
    }
  }
}

TEST(Simulate, PlansWithEqualBodiesHaveTheBubbleOfTheirOrder) {
  for (const auto& [p, m] : {std::pair(2, 8), {4, 8}, {4, 16}}) {
    Compiled compiled("one_f_one_b", "", sizes(p, m), dag::Level::planned);
    passes::ActionCosts costs =
        passes::action_costs(compiled.dag(), {.bytes = 1e30, .latency = 0, .bandwidth = 1e30});
    for (std::size_t b = 0; b < compiled.dag().bodies.size(); ++b)
      costs.body[b] =
          compiled.dag().context->text(compiled.dag().bodies[b].name).ends_with(".B") ? 2 : 1;
    const Timeline timeline = passes::simulate_actions(compiled.dag(), costs);
    EXPECT_NEAR(timeline.bubble_makespan, (p - 1.0) / (m + p - 1), 1e-6) << p << " " << m;
  }
}

}  // namespace
}  // namespace piper::service
