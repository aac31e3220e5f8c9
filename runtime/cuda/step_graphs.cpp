// Steps as graphs: the device gets a step of all ranks in one call.
#include <algorithm>
#include <utility>

#include "runtime/cuda/gpu.h"

namespace piper::runtime::cuda {

namespace {

bool signal_all(Gpu& gpu) {
  for (const auto& rank : gpu.ranks) {
    for (std::uint32_t q = 0; q < rank->streams.size(); ++q) {
      if (!gpu.signal(*rank, q)) return false;
    }
  }
  return true;
}

bool capture(Gpu& gpu, std::uint64_t parity, Graph& made,
             const std::function<bool(std::uint64_t step)>& enqueue) {
  const CudaStream origin = gpu.origin().cuda_stream;
  if (!gpu.done(gpu.driver->begin_capture(origin), "cuStreamBeginCapture")) return false;
  for (const auto& rank : gpu.ranks) {
    for (GpuStream& stream : rank->streams) stream.captured = stream.signalled = stream.calls = 0;
    for (std::vector<std::uint64_t>& recorded : rank->program().recorded) {
      for (std::size_t at = kEndSlots - 1; at < recorded.size(); at += kEndSlots) recorded[at] = 0;
    }
  }
  gpu.capturing = gpu.behind_steps = true;
  const bool whole = gpu.fork_streams() && enqueue(parity) && signal_all(gpu) && gpu.join_streams();
  gpu.capturing = gpu.behind_steps = false;
  Graph graph = nullptr;
  const Status ended = gpu.driver->end_capture(origin, &graph);
  if (!whole || !gpu.done(ended, "cuStreamEndCapture")) {
    // A library may have refused its call because the device has failed.
    const std::optional<Failure> refused = std::exchange(gpu.failure, std::nullopt);
    if (!gpu.device_failed()) gpu.failure = refused;
    return false;
  }
  made = graph;
  return true;
}

}  // namespace

void capture_steps(Gpu& gpu, const std::function<bool(std::uint64_t step)>& enqueue) {
  StepGraphs& graphs = gpu.graphs[static_cast<std::size_t>(gpu.phase)];
  Graph made[kStepsInFlight] = {};
  for (std::uint64_t parity = 0; parity < kStepsInFlight; ++parity) {
    if (capture(gpu, parity, made[parity], enqueue)) continue;
    graphs.refused = true;
    gpu.exchange->part();
    Failure warning = gpu.failure.value_or(Failure());
    // A failure of the device has nothing to do with graphs.
    if (warning.code == kCudaKernelFailed || warning.code == kStalled) return;
    gpu.failure.reset();
    warning.code = kCudaNotCaptured;
    warning.message = "a step cannot be captured as a graph: " + warning.message;
    warning.hint =
        "the run goes on without graphs, each action by calls of its own; `PIPER_CUDA_GRAPHS=0` does so from the start";
    gpu.warnings.push_back(std::move(warning));
    return;
  }
  std::copy(std::begin(made), std::end(made), std::begin(graphs.of));
  // Earlier work without graphs precedes the first graph.
  gpu.join_streams();
}

void Gpu::drop_graphs() {
  driver->drop_graphs();
  for (StepGraphs& each : graphs) each = {};
}

bool launch_step(Gpu& gpu, std::uint64_t step) {
  const CudaStream origin = gpu.origin().cuda_stream;
  if (!gpu.done(
          gpu.driver->launch_graph(
              origin, gpu.graphs[static_cast<std::size_t>(gpu.phase)].of[step % kStepsInFlight]),
          "cuGraphLaunch"))
    return false;
  for (const auto& rank : gpu.ranks) {
    const PiperProgram& program = *rank->active().program;
    for (std::uint32_t q = 0; q < program.num_streams; ++q)
      rank->streams[q].enqueued += program.streams[q].num_actions;
    if (!gpu.done(gpu.driver->record(rank->step_ends[step % kStepsInFlight], origin),
                  "cuEventRecord", rank.get()))
      return false;
  }
  return true;
}

}  // namespace piper::runtime::cuda
