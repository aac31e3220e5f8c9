// The cost of the executor itself: empty chunks on two devices, and messages between them. Goals:
// at most 2 us of CPU per action and 5 us per message.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "runtime/cpu/cpu_device.h"
#include "runtime/executor/executor.h"
#include "tests/runtime/hand_program.h"

namespace piper::runtime {
namespace {

constexpr std::uint64_t kSteps = 200;

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void run(benchmark::State& state, const PiperJob& job, double actions_per_step,
         double messages_per_step) {
  Failure failure;
  const auto executor = Executor::create(job, make_cpu_device(), {}, failure);
  if (!executor) return state.SkipWithError(describe(failure).c_str());
  double cpu = 0;
  for (auto _ : state) {
    const double before = cpu_seconds();
    const RunResult result = executor->run(Phase::training, kSteps);
    cpu += cpu_seconds() - before;
    if (result.failure) return state.SkipWithError(describe(*result.failure).c_str());
  }
  const double steps = static_cast<double>(state.iterations() * kSteps);
  state.counters["cpu_us_per_action"] =
      1e6 * cpu / (steps * (actions_per_step + messages_per_step));
  if (messages_per_step > 0)
    state.counters["cpu_us_per_message"] = 1e6 * cpu / (steps * messages_per_step);
}

// Chunks that nothing connects: begin, end, counters, flight record.
void BM_EmptyChunks(benchmark::State& state) {
  constexpr std::uint32_t kChunks = 200;
  HandJob job(2);
  for (std::uint32_t r = 0; r < 2; ++r) {
    for (std::uint32_t c = 0; c < kChunks; ++c)
      job.rank(r).compute("F", {}, [](Step&) { return 0; });
  }
  run(state, job.finish(), 2 * kChunks, 0);
}

// A pipeline of empty chunks: rank 0 sends each microbatch down, rank 1 sends it back; windows of
// two.
void BM_Pipeline(benchmark::State& state) {
  const std::uint32_t microbatches = 50;
  const std::uint64_t elements = static_cast<std::uint64_t>(state.range(0));
  HandJob job(2);
  const std::uint32_t down = job.pair(0, 1), up = job.pair(1, 0);
  HandProgram& a = job.rank(0);
  HandProgram& b = job.rank(1);
  std::uint64_t out[2], back[2], in[2], grad[2];
  for (int w = 0; w < 2; ++w) {
    out[w] = a.allocate<float>(elements);
    back[w] = a.allocate<float>(elements);
    in[w] = b.allocate<float>(elements);
    grad[w] = b.allocate<float>(elements);
  }
  const auto empty = [](Step&) { return 0; };
  std::vector<Spot> forward, sent, received, work, returned, got, backward;
  for (std::uint32_t mb = 0; mb < microbatches; ++mb) {
    const std::uint32_t w = mb % 2;
    forward.push_back(a.compute("F", {}, empty));
    sent.push_back(a.communicate("down", PIPER_SEND, down, mb,
                                 {HandProgram::part<float>(out[w], 0, elements)},
                                 {HandProgram::after(forward[mb])}));
    received.push_back(b.communicate("down", PIPER_RECV, down, mb,
                                     {HandProgram::part<float>(0, in[w], elements)}, {}));
    work.push_back(b.compute("FB", {HandProgram::after(received[mb])}, empty));
    returned.push_back(b.communicate("up", PIPER_SEND, up, mb,
                                     {HandProgram::part<float>(grad[w], 0, elements)},
                                     {HandProgram::after(work[mb])}));
    got.push_back(a.communicate("up", PIPER_RECV, up, mb,
                                {HandProgram::part<float>(0, back[w], elements)}, {}));
    if (mb >= 2) backward.push_back(a.compute("B", {HandProgram::after(got[mb - 2])}, empty));
  }
  for (std::uint32_t mb = microbatches - 2; mb < microbatches; ++mb)
    backward.push_back(a.compute("B", {HandProgram::after(got[mb])}, empty));
  for (std::uint32_t mb = 0; mb < microbatches; ++mb) {
    const std::uint32_t before = (mb + microbatches - 2) % microbatches, distance = mb < 2;
    a.add_wait(forward[mb], HandProgram::after(sent[before], distance));
    b.add_wait(received[mb], HandProgram::after(work[before], distance));
    b.add_wait(work[mb], HandProgram::after(returned[before], distance));
    a.add_wait(got[mb], HandProgram::after(backward[before], distance));
  }
  run(state, job.finish(), 3 * microbatches, 2 * microbatches);
}

// One all_reduce of a bucket over four ranks: the bytes that the progress thread sums per second.
void BM_AllReduce(benchmark::State& state) {
  const std::uint64_t elements = static_cast<std::uint64_t>(state.range(0));
  HandJob job(4);
  const std::uint32_t group = job.group({0, 1, 2, 3});
  for (std::uint32_t r = 0; r < 4; ++r) {
    HandProgram& program = job.rank(r);
    const std::uint64_t x = program.allocate<float>(elements);
    const Spot make = program.compute("B", {}, [](Step&) { return 0; });
    const Spot reduced =
        program.communicate("grads", PIPER_ALL_REDUCE, group, 1,
                            {HandProgram::part<float>(x, x, elements)}, {HandProgram::after(make)});
    program.compute("update", {HandProgram::after(reduced)}, [](Step&) { return 0; });
  }
  run(state, job.finish(), 8, 1);
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * kSteps * elements * 4));
}

BENCHMARK(BM_EmptyChunks)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(BM_Pipeline)->Arg(16)->Arg(65536)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(BM_AllReduce)->Arg(1024)->Arg(1 << 20)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace piper::runtime
