#pragma once
// A GPU with the local ranks of a job on it: the allocations of a run, and the functions through
// which the roles enqueue. Internal to the CUDA device.
//
// Each rank has an arena, a CUDA stream per stream of the program, and host memory for the steps in
// flight. The progress of a stream is a word in host memory that the device writes after every
// action: when the device fails, the word says at which action it was. A graph needs a kernel for
// that, so it signals several short actions together.

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/exchange.h"
#include "runtime/cuda/role_scan.h"
#include "runtime/cuda/step_times.h"
#include "runtime/data/step_data.h"
#include "runtime/device/report_slots.h"
#include "runtime/phase.h"
#include "runtime/trace/flight.h"

namespace piper::runtime::cuda {

/// The maximum number of steps in flight: the device always has the next one.
inline constexpr std::uint64_t kStepsInFlight = 2;
static_assert(kStepsInFlight <= kReportSlots);

struct Gpu;

struct GpuStream {
  CudaStream cuda_stream = nullptr;
  Event ready = nullptr;  // the inputs of a communication of this stream are ready
  // Written by the device: the low bits of the number of actions that ended, of those enqueued one by
  // one since the start of the run, and of those of graphs since the stream was made.
  std::uint32_t *progress = nullptr, *graph_progress = nullptr;
  unsigned char* graph_ended = nullptr;  // that number of graphs, in memory of the device
  std::uint32_t graph_start = 0;         // and what it was at the start of the run
  std::uint64_t enqueued = 0;            // actions whose end was enqueued
  std::uint32_t single = 0;              // the low bits of the number of those not in a graph
  // Its last action is a communication that not all members have reached.
  bool in_comm = false;
  // For a step that is being captured:

  // Actions whose end was enqueued, and those whose end the device signals.
  std::uint32_t captured = 0, signalled = 0;
  std::uint32_t calls = 0;  // since the last signal

  std::uint64_t ended() const {
    const std::uint32_t low = __atomic_load_n(progress, __ATOMIC_ACQUIRE) +
                              __atomic_load_n(graph_progress, __ATOMIC_ACQUIRE) - graph_start;
    return enqueued - static_cast<std::uint32_t>(static_cast<std::uint32_t>(enqueued) - low);
  }
};

/// The number of calls that a stream of a graph may run without a signal.
inline constexpr std::uint32_t kCallsUnsignalled = 16;

/// The end of an action has separate events for even steps, odd steps and captured steps.
inline constexpr std::size_t kEndSlots = 3;

/// A rank and one of its two programs.
struct GpuProgram {
  const PiperEnqueue* role = nullptr;
  const RoleScan* scan = nullptr;
  std::vector<Function> functions;   // per kernel of the role
  std::vector<PlannedCall> planned;  // at `planned_at` of a shape and an end; null: not planned
  // Per stream: of position p in steps of slot s at kEndSlots * p + s; null if no action waits for
  // it.
  std::vector<std::vector<Event>> ends;
  // Beside these: one more than the step of the last record, 0: none.
  std::vector<std::vector<std::uint64_t>> recorded;
  std::vector<ScannedLoad> loads;  // of the rank
  // of a captured step, per stream: for position p the last position that is signalled with it
  std::vector<std::vector<std::uint32_t>> signalled_with;
};

struct GpuRank {
  Gpu* gpu = nullptr;
  const PiperJobRank* job = nullptr;
  std::size_t index = 0;           // among the local ranks
  unsigned char* arena = nullptr;  // on the device
  std::uint64_t arena_bytes = 0;
  // The arena in host memory for offloads and fetches; null if the plan has none.
  unsigned char* host = nullptr;
  std::uint64_t host_bytes = 0;
  // On the device: the first `staged_loads` bytes of a step's part.
  unsigned char* carried = nullptr;
  unsigned char* staging = nullptr;  // host memory: kStepsInFlight times the part of a step
  // Offsets in a step's part: seed and step; the scalars of the update; small loads, where the bytes
  // end that one copy carries to the device; other loads; reports; findings. Then its size.
  static constexpr std::uint64_t kStagedDraw = 0, kStagedScalars = 64, kStagedCarried = 128;
  static_assert(sizeof(PiperScalars) <= kStagedCarried - kStagedScalars);
  std::uint64_t staged_loads = 0, staged_reports = 0, staged_findings = 0, staged_step = 0;
  std::vector<GpuStream> streams;
  GpuProgram programs[2];   // by Phase
  PiperRank ranks[2] = {};  // by Phase
  PiperDevice device{};
  ReportSlots reports;
  FlightFile flight;
  Event step_ends[kStepsInFlight] = {};  // of the compute stream

  // The step that is being enqueued.
  std::size_t next_load = 0, next_check = 0, next_report = 0;

  PiperRank& active();
  GpuProgram& program();
  unsigned char* step_staging(std::uint64_t step) const {
    return staging + step % kStepsInFlight * staged_step;
  }
  /// The offset of a load in a step's part.
  std::uint64_t staged_at(const ScannedLoad& load) const {
    return (load.carried() ? kStagedCarried : staged_loads) + load.offset;
  }
};

/// A step of all ranks as a graph, one for even and one for odd steps, whose copies have separate
/// host memory.
struct StepGraphs {
  Graph of[kStepsInFlight] = {};
  bool refused = false;  // a capture failed
  bool ready() const { return of[0] != nullptr; }
};

/// The result of a check; in host memory, as runtime/cuda/device_kernels.h declares it.
struct Finding {
  std::uint64_t found;
  std::int64_t position, value;
};

/// The kernels that belong to the runtime itself.
struct OwnKernels {
  Function advance = nullptr, move = nullptr, check = nullptr, count = nullptr;
  // By PiperDType.
  std::array<Function, PIPER_BF16 + 1> initialise{}, sums{}, attend{}, attend_dq{}, attend_dkv{};
};

struct Gpu {
  Gpu(const PiperJob& job, std::unique_ptr<Driver> driver)
      : job(job), driver(std::move(driver)), times(*this) {}

  const PiperJob& job;
  std::unique_ptr<Driver> driver;
  Options options;
  bool first_values = true;  // parameters get them; otherwise they are zero
  std::vector<std::unique_ptr<GpuRank>> ranks;
  OwnKernels kernels;
  // By role and phase.
  std::map<std::pair<const PiperEnqueue*, std::size_t>, std::unique_ptr<RoleScan>> scans;
  StepGraphs graphs[2];  // by Phase
  StepTimes times;
  bool capturing = false;              // enqueued work becomes a graph
  bool behind_steps = false;           // every stream waits for the steps before as a whole
  bool in_graph[kStepsInFlight] = {};  // per step in flight: whether it runs as a graph
  const StepData* data = nullptr;      // of the phase that runs
  Phase phase = Phase::training;
  std::uint64_t first_step = 0;     // of the run, in training
  unsigned char* bounce = nullptr;  // host memory for transfers between runs
  Event transferred = nullptr;
  std::optional<Failure> failure;  // the first
  std::vector<Failure> warnings;
  std::unique_ptr<Exchange> exchange;  // destroyed before the members that it uses

  /// True if the call succeeded; otherwise keeps the reason. `call`: a function of CUDA; `rank`,
  /// `action`: the caller, if there is one.
  bool done(Status status, const char* call, const GpuRank* rank = nullptr,
            std::uint32_t action = kNoAction);
  /// Whether there is a failure. Asks an event for it, because a library that is the first to notice
  /// that the device has failed does not return CUDA's status. A captured step asks nothing: what it
  /// enqueues does not run, and `capture_steps` asks at its end.
  bool device_failed();
  /// Keeps a failure at an action, and at the source location `where` if that is not null. Always
  /// 1.
  int fail_at(const GpuRank& rank, std::uint32_t action, std::uint32_t code, std::string message,
              std::string hint = {}, const PiperSourceLocation* where = nullptr);

  /// The stream on which graphs are captured and launched.
  GpuStream& origin() { return ranks.front()->streams.front(); }
  /// Every other stream waits for the origin, or the origin for every other. False after a failure.
  bool fork_streams();
  bool join_streams();
  /// Drops the graphs: steps are enqueued action by action until they are captured again.
  void drop_graphs();

  /// Polls until the event's work has ended: a hang of the device never holds up the host for ever.
  /// False after a failure.
  bool wait_for(Event event);
  /// Called between runs; false after a failure. Memory of the host may be anywhere.
  bool upload(GpuRank& rank, unsigned char* to, const void* from, std::uint64_t bytes);
  bool download(GpuRank& rank, void* to, const unsigned char* from, std::uint64_t bytes);

  /// Copies bytes by a kernel, between addresses that the device reads and writes. A small copy by
  /// the copy engine would hold up the kernels after it for longer.
  Status move(CudaStream cuda_stream, const void* from, void* to, std::uint64_t bytes);

  /// The index of an action's end event in GpuProgram::ends.
  std::size_t end_slot(std::uint32_t position, std::uint64_t step) const {
    return kEndSlots * std::size_t{position} + (capturing ? kEndSlots - 1 : step % 2);
  }
  /// In a step that is being captured: makes the device signal all actions of the stream enqueued
  /// so far. False after a failure.
  bool signal(GpuRank& rank, std::uint32_t stream);
  /// Ends an action: writes the progress word, and records the event if an action waits for it.
  int end_action(GpuRank& rank, std::uint32_t stream, std::uint32_t action);

  static constexpr std::uint32_t kNoAction = 0xFFFFFFFFu;
  static constexpr std::uint64_t kBounceBytes = 4 << 20;
};

/// Everything before the first step: scans, modules, memory, streams, events, first values.
std::optional<Failure> set_up(Gpu& gpu, const GpuPrograms& programs, const std::string& out_folder);

/// Captures a step of each parity, which `enqueue` enqueues without running it. If that fails, the
/// reason is among the warnings and steps are enqueued as before.
void capture_steps(Gpu& gpu, const std::function<bool(std::uint64_t step)>& enqueue);
/// Enqueues a captured step; its data and scalars lie in host memory. False after a failure.
bool launch_step(Gpu& gpu, std::uint64_t step);

/// The functions that roles call.
PiperDevice device_of(GpuRank& rank);

/// The actions at which the device is: their waits are satisfied, and they have not ended. The
/// first is the likeliest to be at fault.
struct ActionAt {
  const GpuRank* rank = nullptr;
  std::uint32_t action = 0;
  std::uint32_t last = 0;  // it may be any from `action` to this one of its stream
  std::uint64_t step = 0;  // of the run
};
std::vector<ActionAt> actions_under_way(const Gpu& gpu);
/// The failure of the device, at the action it was at.
Failure device_failure(const Gpu& gpu, Status status);
/// The failure of other processes or of a communication with them, at the action in which the
/// device waits.
Failure failure_of_others(const Gpu& gpu, Failure failure);
/// The device has made no progress for `seconds`.
Failure device_stalled(const Gpu& gpu, double seconds);

}  // namespace piper::runtime::cuda
