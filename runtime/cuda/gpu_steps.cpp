#include "runtime/cuda/gpu_steps.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "runtime/device/state.h"
#include "runtime/dtypes.h"

namespace piper::runtime::cuda {

namespace {

constexpr std::uint64_t kDrawBytes = 2 * sizeof(std::uint64_t);  // seed and step

}  // namespace

GpuSteps::GpuSteps(Gpu& gpu) : gpu_(gpu), driver_(*gpu.driver) {
  put_in_one_order(Phase::training);
  if (gpu.job.ranks[0].evaluation != nullptr) put_in_one_order(Phase::evaluation);
}

void GpuSteps::put_in_one_order(Phase phase) {
  struct Place {
    std::uint32_t place = 0, rank = 0, action = 0;
  };
  std::vector<Place> places;
  for (const auto& rank : gpu_.ranks) {
    const PiperEnqueue& role = *rank->programs[static_cast<std::size_t>(phase)].role;
    for (std::uint32_t a = 0; a < role.num_actions; ++a)
      places.push_back({role.places[a], static_cast<std::uint32_t>(rank->index), a});
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return std::tie(a.place, a.rank, a.action) < std::tie(b.place, b.rank, b.action);
  });
  std::vector<StepRange>& ranges = pieces_[static_cast<std::size_t>(phase)];
  for (const Place& each : places) {
    GpuRank* const rank = gpu_.ranks[each.rank].get();
    if (!ranges.empty() && ranges.back().rank == rank && ranges.back().last == each.action) {
      ++ranges.back().last;
    } else {
      ranges.push_back({rank, each.action, each.action + 1});
    }
  }
}

void GpuSteps::begin_run(const DeviceRun& run) {
  gpu_.phase = run.phase;
  gpu_.first_step = run.first_step;
  gpu_.data = run.data;
  timed_step_ = run.record ? run.steps : 0;
  for (const auto& rank : gpu_.ranks) {
    rank->flight.begin_program(*rank->active().program);
    for (GpuStream& stream : rank->streams) {
      *stream.progress = 0;
      stream.graph_start = *stream.graph_progress;
      stream.enqueued = stream.single = 0;
      stream.in_comm = false;
    }
    for (std::vector<std::uint64_t>& recorded : rank->program().recorded)
      std::fill(recorded.begin(), recorded.end(), 0);
  }
}

// ---- enqueued

bool GpuSteps::enqueue(std::uint64_t step) {
  StepGraphs& graphs = gpu_.graphs[static_cast<std::size_t>(gpu_.phase)];
  // The first steps show failures action by action, and load code that the driver loads late.
  if (gpu_.options.cuda_graphs && !graphs.ready() && !graphs.refused && step >= kStepsInFlight) {
    capture_steps(gpu_, [&](std::uint64_t parity) { return enqueue_actions(parity); });
  }
  if (gpu_.failure) return false;
  for (const auto& rank : gpu_.ranks) {
    if (!stage(*rank, step)) return false;
  }
  const bool timed = step + 1 == timed_step_, in_graph = graphs.ready() && !timed;
  gpu_.in_graph[step % kStepsInFlight] = in_graph;
  if (in_graph) return launch_step(gpu_, step);
  if (timed && !gpu_.times.begin()) return false;
  gpu_.behind_steps = timed;
  const bool enqueued = enqueue_actions(step);
  gpu_.behind_steps = false;
  gpu_.times.end();
  if (!enqueued) return false;
  for (const auto& rank : gpu_.ranks) {
    if (!gpu_.done(driver_.record(rank->step_ends[step % kStepsInFlight],
                                  rank->streams.front().cuda_stream),
                   "cuEventRecord", rank.get()))
      return false;
  }
  return true;
}

/// Enqueues all work of the device in a step. `stage` prepares the data that the host provides for
/// it.
bool GpuSteps::enqueue_actions(std::uint64_t step) {
  for (const auto& rank : gpu_.ranks) {
    if (!begin_step(*rank, step)) return false;
  }
  for (const StepRange& range : pieces_[static_cast<std::size_t>(gpu_.phase)]) {
    const PiperEnqueue& role = *range.rank->program().role;
    if (role.enqueue(&role, &range.rank->device, &range.rank->active(), range.first, range.last) ==
        0)
      continue;
    if (!gpu_.failure)
      gpu_.fail_at(*range.rank, range.first, kActionFailed,
                   "the enqueuing function failed and gave no reason");
    return false;
  }
  return true;
}

/// Fills the host memory that the step reads: the key of random numbers, the scalars of the update,
/// data. Clears the memory that the step writes. False after a failure.
bool GpuSteps::stage(GpuRank& rank, std::uint64_t step) {
  PiperRank& active = rank.active();
  active.step = step;
  active.global_step = gpu_.first_step + step;
  active.flight->step = active.global_step;
  unsigned char* const staging = rank.step_staging(step);
  std::memset(staging + rank.staged_findings, 0,
              rank.program().scan->checks.size() * sizeof(Finding));
  const std::uint64_t draw[] = {gpu_.job.seed, active.global_step};
  static_assert(sizeof draw == kDrawBytes);
  std::memcpy(staging + GpuRank::kStagedDraw, draw, sizeof draw);
  if (gpu_.phase == Phase::training) {
    const PiperScalars scalars = scalars_of_step(gpu_.job.optimizer, active.global_step);
    std::memcpy(staging + GpuRank::kStagedScalars, &scalars, sizeof scalars);
  }
  for (const ScannedLoad& load : rank.program().loads) {
    auto failure = gpu_.data->load(load.input, active.global_step, load.first, load.samples,
                                   staging + rank.staged_at(load));
    if (!failure) continue;
    gpu_.fail_at(rank, load.action, failure->code, std::move(failure->message),
                 std::move(failure->hint), &data_line(gpu_.job, gpu_.phase));
    return false;
  }
  return true;
}

/// Brings the step's data to the device in one copy.
bool GpuSteps::begin_step(GpuRank& rank, std::uint64_t step) {
  rank.active().step = step;
  rank.next_load = rank.next_check = rank.next_report = 0;
  const CudaStream cuda_stream = rank.streams.front().cuda_stream;
  if (!gpu_.done(
          driver_.copy(cuda_stream, rank.carried, rank.step_staging(step), rank.staged_loads),
          "cuMemcpyAsync", &rank))
    return false;
  return gpu_.phase != Phase::training ||
         gpu_.done(
             gpu_.move(cuda_stream, rank.carried + GpuRank::kStagedScalars,
                       rank.arena + rank.active().program->scalars_offset, sizeof(PiperScalars)),
             "cuLaunchKernel", &rank);
}

// ---- read back

bool GpuSteps::take_in(std::uint64_t step) {
  for (const auto& rank : gpu_.ranks) {
    if (!gpu_.wait_for(rank->step_ends[step % kStepsInFlight])) return false;
  }
  if (auto lost = gpu_.exchange->lost()) {
    gpu_.failure = failure_of_others(gpu_, std::move(*lost));
    return false;
  }
  for (const auto& rank : gpu_.ranks) {
    if (!look_at_checks(*rank, step)) return false;
  }
  for (const auto& rank : gpu_.ranks) {
    if (!keep_reports(*rank, step)) return false;
    for (std::uint32_t q = 0; q < rank->active().program->num_streams; ++q)
      rank->flight.record()->started[q] = rank->flight.record()->ended[q] =
          rank->streams[q].ended();
  }
  return true;
}

void GpuSteps::look(std::uint64_t step) {
  const GpuRank& rank = *gpu_.ranks.front();
  const Status status = driver_.query(rank.step_ends[step % kStepsInFlight]);
  if (status != kNotReady) gpu_.done(status, "cuEventQuery", &rank);
}

/// Fails at the first of all checks that found an index out of range.
bool GpuSteps::look_at_checks(const GpuRank& rank, std::uint64_t step) {
  const auto* findings =
      reinterpret_cast<const Finding*>(rank.step_staging(step) + rank.staged_findings);
  const std::vector<ScannedCheck>& checks =
      rank.programs[static_cast<std::size_t>(gpu_.phase)].scan->checks;
  for (std::size_t c = 0; c < checks.size(); ++c) {
    if (findings[c].found == 0) continue;
    gpu_.fail_at(
        rank, checks[c].action, kActionFailed,
        std::string(checks[c].check->message) + ": `" + std::to_string(findings[c].value) + "`", {},
        &checks[c].check->where);
    gpu_.failure->step = gpu_.first_step + step;
    gpu_.failure->refused = findings[c].value;
    return false;
  }
  return true;
}

bool GpuSteps::keep_reports(GpuRank& rank, std::uint64_t step) {
  rank.reports.clear(step);
  const unsigned char* const staged = rank.step_staging(step) + rank.staged_reports;
  for (const ScannedReport& report : rank.program().scan->reports) {
    values_.clear();
    for (std::uint32_t i = 0; i < report.count; ++i) {
      const unsigned char* const from = staged + report.offset + 8 * i;
      values_.push_back(element_as_double(
          from, report.counted && i + 1 == report.count ? std::uint32_t{PIPER_F64} : report.dtype,
          0));
    }
    auto failure = rank.reports.keep(gpu_.job, gpu_.phase, step, gpu_.first_step + step,
                                     report.subject, values_.data(), report.count);
    if (!failure) continue;
    gpu_.fail_at(rank, report.action, failure->code, std::move(failure->message),
                 std::move(failure->hint));
    gpu_.failure->step = gpu_.first_step + step;
    return false;
  }
  return true;
}

}  // namespace piper::runtime::cuda
