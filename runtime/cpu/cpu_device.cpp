#include "runtime/cpu/cpu_device.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <new>
#include <system_error>
#include <thread>

#include "runtime/cpu/device_limit.h"
#include "runtime/cpu/progress.h"
#include "runtime/cpu/run_state.h"
#include "runtime/device/idle_time.h"
#include "runtime/device/state.h"
#include "runtime/trace/stuck.h"
#include "runtime/transport/local.h"

namespace piper::runtime {

namespace {

constexpr std::int64_t kTickNs = 20'000'000;

Failure out_of_memory(std::uint32_t rank, std::uint64_t bytes) {
  return {.code = kOutOfMemory,
          .message = "no memory for the arena of `" + std::to_string(bytes) + "` bytes",
          .hint = "smaller microbatches, more stages or `replicate` need less per device",
          .rank = rank};
}

Failure no_more_threads(std::size_t ranks) {
  return {
      .code = kOutOfMemory,
      .message = "the system gives no more threads: a device is a thread here, and there are `" +
                 std::to_string(ranks) + "`",
      .hint =
          "train on fewer devices, or raise the limits on threads and mappings (`ulimit -u`, `vm.max_map_count`)"};
}

// Prepares tables, counters and flight record of one rank; its arena is allocated but not
// initialised.
std::optional<Failure> prepare_rank(const PiperJob& job, const DeviceOptions& options,
                                    const PiperJobRank& source, LocalRank& rank) {
  rank.job = &source;
  std::uint64_t arena_bytes = source.program->arena_bytes;
  std::uint64_t host_bytes = source.program->host_bytes;
  std::uint32_t streams = source.program->num_streams;
  if (source.evaluation) {
    arena_bytes = std::max(arena_bytes, source.evaluation->arena_bytes);
    host_bytes = std::max(host_bytes, source.evaluation->host_bytes);
    streams = std::max(streams, source.evaluation->num_streams);
  }
  if (!rank.arena.allocate(arena_bytes, options.runtime))
    return out_of_memory(source.rank, arena_bytes);
  if (host_bytes > 0 && !rank.host.allocate(host_bytes, options.runtime))
    return out_of_memory(source.rank, host_bytes);
  constexpr std::size_t kLine = PIPER_COUNTER_STRIDE;
  rank.counter_storage.assign((streams + 1) * kLine, 0);
  const std::uintptr_t start = reinterpret_cast<std::uintptr_t>(rank.counter_storage.data());
  rank.counters = rank.counter_storage.data() + (64 - start % 64) % 64 / sizeof(std::uint64_t);
  if (auto failure = rank.flight.open(flight_path(options.out_folder, source.rank), source.rank))
    return failure;
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

/// Touches the arenas' pages and writes the first values of all ranks, or zero, on as many threads as the
/// machine has cores.
template <typename Stopped>
void initialise(const PiperJob& job, std::span<const std::unique_ptr<LocalRank>> ranks,
                bool first_values, const Stopped& stopped) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t r; (r = next.fetch_add(1)) < ranks.size() && !stopped();) {
      ranks[r]->arena.touch();
      ranks[r]->host.touch();
      if (ranks[r]->job->program->host_state_bytes > 0)
        std::memset(ranks[r]->host.base(), 0, ranks[r]->job->program->host_state_bytes);
      if (first_values) {
        initialise_parameters(*ranks[r]->job->program, job.seed, ranks[r]->job->intervals,
                              ranks[r]->arena.base(), ranks[r]->host.base());
      } else {
        std::memset(ranks[r]->arena.base(), 0, ranks[r]->job->program->state_bytes);
      }
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 1;
       i < std::min<std::size_t>(ranks.size(), std::thread::hardware_concurrency()); ++i)
    threads.emplace_back(work);
  work();
}

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(CpuOptions options) : options_(std::move(options)) {}
  ~CpuDevice() override {
    // After a failure messages may still be on their way into the arenas.
    if (transport_) transport_->disconnect();
  }

  bool open(const PiperJob& job, const DeviceOptions& options, const Processes& processes,
            Failure& failure) override;

  void begin_run(const DeviceRun& asked) override;
  std::uint64_t most_steps() const override { return kReportSlots; }
  void begin_step(std::uint64_t step) override {
    run_->allowed.store(step + 1);
    for (LocalRank* rank : run_->ranks) rank->sleep.wake();
  }
  std::uint64_t take_back_steps() override {
    return run_->started_steps.fetch_or(RunState::kFrozen) & ~RunState::kFrozen;
  }
  std::uint64_t wait(std::uint64_t ended) override;
  void look() override {}  // its threads report failures
  bool end_run() override;

  const Failure* failure() const override {
    return run_ && run_->cancelled.load() ? &*run_->failure : nullptr;
  }
  void fail(Failure failure) override { run_->fail(std::move(failure)); }
  Failure located(Failure failure) const override;

  const ReportSlots& reports(std::size_t rank) const override { return ranks_[rank]->reports; }
  std::optional<std::vector<std::uint32_t>> reported(Phase) const override { return std::nullopt; }
  std::vector<RecordedRank> recorded(std::uint64_t steps) const override {
    std::vector<RecordedRank> recorded;
    for (const auto& rank : ranks_)
      recorded.push_back({rank->job->rank, rank->recorder.last(steps)});
    return recorded;
  }
  const unsigned char* read(std::size_t rank, bool on_host, std::uint64_t offset,
                            std::uint64_t) override {
    return (on_host ? ranks_[rank]->host : ranks_[rank]->arena).base() + offset;
  }
  bool write(std::size_t rank, bool on_host, std::uint64_t offset, const void* from,
             std::uint64_t bytes) override {
    std::memcpy((on_host ? ranks_[rank]->host : ranks_[rank]->arena).base() + offset, from, bytes);
    return true;
  }
  std::uint64_t arena_bytes(std::size_t rank) const override { return ranks_[rank]->arena.bytes(); }
  const PiperFlight& flight(std::size_t rank) const override {
    return *ranks_[rank]->flight.record();
  }
  std::uint64_t touched_bytes(std::size_t rank) override {
    return ranks_[rank]->arena.touched_bytes();
  }
  bool skip_destructors() const override { return library_->skip_destructors(); }

 private:
  void prepare_run();
  void start_threads();
  std::uint64_t ended_steps() const;
  void look_for_stall(bool changed);
  Failure stall() const;

  const CpuOptions options_;
  const PiperJob* job_ = nullptr;
  Options runtime_;
  std::shared_ptr<Transport> transport_;
  std::unique_ptr<LibrarySwitch> library_;
  std::vector<std::unique_ptr<LocalRank>> ranks_;
  std::uint32_t always_ = 1;  // PiperRank::sleepers if every action is to be delayed or recorded

  std::optional<RunState> run_;
  std::optional<ProgressEngine> engine_;
  std::vector<std::thread> threads_;
  std::uint64_t moved_ = 0;  // state of progress at the last look
  IdleTime idle_{IdleTime::Clock::now()};
};

bool CpuDevice::open(const PiperJob& job, const DeviceOptions& options, const Processes& processes,
                     Failure& failure) {
  const auto good = [&](std::optional<Failure> found) {
    if (found) failure = std::move(*found);
    return !found;
  };
  if (job.num_ranks != job.world && (!options_.transport || processes.group == nullptr)) {
    return good(Failure{
        .code = kBadJob,
        .message =
            options_.transport
                ? "ranks of other processes need a group of processes, which carries stops, reports and failures"
                : "ranks of other processes cannot be reached by the local transport"});
  }
  if (!good(too_many_devices(job.num_ranks, options.out_folder.empty() ? 0 : job.num_ranks)))
    return false;
  job_ = &job;
  runtime_ = options.runtime;
  transport_ =
      options_.transport ? options_.transport : std::shared_ptr<Transport>(make_local_transport());
  library_ = std::make_unique<LibrarySwitch>(options.runtime);
  const auto stopped = [&] { return options.stopped && options.stopped(); };
  for (std::uint32_t r = 0; r < job.num_ranks; ++r) {
    if (stopped()) return false;
    LocalRank& rank = *ranks_.emplace_back(std::make_unique<LocalRank>());
    if (!good(prepare_rank(job, options, job.ranks[r], rank))) return false;
  }
  try {
    initialise(job, ranks_, options.first_values, stopped);
  } catch (const std::system_error&) {
    return good(no_more_threads(job.num_ranks));
  }
  return !stopped();
}

// ---- a run

void CpuDevice::begin_run(const DeviceRun& asked) {
  RunState& run = run_.emplace(asked);
  run.job = job_;
  run.api = asked.record ? &recording_api() : &executor_api();
  run.library = library_.get();
  run.options = runtime_;
  run.delays = options_.delays;
  // Ranks of other processes may share the machine.
  run.spin = std::thread::hardware_concurrency() > job_->world ? runtime_.spin : 0;
  for (auto& rank : ranks_) run.ranks.push_back(rank.get());
  prepare_run();
  start_threads();
}

void CpuDevice::prepare_run() {
  RunState& run = *run_;
  for (LocalRank* rank : run.ranks) {
    rank->run = &run;
    rank->ended_steps.store(0);
    rank->wake_at.store(UINT64_MAX);
    rank->delay_count = 0;
    std::fill(rank->counter_storage.begin(), rank->counter_storage.end(), 0);
    rank->flight.begin_program(*rank->active().program);
    if (run.record) rank->recorder.prepare(*rank->active().program);
  }
  run.engine = &engine_.emplace(run, *transport_);
  if (!run.engine->can_sleep())
    run.fail({.code = kOutOfMemory,
              .message = "the system gives no more file descriptors",
              .hint = "raise the limit (`ulimit -n`)"});
  for (LocalRank* rank : run.ranks)
    rank->active().sleepers =
        run.delays.max_us || run.record ? &always_ : engine_->sleep().sleeping();
  threads_.reserve(run.ranks.size() + 1);
  moved_ = 0;
  idle_ = IdleTime(IdleTime::Clock::now());
}

// No rank begins before all threads exist: the executor has allowed no step yet, and a thread that
// ran would take the processor from those still being created.
void CpuDevice::start_threads() {
  RunState& run = *run_;
  try {
    threads_.emplace_back([this] { engine_->run(); });
    pthread_setname_np(threads_.back().native_handle(), "piper comm");
    for (LocalRank* rank : run.ranks) {
      if (run.stop != nullptr && run.stop->load()) return;
      threads_.emplace_back([rank] { run_device(*rank); });
      run.devices_running.fetch_add(1);
      pthread_setname_np(threads_.back().native_handle(),
                         ("piper rank " + std::to_string(rank->job->rank)).c_str());
    }
  } catch (const std::system_error&) {
    run.fail(no_more_threads(run.ranks.size()));
  } catch (const std::bad_alloc&) {
    run.fail({.code = kOutOfMemory, .message = "no memory for the tables of the run"});
  }
}

std::uint64_t CpuDevice::ended_steps() const {
  std::uint64_t ended = std::numeric_limits<std::uint64_t>::max();
  for (const LocalRank* rank : run_->ranks) ended = std::min(ended, rank->ended_steps.load());
  return ended;
}

std::uint64_t CpuDevice::wait(std::uint64_t before) {
  RunState& run = *run_;
  const std::uint32_t key = run.main_sleep.announce();
  const std::uint64_t ended = ended_steps();
  if (ended > before || run.cancelled.load()) {
    run.main_sleep.withdraw();
  } else {
    run.main_sleep.commit(key, kTickNs);
  }
  look_for_stall(ended > before);
  return ended;
}

bool CpuDevice::end_run() {
  RunState& run = *run_;
  const auto rests = [&] { return run.cancelled.load() || run.engine_done.load(); };
  if (!run.over.exchange(true)) {
    for (LocalRank* rank : run.ranks) rank->sleep.wake();
  }
  if (!rests()) {
    const std::uint32_t key = run.main_sleep.announce();
    if (!run.devices_done.load() && run.devices_running.load() == 0) {
      run.devices_done.store(true);
      run.engine->sleep().wake();
    }
    if (rests()) {
      run.main_sleep.withdraw();
    } else {
      run.main_sleep.commit(key, kTickNs);
    }
    look_for_stall(false);
    if (!rests()) return false;
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  run.engine = nullptr;
  engine_.reset();
  return true;
}

// ---- failures

void CpuDevice::look_for_stall(bool changed) {
  RunState& run = *run_;
  if (run.options.stall_seconds <= 0) return;
  std::uint64_t moved = run.num_started_steps();
  for (LocalRank* rank : run.ranks) {
    const std::uint32_t streams = rank->active().program->num_streams;
    for (std::uint32_t s = 0; s < streams; ++s)
      moved += __atomic_load_n(&rank->counters[s * PIPER_COUNTER_STRIDE], __ATOMIC_RELAXED);
  }
  const std::chrono::duration<double> idle =
      idle_.look(changed || moved != moved_, IdleTime::Clock::now());
  moved_ = moved;
  if (idle.count() >= run.options.stall_seconds) run.fail(stall());
}

/// Explains which rank holds up which.
Failure CpuDevice::stall() const {
  std::vector<StuckRank> ranks;
  for (LocalRank* rank : run_->ranks) {
    const PiperRank& active = rank->active();
    ranks.push_back({active.program, active.communicators, rank->job->rank,
                     snapshot_of(*rank->flight.record())});
  }
  Failure failure = explain_stall(ranks);
  if (failure.step) *failure.step += run_->first_step;
  return failure;
}

Failure CpuDevice::located(Failure failure) const {
  // A failure of another rank keeps its own location.
  const std::uint32_t first = job_->ranks[0].rank;
  if (!failure.place.action.empty() ||
      (failure.rank != Failure::kNoRank && failure.rank - first >= job_->num_ranks))
    return failure;
  Failure at = stall();
  failure.rank = at.rank;
  failure.step = at.step;
  failure.place = std::move(at.place);
  return failure;
}

}  // namespace

std::unique_ptr<Device> make_cpu_device(CpuOptions options) {
  return std::make_unique<CpuDevice>(std::move(options));
}

}  // namespace piper::runtime
