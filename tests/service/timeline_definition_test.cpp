// Timelines of orders against the definitions of docs/execution.md section 8, evaluated slowly from
// the orders alone.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "passes/order/orders_table.h"
#include "passes/simulate/operations.h"
#include "tests/service/compiled.h"

namespace piper::service {
namespace {

using passes::OperationCosts;
using passes::OrdersTable;

constexpr double kExact = 1e-9;

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
        ASSERT_TRUE(timeline) << name << " " << p << " " << m << compiled.reports();
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

}  // namespace
}  // namespace piper::service
