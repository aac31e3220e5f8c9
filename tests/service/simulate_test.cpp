// The simulator: closed forms of the field's schedules over ranges of sizes, the definitions of
// docs/execution.md section 8 against a slow evaluation from the orders alone, reports of idle
// time, and plans in seconds.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "frontend/service/compilation.h"
#include "frontend/service/cost_text.h"
#include "passes/order/orders_table.h"
#include "passes/simulate/actions.h"
#include "passes/simulate/figures.h"
#include "passes/simulate/operations.h"
#include "passes/simulate/work_fraction.h"

namespace piper::service {
namespace {

using passes::OperationCosts;
using passes::OrdersTable;
using passes::Timeline;

constexpr double kExact = 1e-9;

/// A schedule by itself, compiled.
class Compiled {
 public:
  Compiled(const std::string& input, const std::string& name, std::vector<lower::Override> sizes,
           dag::Level level = dag::Level::ordered, const std::string& text = "") {
    if (!text.empty()) files_.add(input, text);
    compilation_.emplace(files_, std::move(sizes));
    sink_.emplace(compilation_->context().locations);
    if (!compilation_->open(input, *sink_)) return;
    auto subject = compilation_->subject(name, false, *sink_);
    if (!subject) return;
    dag_ = compilation_->compile(*subject, {level, false, {}}, *sink_);
  }
  std::optional<Timeline> simulate(const OperationCosts& costs) {
    return dag_ ? passes::simulate_operations(*dag_, costs, *sink_) : std::nullopt;
  }
  OrdersTable orders() const { return passes::orders_table(*dag_); }
  const dag::Dag& dag() const { return *dag_; }
  DiagnosticSink& sink() { return *sink_; }
  std::string told() {
    return render_text(sink_->sorted(), compilation_->context().locations.files());
  }

 private:
  source::MemoryFileSystem files_;
  std::optional<Compilation> compilation_;
  std::optional<DiagnosticSink> sink_;
  std::optional<dag::Dag> dag_;
};

std::vector<lower::Override> sizes(int p, int m, int v = 0) {
  std::vector<lower::Override> given = {{"p", std::to_string(p)}, {"m", std::to_string(m)}};
  if (v > 0) given.push_back({"v", std::to_string(v)});
  return given;
}

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
          ASSERT_TRUE(timeline) << compiled.told();
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
          ASSERT_TRUE(timeline) << compiled.told();
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
        ASSERT_TRUE(timeline) << compiled.told();
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
      ASSERT_TRUE(timeline) << compiled.told();
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
      ASSERT_TRUE(timeline) << compiled.told();
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

// ---- the definitions, slowly

/// docs/execution.md section 8 word by word, from the output of `show orders --format json`:
/// operations with stages, their ranks, their groups. Repeats until nothing changes.
struct Slow {
  double makespan = 0, span = 0, bubble_makespan = 0, bubble_span = 0;
  std::vector<double> work, peak;

  Slow(const OrdersTable& table, const OperationCosts& costs) {
    const std::size_t ranks = table.rows.size();
    const double share = static_cast<double>(ranks) / table.stages;
    const auto cost = [&](const OrdersTable::Op& op) {
      return share * (op.pass == Pass::F    ? costs.f
                      : op.pass == Pass::B  ? costs.b.value_or(costs.bi + costs.bw)
                      : op.pass == Pass::BI ? costs.bi
                                            : costs.bw);
    };
    std::vector<std::vector<double>> start(ranks), end(ranks);
    // Pass, stage, microbatch.
    std::map<std::tuple<int, std::uint32_t, std::uint32_t>, std::pair<std::size_t, std::size_t>> at;
    for (std::size_t r = 0; r < ranks; ++r) {
      start[r].assign(table.rows[r].ops.size(), 0);
      end[r] = start[r];
      for (std::size_t i = 0; i < table.rows[r].ops.size(); ++i) {
        const auto& op = table.rows[r].ops[i];
        at[{op.pass == Pass::B ? static_cast<int>(Pass::BI) : static_cast<int>(op.pass), *op.stage,
            op.mb}] = {r, i};
      }
    }
    const auto ready = [&](std::size_t r, const OrdersTable::Op& op) {
      double time = 0;
      const auto needs = [&](Pass pass, std::uint32_t stage) {
        const auto [rank, i] = at.at({static_cast<int>(pass), stage, op.mb});
        time = std::max(time, end[rank][i] + (rank == r ? 0 : costs.p2p));
      };
      if (op.pass == Pass::F && *op.stage > 0) needs(Pass::F, *op.stage - 1);
      if (op.pass == Pass::B || op.pass == Pass::BI) {
        needs(Pass::F, *op.stage);
        if (*op.stage + 1 < table.stages) needs(Pass::BI, *op.stage + 1);
      }
      if (op.pass == Pass::BW) needs(Pass::BI, *op.stage);
      return time;
    };
    work.assign(ranks, 0);
    peak.assign(ranks, 0);
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t r = 0; r < ranks; ++r) {
        const auto& ops = table.rows[r].ops;
        double free = 0;
        work[r] = 0;
        for (std::size_t i = 0; i < ops.size();) {
          const bool pair = costs.pair && i + 1 < ops.size() && ops[i].group &&
                            ops[i].group == ops[i + 1].group &&
                            (i + 2 == ops.size() || ops[i + 2].group != ops[i].group) &&
                            (ops[i].pass == Pass::F) != (ops[i + 1].pass == Pass::F) &&
                            ops[i].pass != Pass::BW && ops[i + 1].pass != Pass::BW;
          const double begin = std::max({free, ready(r, ops[i]), pair ? ready(r, ops[i + 1]) : 0});
          const double length = pair ? *costs.pair * share : cost(ops[i]);
          for (const std::size_t next = i + (pair ? 2 : 1); i < next; ++i) {
            changed = changed || end[r][i] != begin + length;
            start[r][i] = begin;
            end[r][i] = begin + length;
          }
          free = begin + length;
          work[r] += length;
        }
      }
    }
    double total = 0, most = 0;
    for (std::size_t r = 0; r < ranks; ++r) {
      makespan = std::max(makespan, end[r].back());
      span = std::max(span, end[r].back() - start[r].front());
      total += work[r];
      most = std::max(most, work[r]);
      // At equal times ends come before starts.
      std::vector<std::tuple<double, bool, double>> events;
      for (std::size_t i = 0; i < table.rows[r].ops.size(); ++i) {
        const auto& op = table.rows[r].ops[i];
        const double part = op.pass == Pass::BW ? costs.w : op.pass == Pass::BI ? 1 - costs.w : 1;
        if (op.pass == Pass::F) events.emplace_back(start[r][i], true, share);
        else events.emplace_back(end[r][i], false, -share * part);
      }
      std::sort(events.begin(), events.end(), [](const auto& a, const auto& b) {
        return std::abs(std::get<0>(a) - std::get<0>(b)) > 1e-7 ? std::get<0>(a) < std::get<0>(b)
                                                                : std::get<1>(a) < std::get<1>(b);
      });
      double held = 0;
      for (const auto& event : events) peak[r] = std::max(peak[r], held += std::get<2>(event));
    }
    bubble_makespan = 1 - total / (static_cast<double>(ranks) * makespan);
    bubble_span = 1 - most / span;
  }
};

TEST(Simulate, IsTheDefinition) {
  constexpr OperationCosts kCosts[] = {
      {},
      {.f = 10, .bi = 11, .bw = 8, .p2p = 1},
      {.f = 10, .bi = 20, .bw = 10, .w = 0.5},
      {.f = 1.25, .bi = 0.75, .bw = 2, .b = 2.5, .pair = 3.1, .p2p = 0.125, .w = 0.25},
      {.f = 1, .bi = 1, .bw = 0.5, .pair = 1.5},
  };
  for (const char* name :
       {"gpipe", "one_f_one_b", "interleaved", "zb_h1", "zbv", "dual_pipe", "dual_pipe_v"}) {
    for (const auto& [p, m] : {std::pair(2, 4), {2, 6}, {4, 8}, {4, 12}, {5, 10}, {6, 18}}) {
      const bool dual = std::string(name) == "dual_pipe";
      if (dual && (p % 2 != 0 || m % 2 != 0)) continue;
      Compiled compiled(name, "", sizes(p, m));
      for (const OperationCosts& costs : kCosts) {
        const auto timeline = compiled.simulate(costs);
        ASSERT_TRUE(timeline) << name << " " << p << " " << m << compiled.told();
        // Copy 1 of `dual_pipe` has its own microbatches, so stage and microbatch say which
        // operation it is.
        const Slow slow(compiled.orders(), costs);
        const std::string what = std::string(name) + " " + std::to_string(p) + " " +
                                 std::to_string(m) + " f=" + std::to_string(costs.f);
        EXPECT_NEAR(timeline->makespan, slow.makespan, kExact) << what;
        EXPECT_NEAR(timeline->span, slow.span, kExact) << what;
        EXPECT_NEAR(timeline->bubble_makespan, slow.bubble_makespan, kExact) << what;
        EXPECT_NEAR(timeline->bubble_span, slow.bubble_span, kExact) << what;
        for (std::size_t r = 0; r < slow.work.size(); ++r) {
          EXPECT_NEAR(timeline->ranks[r].work, slow.work[r], kExact) << what;
          EXPECT_NEAR(timeline->ranks[r].peak, slow.peak[r], kExact) << what;
          EXPECT_NEAR(timeline->ranks[r].idle.total(), slow.makespan - slow.work[r], kExact)
              << what;
        }
      }
    }
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
  ASSERT_TRUE(timeline) << compiled.told();
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
  ASSERT_TRUE(timeline) << compiled.told();
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

// ---- costs as text

TEST(Costs, AreReadOrRefused) {
  const LocationTable locations;
  const auto read = [&](std::string_view text, OperationCosts& costs) {
    DiagnosticSink sink(locations);
    const bool good = read_costs(text, costs, sink);
    EXPECT_EQ(good, !sink.has_errors()) << text;
    EXPECT_TRUE(good || sink.reported(Code::bad_cost)) << text;
    return good;
  };
  OperationCosts costs;
  EXPECT_TRUE(read("f=2,bi=0.5 bw=1e3,pair=3, p2p=0,w=0.25,keep=1,r=1", costs));
  EXPECT_EQ(std::tuple(costs.f, costs.bi, costs.bw, *costs.pair, costs.p2p, costs.w),
            std::tuple(2.0, 0.5, 1000.0, 3.0, 0.0, 0.25));
  EXPECT_FALSE(costs.b);
  EXPECT_EQ(costs.stages, passes::StageCosts::weighed);
  EXPECT_TRUE(read("stages=equal", costs));
  EXPECT_EQ(costs.stages, passes::StageCosts::equal);
  // Halves are those of the whole where only that is given.
  for (const auto& [text, bi, bw] : {std::tuple("b=3", 1.5, 1.5),
                                     {"b=3,bi=1", 1.0, 1.0},
                                     {"b=3,bw=0.5", 1.0, 0.5},
                                     {"bi=4,b=3,bw=0.5", 4.0, 0.5}}) {
    OperationCosts halves;
    EXPECT_TRUE(read(text, halves));
    EXPECT_EQ(std::tuple(*halves.b, halves.bi, halves.bw), std::tuple(3.0, bi, bw)) << text;
  }
  for (const char* text :
       {"",         ",",         "f",      "f=",       "f=1,",
        "f=nan",    "f=-1",      "f=inf",  "f=1e13",   "f=1x",
        "w=1.5",    "keep=-0.1", "g=1",    "=1",       "f=1,f=2",
        "f=1,,b=2", "F=1",       "stages", "stages=1", "stages=cost,stages=equal"}) {
    OperationCosts unread;
    EXPECT_FALSE(read(text, unread)) << text;
  }
}

TEST(Costs, NamesInAFileAreComparedAsTheyAreWritten) {
  source::MemoryFileSystem disk;
  const auto read = [&](const std::string& bodies, const std::string& name) {
    disk.add(name, "{\"schema\": 1, \"bodies\": {" + bodies + "}}");
    LocationTable locations;
    SourceTable files;
    DiagnosticSink sink(locations);
    const auto costs = read_cost_file(name, disk, files, sink);
    EXPECT_EQ(costs.has_value(), !sink.reported(Code::bad_costs_file)) << bodies;
    return costs ? static_cast<int>(costs->bodies.size()) : -1;
  };
  EXPECT_EQ(read(R"("a": 1, "b": 2)", "plain"), 2);
  EXPECT_EQ(read(R"("a": 1, "a": 2)", "twice"), -1);
  EXPECT_EQ(read(R"("a\"": 1, "b\"": 2, "c\"": 3, "d\"": 4)", "quoted"), 4);
  EXPECT_EQ(read(R"("a\\": 1, "b\\": 2, "\\": 3)", "backslash"), 3);
  EXPECT_EQ(read(R"("\"a\"": 1, "b": 2, "\"a\"": 3)", "quoted-twice"), -1);
}

/// The warning counts both ways: bodies without a time, and times of no body.
TEST(Costs, CostsOfAnotherProgramAreReported) {
  Compiled compiled("gpipe", "", sizes(2, 2), dag::Level::planned);
  MeasuredCosts all;
  for (const dag::Body& body : compiled.dag().bodies)
    all.bodies.emplace_back(std::string(compiled.dag().context->text(body.name)), 0.5);
  MeasuredCosts more = all, fewer = all;
  more.bodies.emplace_back("nothing.F", 1);
  fewer.bodies.pop_back();
  for (const auto& [measured, told] : {std::pair(&all, false), {&more, true}, {&fewer, true}}) {
    const LocationTable locations;
    DiagnosticSink sink(locations);
    const passes::ActionCosts costs = costs_of(compiled.dag(), *measured, sink);
    EXPECT_EQ(sink.reported(Code::costs_of_another_program), told);
    EXPECT_EQ(costs.body[0], 0.5);
  }
}

}  // namespace
}  // namespace piper::service
