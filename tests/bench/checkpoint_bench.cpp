// The time for which training waits for a checkpoint; and saving and loading 1 GB beside `cp` and
// `torch.distributed.checkpoint` of the same tensors.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "frontend/tools/train_job.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/checkpoint_writer.h"
#include "runtime/checkpoint/json.h"
#include "runtime/checkpoint/run_facts.h"
#include "tests/bench/demo_program.h"
#include "tests/bench/measure.h"
#include "tests/runtime/state_job.h"

namespace piper::bench {
namespace {

constexpr double kMs = 1e3;

// ---- the stall of the demo

/// The demo's train with a writer of checkpoints.
class Stall {
 public:
  static constexpr std::uint64_t kSteps = 4;  // a turn; the checkpoint is on disk before they end

  bool open() {
    if (demo_.open()) {
      auto options = tools::prepare_train(demo_.session(), demo_.subject());
      if (options)
        job_ =
            tools::make_train_job(demo_.session(), demo_.subject(), false, *options, "", nullptr);
    }
    if (!job_) {
      error = demo_.error();
      return false;
    }
    const runtime::Executor& executor = *job_->executor;
    const runtime::StateMemory memory = executor.state_memory();
    writer_.emplace(memory, runtime::CheckpointOptions{
                                .out_folder = folder_.path(),
                                .keep = 1,
                                .run = runtime::facts_of(memory, executor.data_identity())});
    // The first turn touches all memory, the copy too, and starts all threads.
    double plain = 0, with_one = 0, copied = 0;
    return turn(plain, with_one, copied);
  }

  /// Seconds of kSteps steps without a checkpoint and with one that is begun before them, and of
  /// the call that begins it. False: `error` says why.
  bool turn(double& plain, double& with_one, double& copied) {
    plain = measure([&] { run(); }).wall;
    with_one = measure([&] {
                 copied = measure([&] { keep(writer_->save(job_->executor->next_step())); }).wall;
                 run();
               }).wall;
    keep(writer_->finish());
    return error.empty();
  }

  std::string error;

 private:
  void keep(const std::optional<runtime::Failure>& failure) {
    if (failure && error.empty()) error = runtime::describe(*failure);
  }
  void run() {
    keep(job_->executor
             ->run(runtime::Phase::training, kSteps,
                   [](const runtime::StepRecord&) { return std::nullopt; })
             .failure);
  }

  DemoProgram demo_;
  const ScratchFolder folder_;
  std::unique_ptr<tools::TrainJob> job_;
  std::optional<runtime::CheckpointWriter> writer_;
};

void BM_CheckpointStall(benchmark::State& state) {
  Stall stall;
  if (!stall.open()) return state.SkipWithError(stall.error.c_str());
  std::vector<double> steps, waits, copies, ratios;
  for (auto _ : state) {
    double plain = 0, with_one = 0, copied = 0;
    if (!stall.turn(plain, with_one, copied)) return state.SkipWithError(stall.error.c_str());
    state.SetIterationTime(with_one);
    const double step = plain / static_cast<double>(Stall::kSteps);
    steps.push_back(step);
    waits.push_back(with_one - plain);
    copies.push_back(copied);
    ratios.push_back((with_one - plain) / (100 * step));
  }
  state.counters["step_ms"] = kMs * median(steps);
  state.counters["copy_ms"] = kMs * median(copies);
  state.counters["stall_ms"] = kMs * median(waits);
  state.counters["stall_ratio_to_100_steps"] = median(ratios);
}

BENCHMARK(BM_CheckpointStall)->Unit(benchmark::kMillisecond)->UseManualTime()->Iterations(9);

// ---- 1 GB

/// The number of a line `VmHWM:   1234 kB` of /proc/self/status, in bytes.
double status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  std::string word;
  double kilobytes = 0;
  while (status >> word) {
    if (word == name + ":" && status >> kilobytes) break;
  }
  return 1024 * kilobytes;
}

/// Wall time, and the growth of resident memory at its peak.
struct Used {
  double seconds = 0, bytes = 0;
};
Used used_by(const std::function<void()>& work) {
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak begins anew
  const double before = status_bytes("VmRSS");
  const double seconds = measure(work).wall;
  return {seconds, std::max(0.0, status_bytes("VmHWM") - before)};
}

/// Eight parameters of f32 with the two tensors of AdamW, on one rank.
std::vector<runtime::StateParam> model() {
  std::vector<runtime::StateParam> params;
  for (int i = 0; i < 8; ++i)
    params.push_back({.name = "w" + std::to_string(i), .dims = {3344, 3344}, .slots = 2});
  return params;
}

/// Different bytes everywhere, so that nothing can leave out or compress pages.
void fill(runtime::StateJob& job) {
  const PiperProgram& program = *job.ranks()[0].program;
  std::uint64_t word = 1;
  for (std::uint32_t p = 0; p < program.num_params; ++p) {
    const PiperParam& param = program.params[p];
    for (const std::uint64_t offset :
         {param.offset, param.slot_offsets[0], param.slot_offsets[1]}) {
      unsigned char* const to = job.at(0, false, offset);
      for (std::uint64_t at = 0; at + sizeof word <= 4 * param.elements; at += sizeof word) {
        word = word * 6364136223846793005u + 1442695040888963407u;
        std::memcpy(to + at, &word, sizeof word);
      }
    }
  }
}

/// The numbers that `torch_checkpoint.py` writes; nothing if `python3` has no torch.
struct TorchUse {
  Used save, load;
};
std::optional<TorchUse> torch_use(const std::string& checkpoint, const std::string& scratch) {
  const std::string result = scratch + "/torch.json";
  const ProcessRun run =
      measure_process({"/usr/bin/env", "python3", "-B", "tests/bench/torch_checkpoint.py",
                       checkpoint, scratch + "/torch", result});
  if (!run.ok) return std::nullopt;
  std::stringstream text;
  text << std::ifstream(result).rdbuf();
  std::string error;
  const auto value = runtime::parse_json(text.str(), error);
  const auto number = [&](const char* name) {
    const runtime::JsonValue* const found = value ? value->find(name) : nullptr;
    const auto count = found != nullptr ? found->as_unsigned() : std::nullopt;
    return static_cast<double>(count.value_or(0));
  };
  return TorchUse{{1e-6 * number("save_us"), number("save_bytes")},
                  {1e-6 * number("load_us"), number("load_bytes")}};
}

/// All values of a run, by the names of counters.
using Figures = std::map<std::string, std::vector<double>>;

/// Saves, copies and loads once; empty, or the reason of a failure.
std::string turn_of(runtime::StateJob& job, Figures& figures) {
  const ScratchFolder scratch;
  const std::string saved = scratch.path() + "/step-1", copied = scratch.path() + "/copied";
  std::optional<runtime::Failure> failure;
  const runtime::StateMemory memory = job.memory();
  const runtime::Manifest facts = runtime::facts_of(memory, "none");
  const Used save = used_by([&] {
    runtime::CheckpointWriter writer(memory, {.out_folder = scratch.path(), .run = facts});
    failure = writer.save(1);
    if (!failure) failure = writer.finish();
  });
  if (failure) return runtime::describe(*failure);
  double bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(saved))
    bytes += static_cast<double>(entry.file_size());
  const ProcessRun copy =
      measure_process({"/bin/sh", "-c", "cp -r \"$0\" \"$1\" && sync \"$1\"/*", saved, copied});
  if (!copy.ok) return "`cp` failed";
  const Used load = used_by([&] {
    runtime::Failure unreadable;
    const auto checkpoint = runtime::Checkpoint::open(saved, unreadable);
    failure = checkpoint ? checkpoint->load(memory, runtime::Restored::all) : unreadable;
  });
  if (failure) return runtime::describe(*failure);
  figures["save_s"].push_back(save.seconds);
  figures["load_s"].push_back(load.seconds);
  figures["cp_s"].push_back(copy.cost.wall);
  figures["save_ratio_to_cp"].push_back(save.seconds / copy.cost.wall);
  figures["load_ratio_to_cp"].push_back(load.seconds / copy.cost.wall);
  figures["save_memory_ratio_to_state"].push_back(save.bytes / bytes);
  figures["load_memory_ratio_to_state"].push_back(load.bytes / bytes);
  if (const auto torch = torch_use(saved, scratch.path())) {
    figures["save_ratio_to_torch"].push_back(save.seconds / torch->save.seconds);
    figures["load_ratio_to_torch"].push_back(load.seconds / torch->load.seconds);
    figures["torch_save_memory_ratio_to_state"].push_back(torch->save.bytes / bytes);
    figures["torch_load_memory_ratio_to_state"].push_back(torch->load.bytes / bytes);
  }
  return {};
}

void BM_CheckpointOf1GB(benchmark::State& state) {
  runtime::StateJob job(model());
  fill(job);
  Figures figures;
  for (auto _ : state) {
    const std::string error = turn_of(job, figures);
    if (!error.empty()) return state.SkipWithError(error.c_str());
    state.SetIterationTime(figures["save_s"].back());
  }
  for (const auto& [name, values] : figures) state.counters[name] = median(values);
  if (!figures.contains("save_ratio_to_torch")) state.SetLabel("python3 has no torch");
}

BENCHMARK(BM_CheckpointOf1GB)->Unit(benchmark::kMillisecond)->UseManualTime()->Iterations(5);

}  // namespace
}  // namespace piper::bench
