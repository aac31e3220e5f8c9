// The cost of the just-in-time build with an empty cache and with a filled one: for the demo's
// programs, and for one role with a step of 3,000 actions.
#include <benchmark/benchmark.h>

#include "backend/device_program/device_program.h"
#include "backend/emit_cpp/emit_program.h"
#include "backend/jit/jit.h"
#include "tests/bench/demo_program.h"
#include "tests/bench/schedule_program.h"

namespace piper::bench {
namespace {

/// The sources of the training and the held-out program of every role; empty on an error.
std::vector<backend::ProgramSource> demo_sources(DemoProgram& demo) {
  std::vector<backend::ProgramSource> sources;
  if (!demo.open()) return {};
  for (const bool held_out : {false, true}) {
    const auto dag = demo.session().compile(demo.subject(), dag::Level::planned, held_out);
    if (!dag) return {};
    const backend::ProgramSet set = backend::make_programs(*dag);
    for (const backend::DeviceProgram& program : set.roles) {
      sources.push_back({(held_out ? "held_out." : "") + program.role,
                         backend::emit_program(program, set.bodies)});
    }
  }
  return sources;
}

/// Builds and loads all; closes them outside the measured time.
bool build(const std::vector<backend::ProgramSource>& sources, const std::string& cache,
           DiagnosticSink& sink, Cost& cost) {
  std::vector<backend::LoadedProgram> loaded;
  backend::Built built = backend::Built::failed;
  cost = measure(
      [&] { built = backend::build_programs(sources, {.cache_folder = cache}, loaded, sink); });
  return built == backend::Built::done;
}

/// Both builds of every iteration, and their counters.
void run_builds(benchmark::State& state, const std::vector<backend::ProgramSource>& sources,
                DiagnosticSink& sink) {
  std::size_t bytes = 0;
  for (const backend::ProgramSource& source : sources) bytes += source.text.size();
  std::vector<double> cold_wall, cold_cpu, warm_wall, ratio;
  for (auto _ : state) {
    const ScratchFolder cache;
    Cost cold, warm;
    if (!build(sources, cache.path(), sink, cold) || !build(sources, cache.path(), sink, warm))
      return state.SkipWithError("the programs were not built");
    state.SetIterationTime(cold.wall);
    cold_wall.push_back(cold.wall);
    cold_cpu.push_back(cold.cpu);
    warm_wall.push_back(warm.wall);
    ratio.push_back(cold.wall / warm.wall);
  }
  state.counters["programs"] = static_cast<double>(sources.size());
  state.counters["source_bytes"] = static_cast<double>(bytes);
  state.counters["cold_wall_ms"] = 1e3 * median(cold_wall);
  state.counters["cold_cpu_ms"] = 1e3 * median(cold_cpu);
  state.counters["warm_wall_ms"] = 1e3 * median(warm_wall);
  state.counters["cold_to_warm"] = median(ratio);
}

void BM_JitBuild(benchmark::State& state) {
  DemoProgram demo;
  const std::vector<backend::ProgramSource> sources = demo_sources(demo);
  if (sources.empty()) return state.SkipWithError(demo.error().c_str());
  run_builds(state, sources, demo.session().sink());
}

/// Goal: below 0.7 s cold.
void BM_JitLongStep(benchmark::State& state) {
  ScheduleProgram schedule("one_f_one_b", {{"p", "4"}, {"m", "500"}});
  const std::optional<dag::Dag> dag = schedule.compile();
  if (!dag) return state.SkipWithError(schedule.error().c_str());
  const backend::ProgramSet set = backend::make_programs(*dag);
  const backend::DeviceProgram& role = set.roles[1];
  state.counters["actions"] = static_cast<double>(role.instructions.size());
  run_builds(state, {{role.role, backend::emit_program(role, set.bodies)}}, schedule.sink());
}

BENCHMARK(BM_JitBuild)->Unit(benchmark::kMillisecond)->UseManualTime()->Iterations(3);
BENCHMARK(BM_JitLongStep)->Unit(benchmark::kMillisecond)->UseManualTime()->Iterations(5);

}  // namespace
}  // namespace piper::bench
