#include "runtime/executor/executor.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <chrono>
#include <limits>
#include <new>
#include <system_error>
#include <thread>

#include "runtime/cpu/device_limit.h"
#include "runtime/cpu/progress.h"
#include "runtime/cpu/run_state.h"
#include "runtime/device/idle_time.h"
#include "runtime/executor/check_tables.h"
#include "runtime/executor/parameters.h"
#include "runtime/executor/step_reports.h"
#include "runtime/trace/stuck.h"
#include "runtime/transport/local.h"

namespace piper::runtime {

namespace {

struct Parts {
  const PiperJob* job = nullptr;
  ExecutorOptions options;
  std::vector<std::unique_ptr<LocalRank>> ranks;
  std::shared_ptr<Transport> transport;
  std::unique_ptr<LibrarySwitch> library;
  std::unique_ptr<StepData> data[2];  // by Phase
  std::uint64_t next_step = 0;
  std::uint32_t always = 1;  // PiperRank::sleepers where every action is to be held up, or recorded
  std::uint64_t recorded_steps = 0;  // of the last run of training
  std::optional<Failure> failed;
};

constexpr std::int64_t kTickNs = 20'000'000;

Failure out_of_memory(std::uint32_t rank, std::uint64_t bytes) {
  return {.code = kOutOfMemory,
          .message = "no memory for the arena of `" + std::to_string(bytes) + "` bytes",
          .hint = "smaller microbatches, more stages or `replicate` need less per device",
          .rank = rank};
}

Failure no_more_threads(std::size_t ranks) {
  return {.code = kOutOfMemory,
          .message = "the system gives no more threads: a device is a thread here, and there are `" + std::to_string(ranks) + "`",
          .hint = "train on fewer devices, or raise the limits on threads and mappings (`ulimit -u`, `vm.max_map_count`)"};
}

// Tables, counters and flight record of one rank; its arena is allocated but not initialised.
std::optional<Failure> prepare_rank(const PiperJob& job, const ExecutorOptions& options, const PiperJobRank& source, LocalRank& rank) {
  rank.job = &source;
  std::uint64_t arena_bytes = source.program->arena_bytes;
  std::uint64_t host_bytes = source.program->host_bytes;
  std::uint32_t streams = source.program->num_streams;
  if (source.evaluation) {
    arena_bytes = std::max(arena_bytes, source.evaluation->arena_bytes);
    host_bytes = std::max(host_bytes, source.evaluation->host_bytes);
    streams = std::max(streams, source.evaluation->num_streams);
  }
  if (!rank.arena.allocate(arena_bytes, options.runtime)) return out_of_memory(source.rank, arena_bytes);
  if (host_bytes > 0 && !rank.host.allocate(host_bytes, options.runtime)) return out_of_memory(source.rank, host_bytes);
  constexpr std::size_t kLine = PIPER_COUNTER_STRIDE;
  rank.counter_storage.assign((streams + 1) * kLine, 0);
  const std::uintptr_t start = reinterpret_cast<std::uintptr_t>(rank.counter_storage.data());
  rank.counters = rank.counter_storage.data() + (64 - start % 64) % 64 / sizeof(std::uint64_t);
  if (auto failure = rank.flight.open(flight_path(options.out_folder, source.rank), source.rank)) return failure;
  rank.reports.prepare(job);
  for (const Phase phase : {Phase::training, Phase::evaluation}) {
    PiperRank& out = rank.ranks[static_cast<std::size_t>(phase)];
    out = in_phase(source, phase);
    out.arena = rank.arena.base();
    out.host = rank.host.base();
    out.seed = job.seed;
    out.completed = rank.counters;
    out.flight = rank.flight.record();
    out.runtime = &rank;
    out.now_ns = executor_api().now_ns;
  }
  return std::nullopt;
}

/// The arenas' pages and the first values of all ranks, on as many threads as the machine has cores.
template <typename Stopped>
void initialise(const PiperJob& job, std::span<const std::unique_ptr<LocalRank>> ranks, const Stopped& stopped) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t r; (r = next.fetch_add(1)) < ranks.size() && !stopped();) {
      ranks[r]->arena.touch();
      ranks[r]->host.touch();
      if (ranks[r]->job->program->host_state_bytes > 0) std::memset(ranks[r]->host.base(), 0, ranks[r]->job->program->host_state_bytes);
      initialise_parameters(*ranks[r]->job->program, job.seed, ranks[r]->job->replica, ranks[r]->arena.base(), ranks[r]->host.base());
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 1; i < std::min<std::size_t>(ranks.size(), std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
  work();
}

std::vector<StuckRank> snapshot(const RunState& run) {
  std::vector<StuckRank> ranks;
  for (LocalRank* rank : run.ranks) {
    const PiperRank& active = rank->active();
    ranks.push_back({active.program, active.communicators, rank->job->rank, snapshot_of(*rank->flight.record())});
  }
  return ranks;
}

// The thread that called `run`: takes reports, looks for stalls and stops, until all others have ended their work.
class Supervisor {
 public:
  /// Before any step begins: a stop asked for earlier holds for all of them.
  Supervisor(RunState& run, const std::atomic<bool>& stop, const OnStep& on_step)
      : run_(run), stop_(stop), on_step_(on_step), reports_(*run.job, run.phase, run.first_step, run.steps) {
    for (const LocalRank* rank : run.ranks) slots_.push_back(&rank->reports);
    obey_stop();
  }

  /// Whether the step that the ranks are in is the last one.
  bool obey_stop() {
    if ((stop_.load() || callback_failure_) && !(run_.gate.load() & RunState::kFrozen)) run_.gate.fetch_or(RunState::kFrozen);
    return (run_.gate.load() & RunState::kFrozen) != 0;
  }

  void watch() {
    while (!run_.cancelled.load() && !(run_.devices_done.load() && run_.engine_done.load())) {
      const std::uint32_t key = run_.main_sleep.announce();
      const bool changed = look();
      if (changed) {
        run_.main_sleep.withdraw();
      } else {
        run_.main_sleep.commit(key, kTickNs);
      }
    }
    if (!run_.cancelled.load()) take_reports();
  }

 private:
  bool look() {
    bool changed = take_reports();
    obey_stop();
    if (!run_.devices_done.load() && run_.devices_running.load() == 0) {
      run_.devices_done.store(true);
      run_.engine->sleep().wake();
      changed = true;
    }
    look_for_stall(changed);
    return changed || run_.cancelled.load() || (run_.devices_done.load() && run_.engine_done.load());
  }

  bool take_reports() {
    std::uint64_t ended = std::numeric_limits<std::uint64_t>::max();
    for (const LocalRank* rank : run_.ranks) ended = std::min(ended, rank->ended_steps.load());
    const std::uint64_t first = run_.consumed.load();
    for (std::uint64_t step = first; step < ended; ++step) {
      const StepRecord& record = reports_.take(step, slots_);
      if (on_step_ && !callback_failure_) callback_failure_ = on_step_(record);
      run_.consumed.store(step + 1);
      for (LocalRank* rank : run_.ranks) rank->sleep.wake();
    }
    return ended != first;
  }

  void look_for_stall(bool changed) {
    if (run_.options.stall_seconds <= 0) return;
    std::uint64_t moved = run_.begun_steps();
    for (LocalRank* rank : run_.ranks) {
      const std::uint32_t streams = rank->active().program->num_streams;
      for (std::uint32_t s = 0; s < streams; ++s) moved += __atomic_load_n(&rank->counters[s * PIPER_COUNTER_STRIDE], __ATOMIC_RELAXED);
    }
    const std::chrono::duration<double> idle = idle_.look(changed || moved != moved_, IdleTime::Clock::now());
    moved_ = moved;
    if (idle.count() < run_.options.stall_seconds) return;
    Failure failure = explain_stall(snapshot(run_));
    if (failure.step) *failure.step += run_.first_step;
    run_.fail(std::move(failure));
  }

 public:
  std::optional<Failure> callback_failure_;

 private:
  RunState& run_;
  const std::atomic<bool>& stop_;
  const OnStep& on_step_;
  StepReports reports_;
  std::vector<const ReportSlots*> slots_;
  std::uint64_t moved_ = 0;
  IdleTime idle_{IdleTime::Clock::now()};
};

/// Ranks as threads of this process.
class CpuExecutor final : public Executor {
 public:
  explicit CpuExecutor(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

  RunResult run(Phase phase, std::uint64_t steps, const OnStep& on_step) override;
  std::uint64_t evaluation_steps() const override { return parts_->job->ranks[0].evaluation ? parts_->data[1]->covering_steps() : 0; }
  std::uint64_t next_step() const override { return parts_->next_step; }
  std::optional<ParameterValues> read_parameter(std::string_view name, Part part) const override {
    return collect_parameter(job_ranks(), name, part, [&](std::size_t rank, bool on_host, std::uint64_t offset, std::uint64_t) {
      return (on_host ? parts_->ranks[rank]->host : parts_->ranks[rank]->arena).base() + offset;
    });
  }
  std::vector<std::string> parameter_names() const override { return counted_parameters(job_ranks()); }
  std::vector<RecordedRank> recorded() const override {
    std::vector<RecordedRank> ranks;
    for (const auto& rank : parts_->ranks) ranks.push_back({rank->job->rank, rank->recorder.last(parts_->recorded_steps)});
    return ranks;
  }
  std::vector<std::uint64_t> arena_bytes() const override {
    return of_ranks([](const LocalRank& rank) { return rank.arena.bytes(); });
  }
  std::vector<std::uint64_t> touched_bytes() const override {
    return of_ranks([](const LocalRank& rank) { return rank.arena.touched_bytes(); });
  }
  bool skip_destructors() const override { return parts_->library->skip_destructors(); }

 private:
  std::span<const PiperJobRank> job_ranks() const { return {parts_->job->ranks, parts_->job->num_ranks}; }
  template <typename Bytes>
  std::vector<std::uint64_t> of_ranks(const Bytes& bytes) const {
    std::vector<std::uint64_t> list;
    for (const auto& rank : parts_->ranks) list.push_back(bytes(*rank));
    return list;
  }

  std::unique_ptr<Parts> parts_;
};

}  // namespace

std::unique_ptr<Executor> Executor::create(const PiperJob& job, const ExecutorOptions& options, Failure& failure) {
  try {
    if (auto found = check_tables(job)) {
      failure = std::move(*found);
      return nullptr;
    }
    if (!options.transport && job.num_ranks != job.world) {
      failure = {.code = kBadJob, .message = "ranks of other processes cannot be reached by the local transport"};
      return nullptr;
    }
    auto parts = std::make_unique<Parts>();
    parts->job = &job;
    parts->options = options;
    parts->next_step = job.first_step;
    parts->transport = options.transport ? options.transport : std::shared_ptr<Transport>(make_local_transport());
    parts->library = std::make_unique<LibrarySwitch>(options.runtime);
    const std::span inputs(job.inputs, job.num_inputs);
    parts->data[0] = open_data(job.data, inputs, job.seed, DataUse::training, 0, failure, options.texts);
    if (!parts->data[0]) return nullptr;
    parts->data[1] = open_data(job.held_out, inputs, job.seed, DataUse::held_out, options.max_evaluation_steps, failure, options.texts);
    if (!parts->data[1]) return nullptr;
    if (auto found = too_many_devices(job.num_ranks, options.out_folder.empty() ? 0 : job.num_ranks)) {
      failure = std::move(*found);
      return nullptr;
    }
    const auto stopped = [&] { return options.stopped && options.stopped(); };
    for (std::uint32_t r = 0; r < job.num_ranks; ++r) {
      if (stopped()) return nullptr;
      LocalRank& rank = *parts->ranks.emplace_back(std::make_unique<LocalRank>());
      if (auto found = prepare_rank(job, options, job.ranks[r], rank)) {
        failure = std::move(*found);
        return nullptr;
      }
    }
    initialise(job, parts->ranks, stopped);
    if (stopped()) return nullptr;
    return std::make_unique<CpuExecutor>(std::move(parts));
  } catch (const std::bad_alloc&) {
    failure = {.code = kOutOfMemory, .message = "no memory for the tables of the run"};
  } catch (const std::system_error&) {
    failure = no_more_threads(job.num_ranks);
  }
  return nullptr;
}

RunResult CpuExecutor::run(Phase phase, std::uint64_t steps, const OnStep& on_step) {
  Parts& parts = *parts_;
  if (parts.failed) return {.ended = Ended::failed, .steps = 0, .failure = parts.failed};
  if (phase == Phase::evaluation && !parts.job->ranks[0].evaluation) {
    return {.ended = Ended::failed, .steps = 0, .failure = Failure{.code = kBadJob, .message = "the job has no evaluation program"}};
  }
  RunState run;
  run.phase = phase;
  run.first_step = phase == Phase::training ? parts.next_step : 0;
  run.steps = steps;
  run.job = parts.job;
  run.recorded = parts.options.record && phase == Phase::training;
  run.api = run.recorded ? &recording_api() : &executor_api();
  run.data = parts.data[static_cast<std::size_t>(phase)].get();
  run.library = parts.library.get();
  run.options = parts.options.runtime;
  run.delays = parts.options.delays;
  run.spin = std::thread::hardware_concurrency() > parts.ranks.size() ? parts.options.runtime.spin : 0;
  for (auto& rank : parts.ranks) run.ranks.push_back(rank.get());

  std::vector<std::thread> threads;
  std::optional<Failure> callback_failure;
  // Threads that started are joined whatever happens.
  const auto join = [&] {
    for (std::thread& thread : threads) thread.join();
    threads.clear();
  };
  try {
    for (LocalRank* rank : run.ranks) {
      rank->run = &run;
      rank->ended_steps.store(0);
      rank->wake_at.store(UINT64_MAX);
      rank->delay_count = 0;
      std::fill(rank->counter_storage.begin(), rank->counter_storage.end(), 0);
      rank->flight.begin_program(*rank->active().program);
      if (run.recorded) rank->recorder.prepare(*rank->active().program);
    }
    ProgressEngine engine(run, *parts.transport);
    run.engine = &engine;
    for (LocalRank* rank : run.ranks) {
      rank->active().sleepers = run.delays.max_us || run.recorded ? &parts.always : engine.sleep().sleeping();
    }
    const auto start = [&run] {
      run.started.store(1);
      run.started.notify_all();
    };
    try {
      Supervisor supervisor(run, stop_flag(), on_step);
      threads.reserve(run.ranks.size() + 1);
      threads.emplace_back([&engine] { engine.run(); });
      pthread_setname_np(threads.back().native_handle(), "piper comm");
      for (LocalRank* rank : run.ranks) {
        if (supervisor.obey_stop()) break;  // no step begins any more
        threads.emplace_back([rank] { run_device(*rank); });
        run.devices_running.fetch_add(1);
        pthread_setname_np(threads.back().native_handle(), ("piper rank " + std::to_string(rank->job->rank)).c_str());
      }
      start();
      supervisor.watch();
      callback_failure = std::move(supervisor.callback_failure_);
    } catch (const std::system_error&) {
      run.fail(no_more_threads(run.ranks.size()));
    } catch (const std::bad_alloc&) {
      run.fail({.code = kOutOfMemory, .message = "no memory for the tables of the run"});
    } catch (...) {
      run.fail({.code = kBadJob, .message = "the callback of a step was left by an exception"});
    }
    start();
    join();
  } catch (const std::bad_alloc&) {
    run.failure = Failure{.code = kOutOfMemory, .message = "no memory for the tables of the run"};
  }

  RunResult result;
  result.steps = run.consumed.load();
  if (phase == Phase::training) parts.next_step += result.steps;
  if (run.recorded) parts.recorded_steps = result.steps;
  if (run.failure || callback_failure) {
    result.ended = Ended::failed;
    result.failure = run.failure ? std::move(run.failure) : std::move(callback_failure);
    parts.failed = result.failure;
  } else {
    result.ended = result.steps < steps ? Ended::stopped : Ended::finished;
  }
  return result;
}

}  // namespace piper::runtime
