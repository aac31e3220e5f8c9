// The cost of passes and verification per node at a million nodes, beside a quarter of that: the
// ratio of the two shows how near to linear they are. Also the cost of verifying the built DAG and
// the plan, beside that of the passes.
#include <benchmark/benchmark.h>

#include "ir/verify/verify.h"
#include "tests/bench/measure.h"
#include "tests/bench/schedule_program.h"

namespace piper::bench {
namespace {

struct PerNode {
  double passes = 0, verify = 0;  // microseconds of wall time
  std::size_t nodes = 0;
};

/// Empty: an error, in `error`.
std::optional<PerNode> measure_schedule(const std::string& name, const std::string& microbatches,
                                        std::string& error) {
  ScheduleProgram program(name, {{"p", "64"}, {"m", microbatches}});
  std::optional<dag::Dag> dag;
  const Cost passes = measure([&] { dag = program.compile(); });
  bool good = false;
  const Cost verify = measure([&] { good = dag && verify::verify(*dag, program.sink()); });
  if (!good) {
    error = program.error();
    return std::nullopt;
  }
  const auto nodes = static_cast<double>(dag->nodes.size());
  return PerNode{1e6 * passes.wall / nodes, 1e6 * verify.wall / nodes, dag->nodes.size()};
}

void BM_LargePlan(benchmark::State& state, const std::string& schedule, const std::string& large,
                  const std::string& small) {
  std::vector<double> passes, verify, ratio;
  for (auto _ : state) {
    std::string error;
    const std::optional<PerNode> quarter = measure_schedule(schedule, small, error);
    const std::optional<PerNode> whole =
        quarter ? measure_schedule(schedule, large, error) : std::nullopt;
    if (!whole) return state.SkipWithError(error.c_str());
    state.SetIterationTime(1e-6 * (whole->passes + whole->verify) *
                           static_cast<double>(whole->nodes));
    state.counters["nodes"] = static_cast<double>(whole->nodes);
    passes.push_back(whole->passes);
    verify.push_back(whole->verify);
    ratio.push_back((whole->passes + whole->verify) / (quarter->passes + quarter->verify));
  }
  state.counters["passes_us_per_node"] = median(passes);
  state.counters["verify_us_per_node"] = median(verify);
  state.counters["per_node_to_quarter"] = median(ratio);
}

/// The built DAG, which is small, is always verified; the plan only if a command reads it.
void BM_Verification(benchmark::State& state, const std::string& schedule,
                     const std::string& microbatches) {
  std::vector<double> passes, built, planned, built_ratio, planned_ratio;
  for (auto _ : state) {
    ScheduleProgram program(schedule, {{"p", "64"}, {"m", microbatches}});
    std::optional<dag::Dag> dag, at_built;
    at_built = program.compile(dag::Level::built);
    const Cost of_passes = measure([&] { dag = program.compile(); });
    bool good = dag && at_built;
    const Cost of_built =
        measure([&] { good = good && verify::verify(*at_built, program.sink()); });
    const Cost of_plan = measure([&] { good = good && verify::verify(*dag, program.sink()); });
    if (!good) return state.SkipWithError(program.error().c_str());
    state.SetIterationTime(of_passes.wall);
    passes.push_back(of_passes.cpu);
    built.push_back(of_built.cpu);
    planned.push_back(of_plan.cpu);
    built_ratio.push_back(of_built.cpu / of_passes.cpu);
    planned_ratio.push_back(of_plan.cpu / of_passes.cpu);
  }
  state.counters["passes_ms"] = 1e3 * median(passes);
  state.counters["verify_built_ms"] = 1e3 * median(built);
  state.counters["verify_plan_ms"] = 1e3 * median(planned);
  state.counters["built_to_passes"] = median(built_ratio);
  state.counters["plan_to_passes"] = median(planned_ratio);
}

BENCHMARK_CAPTURE(BM_Verification, one_f_one_b, std::string("one_f_one_b"), std::string("256"))
    ->Unit(benchmark::kMillisecond)
    ->UseManualTime()
    ->Iterations(11);
BENCHMARK_CAPTURE(BM_Verification, zbv, std::string("zbv"), std::string("256"))
    ->Unit(benchmark::kMillisecond)
    ->UseManualTime()
    ->Iterations(11);
BENCHMARK_CAPTURE(BM_LargePlan, one_f_one_b, std::string("one_f_one_b"), std::string("2620"),
                  std::string("655"))
    ->Unit(benchmark::kMillisecond)
    ->UseManualTime()
    ->Iterations(3);
BENCHMARK_CAPTURE(BM_LargePlan, zbv, std::string("zbv"), std::string("1120"), std::string("280"))
    ->Unit(benchmark::kMillisecond)
    ->UseManualTime()
    ->Iterations(3);

}  // namespace
}  // namespace piper::bench
