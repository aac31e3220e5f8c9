#include "runtime/cuda/cuda_executor.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <new>
#include <thread>

#include "runtime/cuda/gpu.h"
#include "runtime/cuda/loopback.h"
#include "runtime/cuda/nccl_exchange.h"
#include "runtime/device/state.h"
#include "runtime/dtypes.h"
#include "runtime/executor/check_tables.h"
#include "runtime/executor/parameters.h"
#include "runtime/executor/step_numbers.h"
#include "runtime/executor/step_reports.h"
#include "runtime/trace/align_times.h"
#include "runtime/transport/transport.h"

namespace piper::runtime::cuda {

namespace {

/// Consecutive actions of a rank in the order of all.
struct Piece {
  GpuRank* rank = nullptr;
  std::uint32_t first = 0, last = 0;
};

std::vector<Piece> in_one_order(const Gpu& gpu, Phase phase) {
  struct Place {
    std::uint32_t place = 0, rank = 0, action = 0;
  };
  std::vector<Place> places;
  for (const auto& rank : gpu.ranks) {
    const PiperEnqueue& role = *rank->programs[static_cast<std::size_t>(phase)].role;
    for (std::uint32_t a = 0; a < role.num_actions; ++a) places.push_back({role.places[a], static_cast<std::uint32_t>(rank->index), a});
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return std::tie(a.place, a.rank, a.action) < std::tie(b.place, b.rank, b.action); });
  std::vector<Piece> pieces;
  for (const Place& each : places) {
    GpuRank* const rank = gpu.ranks[each.rank].get();
    if (!pieces.empty() && pieces.back().rank == rank && pieces.back().last == each.action) {
      ++pieces.back().last;
    } else {
      pieces.push_back({rank, each.action, each.action + 1});
    }
  }
  return pieces;
}

/// The processes of which this is one; none where all ranks are here.
struct Others {
  ProcessGroup& group;
  StepNumbers numbers;
  const PiperJob& whole;                      // the ranks of all processes
  std::uint64_t steps_before = 0;             // of all runs before
  std::vector<RecordedRank> recorded = {};    // on rank 0: of all
  std::uint32_t rank() const { return group.launch().rank; }
};

/// One call of run: enqueues steps and takes in those that have ended.
class CudaRun {
 public:
  CudaRun(Gpu& gpu, Phase phase, std::uint64_t steps, const std::atomic<bool>& stop, const OnStep& on_step, const std::vector<Piece>& pieces, bool records, Others* others)
      : gpu_(gpu), driver_(*gpu.driver), steps_(steps), stop_(stop), on_step_(on_step), pieces_(pieces), records_(records), others_(others), reports_(gpu.job, phase, gpu.first_step, steps) {
    for (const auto& rank : gpu.ranks) slots_.push_back(&rank->reports);
    if (others == nullptr) return;
    for (const auto& reports : others->numbers.slots(phase)) slots_.push_back(reports.get());
  }

  std::uint64_t ended() const { return ended_; }
  /// The last step that was asked for has run, between timers.
  bool has_recorded() const { return records_ && ended_ == steps_ && steps_ > 0; }

  void run() {
    begin();
    for (std::uint64_t step = 0; good() && step < steps_ && goes_on(); ++step) {
      // The only wait: for the room that an earlier step had.
      while (good() && begun_ - ended_ >= kStepsUnderWay) take_in();
      if (good() && begins_step() && enqueue(step)) ++begun_;
    }
    while (good() && ended_ < begun_) take_in();
    // Whom this rank's failure concerns need not wait for it.
    if (!good() && others_ != nullptr) others_->group.fail(*gpu_.failure);
    finish();
    while (good() && told_ < ended_) tell(true);
    if (good() && has_recorded()) gpu_.times.read();
    if (!good() && others_ != nullptr) others_->group.fail(*gpu_.failure);
  }

 private:
  bool good() const { return !gpu_.failure; }

  /// Nobody has stopped the run; of several processes all stop together.
  bool goes_on() const { return others_ != nullptr ? !stopped_ : !stop_.load(); }
  bool begins_step() {
    if (others_ == nullptr) return !stop_.load();
    for (;;) {
      if (stop_.load()) others_->group.request_stop();
      const ProcessGroup::Begin begin = others_->group.begin_step();
      if (begin == ProcessGroup::Begin::yes) return true;
      stopped_ = begin == ProcessGroup::Begin::no;
      if (stopped_ || !nobody_lost()) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  /// False after a failure of the device; the last step may be under way.
  bool device_lives() {
    const GpuRank& rank = *gpu_.ranks.front();
    const Status status = driver_.query(rank.step_ends[(begun_ - 1) % kStepsUnderWay]);
    return status == kNotReady || gpu_.done(status, "cuEventQuery", &rank);
  }
  /// False after a failure of another process.
  bool nobody_lost() {
    if (others_->group.failed()) gpu_.failure = failure_of_others(gpu_, *others_->group.failure());
    return good();
  }

  void begin() {
    for (const auto& rank : gpu_.ranks) {
      rank->flight.begin_program(*rank->active().program);
      for (GpuQueue& queue : rank->queues) {
        *queue.progress = 0;
        queue.enqueued = 0;
        queue.meeting = false;
      }
      for (std::vector<std::uint64_t>& recorded : rank->program().recorded) std::fill(recorded.begin(), recorded.end(), 0);
    }
  }

  bool enqueue(std::uint64_t step) {
    StepGraphs& graphs = gpu_.graphs[static_cast<std::size_t>(gpu_.phase)];
    // The first steps find out what fails by itself, and load what the driver loads late.
    if (gpu_.options.cuda_graphs && !graphs.ready() && !graphs.refused && step >= kStepsUnderWay) {
      capture_steps(gpu_, [&](std::uint64_t parity) { return enqueue_actions(parity); });
    }
    if (!good()) return false;
    for (const auto& rank : gpu_.ranks) stage(*rank, step);
    const bool timed = records_ && step + 1 == steps_;
    if (graphs.ready() && !timed) return launch_step(gpu_, step);
    if (timed && !gpu_.times.begin()) return false;
    gpu_.behind_steps = timed;
    const bool enqueued = enqueue_actions(step);
    gpu_.behind_steps = false;
    gpu_.times.end();
    if (!enqueued) return false;
    for (const auto& rank : gpu_.ranks) {
      if (!gpu_.done(driver_.record(rank->step_ends[step % kStepsUnderWay], rank->queues.front().stream), "cuEventRecord", rank.get())) return false;
    }
    return true;
  }

  /// All that the device does in a step. What the host puts into memory for it is staged.
  bool enqueue_actions(std::uint64_t step) {
    for (const auto& rank : gpu_.ranks) {
      if (!begin_step(*rank, step)) return false;
    }
    for (const Piece& piece : pieces_) {
      const PiperEnqueue& role = *piece.rank->program().role;
      if (role.enqueue(&role, &piece.rank->device, &piece.rank->active(), piece.first, piece.last) == 0) continue;
      if (good()) gpu_.fail_at(*piece.rank, piece.first, kActionFailed, "the enqueuing function failed and gave no reason");
      return false;
    }
    return true;
  }

  static constexpr std::uint64_t kDrawBytes = 2 * sizeof(std::uint64_t);  // seed and step
  static std::uint64_t staged_draw(const GpuRank& rank) { return rank.staged_scalars + 64; }

  /// Host memory that the step reads: what random numbers are keyed by, and what its update needs. What it writes there is empty.
  void stage(GpuRank& rank, std::uint64_t step) {
    PiperRank& active = rank.active();
    active.step = step;
    active.global_step = gpu_.first_step + step;
    active.flight->step = active.global_step;
    unsigned char* const staging = rank.step_staging(step);
    std::memset(staging + rank.staged_findings, 0, rank.program().scan->checks.size() * sizeof(Finding));
    const std::uint64_t draw[] = {gpu_.job.seed, active.global_step};
    static_assert(sizeof draw == kDrawBytes);
    std::memcpy(staging + staged_draw(rank), draw, sizeof draw);
    if (gpu_.phase != Phase::training) return;
    const PiperScalars scalars = scalars_of_step(gpu_.job.optimizer, active.global_step);
    std::memcpy(staging + rank.staged_scalars, &scalars, sizeof scalars);
  }

  bool begin_step(GpuRank& rank, std::uint64_t step) {
    rank.active().step = step;
    rank.loaded = 0;
    rank.next_check = rank.next_report = 0;
    const unsigned char* const staging = rank.step_staging(step);
    const Stream stream = rank.queues.front().stream;
    const auto put = [&](unsigned char* to, const unsigned char* from, std::uint64_t bytes) { return gpu_.done(driver_.copy(stream, to, from, bytes), "cuMemcpyAsync", &rank); };
    return put(rank.draw, staging + staged_draw(rank), kDrawBytes) &&
           (gpu_.phase != Phase::training || put(rank.arena + rank.active().program->scalars_offset, staging + rank.staged_scalars, sizeof(PiperScalars)));
  }

  /// The oldest step that is under way.
  void take_in() {
    const std::uint64_t step = ended_;
    for (const auto& rank : gpu_.ranks) {
      if (!gpu_.wait_for(rank->step_ends[step % kStepsUnderWay])) return;
    }
    if (auto lost = gpu_.exchange->lost()) {
      gpu_.failure = failure_of_others(gpu_, std::move(*lost));
      return;
    }
    for (const auto& rank : gpu_.ranks) {
      if (!look_at_checks(*rank, step)) return;
    }
    for (const auto& rank : gpu_.ranks) {
      if (!keep_reports(*rank, step)) return;
      for (std::uint32_t q = 0; q < rank->active().program->num_streams; ++q) rank->flight.record()->begun[q] = rank->flight.record()->ended[q] = rank->queues[q].ended();
    }
    ++ended_;
    if (others_ != nullptr) others_->numbers.send(gpu_.phase, others_->steps_before + step, step, gpu_.ranks.front()->reports);
    // What others report of a step may come later; there is room for that of so many.
    tell(ended_ - told_ >= kReportSlots - 1);
  }

  /// Tells of the next step that has ended, once all its numbers are here. `waits`: until they are.
  void tell(bool waits) {
    const std::uint64_t step = told_;
    while (others_ != nullptr && !others_->numbers.take(gpu_.phase, others_->steps_before + step, step)) {
      if (!waits || !nobody_lost() || !device_lives()) return;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    const StepRecord& record = reports_.take(step, slots_);
    ++told_;
    if (on_step_) {
      try {
        if (auto failure = on_step_(record)) gpu_.failure = std::move(failure);
      } catch (...) {
        gpu_.failure = Failure{.code = kBadJob, .message = "the callback of a step was left by an exception"};
      }
    }
  }

  /// The first of all checks that found an index outside of its range.
  bool look_at_checks(const GpuRank& rank, std::uint64_t step) {
    const auto* findings = reinterpret_cast<const Finding*>(rank.step_staging(step) + rank.staged_findings);
    const std::vector<ScannedCheck>& checks = rank.programs[static_cast<std::size_t>(gpu_.phase)].scan->checks;
    for (std::size_t c = 0; c < checks.size(); ++c) {
      if (findings[c].found == 0) continue;
      gpu_.fail_at(rank, checks[c].action, kActionFailed, std::string(checks[c].check->message) + ": `" + std::to_string(findings[c].value) + "`", {}, &checks[c].check->where);
      gpu_.failure->step = gpu_.first_step + step;
      return false;
    }
    return true;
  }

  bool keep_reports(GpuRank& rank, std::uint64_t step) {
    rank.reports.clear(step);
    const unsigned char* const staged = rank.step_staging(step) + rank.staged_reports;
    for (const ScannedReport& report : rank.program().scan->reports) {
      values_.clear();
      for (std::uint32_t i = 0; i < report.count; ++i) {
        const unsigned char* const from = staged + report.offset + 8 * i;
        values_.push_back(element_as_double(from, report.counted && i + 1 == report.count ? std::uint32_t{PIPER_F64} : report.dtype, 0));
      }
      auto failure = rank.reports.keep(gpu_.job, step, gpu_.first_step + step, report.subject, values_.data(), report.count);
      if (!failure) continue;
      gpu_.fail_at(rank, report.action, failure->code, std::move(failure->message), std::move(failure->hint));
      gpu_.failure->step = gpu_.first_step + step;
      return false;
    }
    return true;
  }

  /// Every queue, so that memory of the device can be read; also after a failure, unless it is the device's.
  void finish() {
    if (gpu_.failure && (others_ != nullptr || gpu_.failure->code == kCudaKernelFailed || gpu_.failure->code == kStalled)) {
      if (others_ != nullptr) driver_.abandon();  // what is under way waits for others
      return;
    }
    for (const auto& rank : gpu_.ranks) {
      for (const GpuQueue& queue : rank->queues) {
        if (!gpu_.done(driver_.record(queue.ready, queue.stream), "cuEventRecord", rank.get()) || !gpu_.wait_for(queue.ready)) return;
      }
    }
  }

  Gpu& gpu_;
  Driver& driver_;
  const std::uint64_t steps_;
  const std::atomic<bool>& stop_;
  const OnStep& on_step_;
  const std::vector<Piece>& pieces_;
  const bool records_;  // when the actions of the last step ran
  Others* const others_;
  bool stopped_ = false;
  StepReports reports_;
  std::vector<const ReportSlots*> slots_;
  std::vector<double> values_;
  std::uint64_t begun_ = 0, ended_ = 0, told_ = 0;
};

class CudaExecutor final : public Executor {
 public:
  CudaExecutor(const PiperJob& job, std::unique_ptr<Driver> driver, const ExecutorOptions& options) : gpu_(job, std::move(driver)), records_(options.record), next_step_(job.first_step) {
    gpu_.options = options.runtime;
  }

  std::optional<Failure> open(const GpuPrograms& programs, const ExecutorOptions& options, GpuProcesses processes) {
    Failure failure;
    if (processes.group != nullptr) {
      others_.emplace(Others{*processes.group, StepNumbers(gpu_.job, *processes.group), *processes.whole});
      gpu_.exchange = std::make_unique<NcclExchange>(gpu_, *processes.group, std::move(processes.nccl), *processes.whole);
    } else {
      gpu_.exchange = std::make_unique<Loopback>(gpu_);
    }
    const std::span inputs(gpu_.job.inputs, gpu_.job.num_inputs);
    data_[0] = open_data(gpu_.job.data, inputs, gpu_.job.seed, DataUse::training, 0, failure, options.texts);
    if (!data_[0]) return failure;
    data_[1] = open_data(gpu_.job.held_out, inputs, gpu_.job.seed, DataUse::held_out, options.max_evaluation_steps, failure, options.texts);
    if (!data_[1]) return failure;
    if (auto found = set_up(gpu_, programs, options.out_folder)) return found;
    pieces_[0] = in_one_order(gpu_, Phase::training);
    if (gpu_.job.ranks[0].evaluation != nullptr) pieces_[1] = in_one_order(gpu_, Phase::evaluation);
    for (const Phase phase : {Phase::training, Phase::evaluation}) {
      const RoleScan* const scan = gpu_.ranks.front()->programs[static_cast<std::size_t>(phase)].scan;
      if (!others_ || scan == nullptr) continue;
      std::vector<std::uint32_t> subjects;
      for (const ScannedReport& report : scan->reports) subjects.push_back(report.subject);
      if (auto found = others_->numbers.agree(phase, subjects)) return found;
    }
    return std::nullopt;
  }

  RunResult run(Phase phase, std::uint64_t steps, const OnStep& on_step) override {
    if (gpu_.failure) return {.ended = Ended::failed, .steps = 0, .failure = gpu_.failure};
    if (phase == Phase::evaluation && gpu_.job.ranks[0].evaluation == nullptr) {
      return {.ended = Ended::failed, .steps = 0, .failure = Failure{.code = kBadJob, .message = "the job has no evaluation program"}};
    }
    const auto p = static_cast<std::size_t>(phase);
    gpu_.phase = phase;
    gpu_.first_step = phase == Phase::training ? next_step_ : 0;
    gpu_.data = data_[p].get();
    RunResult result;
    try {
      CudaRun run(gpu_, phase, steps, stop_flag(), on_step, pieces_[p], records_ && phase == Phase::training, others_ ? &*others_ : nullptr);
      run.run();
      result.steps = run.ended();
      if (others_) others_->steps_before += result.steps;
      if (others_ && !gpu_.failure && run.has_recorded()) collect_recorded();
    } catch (const std::bad_alloc&) {
      gpu_.failure = Failure{.code = kOutOfMemory, .message = "no memory for the tables of the run"};
    }
    if (phase == Phase::training) next_step_ += result.steps;
    if (gpu_.failure) {
      result.ended = Ended::failed;
      result.failure = gpu_.failure;
    } else {
      result.ended = result.steps < steps ? Ended::stopped : Ended::finished;
    }
    return result;
  }

  std::uint64_t evaluation_steps() const override { return gpu_.job.ranks[0].evaluation != nullptr ? data_[1]->covering_steps() : 0; }
  std::uint64_t next_step() const override { return next_step_; }
  std::optional<ParameterValues> read_parameter(std::string_view name, Part part) const override {
    std::vector<unsigned char> bytes;
    if (others_) return read_with_others(name, part, bytes);
    return collect_parameter(all_ranks(), name, part, [&](std::size_t rank, bool on_host, std::uint64_t offset, std::uint64_t count) { return read_own(rank, on_host, offset, count, bytes); });
  }
  std::vector<std::string> parameter_names() const override { return counted_parameters(all_ranks()); }
  std::vector<RecordedRank> recorded() const override { return others_ ? others_->recorded : gpu_.times.recorded(); }
  std::vector<Failure> warnings() const override { return gpu_.warnings; }
  std::vector<std::uint64_t> arena_bytes() const override {
    std::vector<std::uint64_t> list;
    for (const auto& rank : gpu_.ranks) list.push_back(rank->arena_bytes);
    return list;
  }
  std::vector<std::uint64_t> touched_bytes() const override {
    std::vector<std::uint64_t> list;
    for (const auto& rank : gpu_.ranks) list.push_back(gpu_.options.check_memory ? touched(*rank) : 0);
    return list;
  }
  bool skip_destructors() const override { return gpu_.failure && gpu_.failure->code == kStalled; }

 private:
  /// Those of other processes, too.
  std::span<const PiperJobRank> all_ranks() const {
    const PiperJob& job = others_ ? others_->whole : gpu_.job;
    return {job.ranks, job.num_ranks};
  }

  /// Of a local rank; null after a failure.
  const unsigned char* read_own(std::size_t rank, bool on_host, std::uint64_t offset, std::uint64_t count, std::vector<unsigned char>& bytes) const {
    if (on_host) return gpu_.ranks[rank]->host + offset;
    bytes.resize(count);
    return gpu_.download(*gpu_.ranks[rank], bytes.data(), gpu_.ranks[rank]->arena + offset, count) ? bytes.data() : nullptr;
  }

  /// All processes go through the same pieces in the same order: who has one sends it, rank 0 takes it, and to the others it is nothing.
  std::optional<ParameterValues> read_with_others(std::string_view name, Part part, std::vector<unsigned char>& bytes) const {
    ProcessGroup& group = others_->group;
    auto values = collect_parameter(all_ranks(), name, part, [&](std::size_t rank, bool on_host, std::uint64_t offset, std::uint64_t count) -> const unsigned char* {
      bytes.assign(count, 0);
      if (rank == others_->rank()) {
        const unsigned char* const own = read_own(0, on_host, offset, count, bytes);
        if (own == nullptr) group.fail(*gpu_.failure);
        if (own != nullptr && rank != 0) group.send_bytes({reinterpret_cast<const char*>(own), count});
        return own;
      }
      if (others_->rank() != 0) return bytes.data();
      const auto told = group.receive_bytes(static_cast<std::uint32_t>(rank));
      if (!told || told->size() != count) return nullptr;
      std::memcpy(bytes.data(), told->data(), count);
      return bytes.data();
    });
    return others_->rank() == 0 ? std::move(values) : std::nullopt;
  }

  /// Brings what each process has recorded to rank 0, and its times to one start.
  void collect_recorded() {
    const std::vector<RecordedRank>& own = gpu_.times.recorded();
    const std::vector<RecordedAction>& actions = own.front().actions;
    if (others_->rank() != 0) {
      others_->group.send_bytes({reinterpret_cast<const char*>(actions.data()), actions.size() * sizeof(RecordedAction)});
      return;
    }
    std::vector<RecordedRank> all = own;
    for (const PiperJobRank& rank : all_ranks().subspan(1)) {
      const auto told = others_->group.receive_bytes(rank.rank);
      if (!told) {
        gpu_.failure = failure_of_others(gpu_, *others_->group.failure());
        return;
      }
      RecordedRank& made = all.emplace_back(RecordedRank{rank.rank, std::vector<RecordedAction>(told->size() / sizeof(RecordedAction))});
      std::memcpy(made.actions.data(), told->data(), made.actions.size() * sizeof(RecordedAction));
    }
    Meetings meetings;
    if (auto failure = find_meetings(all_ranks(), Phase::training, meetings)) {
      gpu_.failure = std::move(*failure);
      return;
    }
    align_times(meetings, all);
    others_->recorded = std::move(all);
  }

  std::uint64_t touched(GpuRank& rank) const {
    std::vector<unsigned char> bytes(rank.arena_bytes);
    if (!gpu_.download(rank, bytes.data(), rank.arena, bytes.size())) return 0;
    std::uint64_t end = bytes.size();
    while (end > 0 && bytes[end - 1] == 0xFF) --end;
    return end;
  }

  mutable Gpu gpu_;  // reading what lies on the device takes its queues
  std::optional<Others> others_;
  std::unique_ptr<StepData> data_[2];  // by Phase
  std::vector<Piece> pieces_[2];
  const bool records_;
  std::uint64_t next_step_;
};

}  // namespace

std::unique_ptr<Executor> create_cuda_executor(const PiperJob& job, const GpuPrograms& programs, std::unique_ptr<Driver> driver, const ExecutorOptions& options, Failure& failure, GpuProcesses processes) {
  try {
    if (auto found = check_tables(job)) {
      failure = std::move(*found);
      return nullptr;
    }
    const bool alone = processes.group == nullptr;
    if ((alone ? job.num_ranks != job.world : job.num_ranks != 1 || processes.whole->num_ranks != job.world) || options.transport) {
      failure = {.code = kBadJob, .message = alone ? "on one GPU the ranks of other processes cannot be reached" : "a process has one rank of all"};
      return nullptr;
    }
    auto made = std::make_unique<CudaExecutor>(job, std::move(driver), options);
    if (auto found = made->open(programs, options, std::move(processes))) {
      failure = std::move(*found);
      return nullptr;
    }
    if (options.stopped && options.stopped()) return nullptr;
    return made;
  } catch (const std::bad_alloc&) {
    failure = {.code = kOutOfMemory, .message = "no memory for the tables of the run"};
  }
  return nullptr;
}

}  // namespace piper::runtime::cuda
