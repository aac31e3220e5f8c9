// Timelines of random programs match the definitions in their header, for orders and for plans; a
// plan uses no more memory than planned (law 3); no order is below its lower bounds; and the
// measured bubble equals the one that verification computes independently.

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/verify/verify.h"
#include "passes/order/orders_table.h"
#include "passes/plan/requirements.h"
#include "passes/simulate/actions.h"
#include "passes/simulate/lower_bounds.h"
#include "passes/simulate/operations.h"
#include "tests/support/compile.h"
#include "tests/support/random_programs.h"

namespace piper::test {
namespace {

using passes::Timeline;

void expect_lanes(const Timeline& timeline) {
  for (const Timeline::Lane& lane : timeline.lanes) {
    for (std::uint32_t e = lane.first; e < lane.end; ++e) {
      EXPECT_LE(timeline.start[e], timeline.finish[e]);
      if (e == lane.first) continue;
      const bool together = timeline.group[e] != Timeline::kNone &&
                            timeline.group[e] == timeline.group[e - 1] &&
                            timeline.start[e] == timeline.start[e - 1];
      EXPECT_TRUE(together || timeline.start[e] >= timeline.finish[e - 1])
          << timeline.label(timeline.operation_of(e));
    }
  }
}

void expect_figures(const Timeline& timeline) {
  const double error = 1e-9 * std::max(1.0, timeline.makespan);
  for (std::uint32_t e = 0; e < timeline.size(); ++e) {
    if (timeline.cause[e] == Timeline::kNone) {
      EXPECT_LE(timeline.start[e], error) << timeline.label(timeline.operation_of(e));
    } else {
      // For an operation of several segments an earlier one may be waited for, or a later one may
      // wait.
      const std::uint32_t cause = timeline.cause[e];
      const auto in_parts = [&](std::uint32_t entry) {
        return timeline.operation_of(entry).first != timeline.operation_of(entry).last;
      };
      const double made = (in_parts(cause) ? timeline.start : timeline.finish)[cause],
                   waited = (in_parts(e) ? timeline.finish : timeline.start)[e];
      EXPECT_LE(made, waited + error) << timeline.label(timeline.operation_of(e));
    }
  }
  double work = 0, most = 0;
  for (const Timeline::Rank& rank : timeline.ranks) {
    work += rank.work;
    most = std::max(most, rank.work);
    EXPECT_NEAR(rank.idle.total(), timeline.makespan - rank.work, error);
    for (const double part : {rank.idle.before_first, rank.idle.after_last, rank.idle.data,
                              rank.idle.message, rank.idle.room, rank.idle.imbalance})
      EXPECT_GE(part, -error);
    EXPECT_GE(rank.peak, -1e-9);
  }
  // Every rank lets go of all activations that it holds, and of no others, also where a region is
  // placed apart from its backward.
  for (const Timeline::Curve& curve : timeline.curves) {
    if (curve.cls || curve.first == curve.end) continue;
    for (std::uint32_t i = curve.first; i < curve.end; ++i)
      EXPECT_GE(timeline.curve_value[i], -1e-9);
    EXPECT_NEAR(timeline.curve_value[curve.end - 1], 0, 1e-9);
  }
  EXPECT_LE(timeline.span, timeline.makespan + error);
  EXPECT_LE(most, timeline.span + error);
  ASSERT_FALSE(timeline.critical.empty());
  EXPECT_LE(timeline.start[timeline.critical.front()], error);
  EXPECT_EQ(timeline.finish[timeline.critical.back()], timeline.makespan);
}

TEST(Timelines, RandomProgramsMatchTheirHeaders) {
  for_each_case(120, [&](Random& random) {
    Context context;
    RandomProgram program = random_program(context, random);
    SCOPED_TRACE(program.source);
    DiagnosticSink sink(context.locations);
    auto dag = test::compile(program.model, program.strategy, sink, {});
    ASSERT_TRUE(dag) << render_text(sink.sorted(), context.locations.files());

    const passes::OrdersTable table = passes::orders_table(*dag);
    std::size_t operations = 0;
    for (const auto& row : table.rows) operations += row.ops.size();
    passes::OperationCosts costs{
        .f = 1.25, .bi = 0.5, .bw = 0.75, .p2p = 0.125, .w = 0.5, .r = 1, .keep = 0.25};
    for (const bool pairs : {false, true}) {
      if (pairs) costs.pair = 2;
      DiagnosticSink told(context.locations);
      const auto timeline = passes::simulate_operations(*dag, costs, told);
      ASSERT_EQ(timeline.has_value(), !told.has_errors());
      EXPECT_TRUE(pairs || timeline) << render_text(told.sorted(), context.locations.files());
      EXPECT_TRUE(timeline || told.reported(Code::pairs_wait_for_each_other));
      if (!timeline) continue;
      EXPECT_EQ(timeline->size(), operations);
      expect_lanes(*timeline);
      expect_figures(*timeline);
    }
    // Parts of a forward add up to the whole: a microbatch takes as many time units as there are
    // ranks with work, if no two do the same.
    DiagnosticSink forward(context.locations);
    const auto forwards =
        passes::simulate_operations(*dag, {.f = 1, .bi = 0, .bw = 0, .r = 0}, forward);
    ASSERT_TRUE(forwards);
    double work = 0,
           microbatches =
               static_cast<double>(std::count_if(table.rows.begin(), table.rows.end(),
                                                 [](const auto& row) { return !row.ops.empty(); }));
    for (const Timeline::Rank& rank : forwards->ranks) work += rank.work;
    for (const auto& dim : dag->dims)
      microbatches *= context.text(dim.name) == "slice" ? 1 : static_cast<double>(dim.extent);
    if (forwards->size() == forwards->operations.size()) {
      EXPECT_NEAR(work, microbatches, 1e-6);
    }
    for (const passes::MachineRates& rates :
         {passes::MachineRates{}, passes::MachineRates{.flops = 1e6, .bytes = 1e6, .latency = 0},
          passes::MachineRates{.latency = 1}}) {
      const Timeline timeline = passes::simulate_actions(*dag, passes::action_costs(*dag, rates));
      std::size_t actions = 0;
      for (const dag::Role& role : dag->plan->roles) actions += role.actions.size();
      EXPECT_EQ(timeline.size(), actions);
      expect_lanes(timeline);
      expect_figures(timeline);
      for (const Timeline::Rank& rank : timeline.ranks)
        EXPECT_LE(rank.peak_bytes, rank.planned_bytes) << rank.name;
    }

    // `require` bounds the simulator's values at default costs, and the verifier's counts.
    DiagnosticSink told(context.locations);
    const auto at_default = passes::simulate_operations(*dag, {}, told);
    ASSERT_TRUE(at_default);
    if (const auto bounds = passes::lower_bounds(*at_default, {})) {
      EXPECT_LE(bounds->makespan, at_default->makespan * (1 + 1e-6));
      EXPECT_LE(bounds->span, at_default->span * (1 + 1e-6));
    }
    const std::pair<directive::Measure, double> measures[] = {
        {directive::Measure::peak_memory, static_cast<double>(passes::peak_memory(*dag).bytes)},
        {directive::Measure::host_memory, static_cast<double>(passes::host_memory(*dag).bytes)},
        {directive::Measure::bubble, at_default->bubble_span},
        {directive::Measure::traffic, static_cast<double>(passes::traffic(*dag))}};
    for (const auto& [measure, value] : measures) {
      for (const auto& [compare, bound, met] :
           {std::tuple{directive::Compare::less_equal, value + 1e-12, true},
            {directive::Compare::greater_equal, value - 1e-12, true},
            {directive::Compare::less, value - 1e-9, false}}) {
        dag->requirements = {{measure, compare, bound, "", {}}};
        DiagnosticSink required(context.locations), verified(context.locations);
        EXPECT_EQ(passes::check_requirements(*dag, required, {}), met);
        const bool simulated = measure == directive::Measure::bubble;
        EXPECT_EQ(
            simulated ? passes::check_bubbles(*dag, verified) : verify::verify(*dag, verified), met)
            << render_text(verified.sorted(), context.locations.files());
      }
    }
  });
}

}  // namespace
}  // namespace piper::test
