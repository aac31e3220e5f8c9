// The cost of `piper check` of a large schedule as a whole process, beside the start of the same
// program with next to nothing to do. Goal: at most 0.1 s for 64 ranks and 256 microbatches.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/bench/measure.h"

namespace piper::bench {
namespace {

/// The program of this build lies beside this one.
std::string piper_path() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "piper").string();
}

void BM_CheckProcess(benchmark::State& state, const std::string& schedule) {
  const std::vector<std::string> check{piper_path(), "check", schedule, "-D",
                                       "p=64",       "-D",    "m=256"};
  const std::vector<std::string> start{piper_path(), "explain", "P1010"};
  std::vector<double> wall, user, start_wall, wall_ratio, cpu_ratio;
  measure_process(start);  // the program's pages are in memory from here on
  for (auto _ : state) {
    // Side by side, so that load on the machine falls on both.
    const ProcessRun base = measure_process(start), run = measure_process(check);
    if (!base.ok || !run.ok)
      return state.SkipWithError(
          "`piper` did not run: build the target `piper` of this preset, and see what `piper check` says");
    state.SetIterationTime(run.cost.wall);
    wall.push_back(run.cost.wall);
    user.push_back(run.user);
    start_wall.push_back(base.cost.wall);
    wall_ratio.push_back(run.cost.wall / base.cost.wall);
    cpu_ratio.push_back(run.cost.cpu / base.cost.cpu);
  }
  state.counters["wall_ms"] = 1e3 * median(wall);
  state.counters["user_ms"] = 1e3 * median(user);
  state.counters["start_wall_ms"] = 1e3 * median(start_wall);
  state.counters["wall_ratio_to_start"] = median(wall_ratio);
  state.counters["cpu_ratio_to_start"] = median(cpu_ratio);
}

BENCHMARK_CAPTURE(BM_CheckProcess, one_f_one_b, std::string("one_f_one_b"))
    ->Unit(benchmark::kMillisecond)
    ->UseManualTime()
    ->Iterations(15);
BENCHMARK_CAPTURE(BM_CheckProcess, zbv, std::string("zbv"))
    ->Unit(benchmark::kMillisecond)
    ->UseManualTime()
    ->Iterations(15);

/// One stage of many layers is one body, whose operations are all in one graph. From one row to the
/// next the work doubles.
void BM_CheckLayers(benchmark::State& state) {
  const std::string file =
      (std::filesystem::temp_directory_path() / "piper_bench_layers.pipe").string();
  std::ofstream(file)
      << "use std.models.mlp\nparam layers = 1\nmesh one(p: 1)\ntrain deep = mlp(layers: layers, features: 4, hidden: 8, classes: 4) on one {\n"
         "data: synthetic(batch: 4, classes: 4); optim: sgd(lr: 0.1); steps: 1 }\n";
  for (auto _ : state) {
    const ProcessRun run = measure_process(
        {piper_path(), "check", file, "-D", "layers=" + std::to_string(state.range(0))});
    if (!run.ok) return state.SkipWithError("`piper check` failed");
    state.SetIterationTime(run.cost.cpu);
  }
  std::filesystem::remove(file);
}

/// State that is cut on a large cluster: a GPT of 61 blocks in 8 stages of 256 replicas each. Nodes
/// grow with roles and microbatches, not with ranks.
void BM_CheckZero3(benchmark::State& state) {
  const std::string file =
      (std::filesystem::temp_directory_path() / "piper_bench_zero3.pipe").string();
  std::ofstream(file)
      << "use std.models.gpt\nuse std.schedules.one_f_one_b\nmesh cluster(pp: 8, dp: 256)\n"
         "param m = 64\n"
         "train large = gpt(layers: 61, dim: 64, heads: 4, vocab: 128) on cluster {\n"
         "data: synthetic(batch: 256 * m, seq: 16, classes: 128); optim: adamw(lr: 1e-3); steps: 1\n"
         "one_f_one_b(pp, m); replicate model over dp with zero: 3, prefetch: 1 }\n";
  std::vector<double> wall, user;
  for (auto _ : state) {
    const ProcessRun run =
        measure_process({piper_path(), "check", file, "-D", "m=" + std::to_string(state.range(0))});
    if (!run.ok) return state.SkipWithError("`piper check` failed");
    state.SetIterationTime(run.cost.wall);
    wall.push_back(run.cost.wall);
    user.push_back(run.user);
  }
  state.counters["wall_ms"] = 1e3 * median(wall);
  state.counters["user_ms"] = 1e3 * median(user);
  std::filesystem::remove(file);
}

BENCHMARK(BM_CheckZero3)
    ->Arg(64)
    ->Arg(512)
    ->Unit(benchmark::kMillisecond)
    ->UseManualTime()
    ->Iterations(3);
BENCHMARK(BM_CheckLayers)
    ->Arg(1000)
    ->Arg(2000)
    ->Arg(4000)
    ->Unit(benchmark::kMillisecond)
    ->UseManualTime()
    ->Iterations(3);

}  // namespace
}  // namespace piper::bench
