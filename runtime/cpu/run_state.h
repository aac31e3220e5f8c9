#pragma once
// The state that the threads of a run share. Internal to the device.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/abi.h"
#include "runtime/cpu/arena.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/cpu/sleep.h"
#include "runtime/device/device.h"
#include "runtime/device/library_calls.h"
#include "runtime/device/report_slots.h"
#include "runtime/trace/flight.h"
#include "runtime/trace/recorder.h"

namespace piper::runtime {

class ProgressEngine;

struct RunState;

/// One rank of this process: both programs, their arenas, one device thread at a time.
struct LocalRank {
  const PiperJobRank* job = nullptr;
  PiperRank ranks[2] = {};  // by Phase
  Arena arena, host;        // host: offloads write to it, fetches read from it
  std::vector<std::uint64_t> counter_storage;
  std::uint64_t* counters = nullptr;  // on a cache line boundary
  FlightFile flight;
  ReportSlots reports;
  ActionRecorder recorder;
  RunState* run = nullptr;
  const LibraryCalls* library = nullptr;  // of the running device thread; null until its first call
  Sleep sleep;                            // of the device thread
  // The count of the compute stream that the progress engine waits for.
  alignas(64) std::atomic<std::uint64_t> wake_at{UINT64_MAX};
  alignas(64) std::atomic<std::uint64_t> ended_steps{0};
  std::uint64_t delay_count = 0;

  PiperRank& active();
};

/// A run, from its beginning until the next one.
struct RunState : DeviceRun {
  explicit RunState(const DeviceRun& asked) : DeviceRun(asked) {}

  const PiperJob* job = nullptr;
  const PiperApi* api = nullptr;
  LibrarySwitch* library = nullptr;
  Options options;
  RandomDelays delays;
  std::uint32_t spin = 0;
  ProgressEngine* engine = nullptr;  // until the run has ended
  Sleep main_sleep;                  // of the thread that waits for the run

  /// The largest step count that any rank has started; the top bit says that no more steps start.
  /// It is one word, so that all ranks agree on the last step.
  static constexpr std::uint64_t kFrozen = 1ull << 63;
  alignas(64) std::atomic<std::uint64_t> started_steps{0};
  alignas(64) std::atomic<bool> cancelled{false};
  alignas(64) std::atomic<std::uint64_t> allowed{0};  // steps below this may begin
  std::atomic<bool> over{false};                      // no more steps will be allowed
  std::atomic<std::uint32_t> devices_running{0};
  std::atomic<bool> devices_done{false};
  std::atomic<bool> engine_done{false};

  std::vector<LocalRank*> ranks;
  std::mutex failure_mutex;        // taken only to fail
  std::optional<Failure> failure;  // the first; set before `cancelled` is true

  std::uint64_t num_started_steps() const {
    return started_steps.load(std::memory_order_acquire) & ~kFrozen;
  }
  /// Waits until the rank may begin step `step` (from 0); false if the run ends before it.
  bool begin_step(LocalRank& rank, std::uint64_t step);
  /// Keeps the first failure, cancels the run and wakes every thread.
  void fail(Failure failure);
  void wake_all();
};

/// Sleeps until `ready()`; false when the run was cancelled. Polls `spin` times first.
template <typename Ready>
bool wait_until(RunState& run, Sleep& sleep, const Ready& ready) {
  for (std::uint32_t i = 0; i < run.spin; ++i) {
    if (ready()) return true;
    if (run.cancelled.load(std::memory_order_relaxed)) return false;
    __builtin_ia32_pause();
  }
  for (;;) {
    const std::uint32_t key = sleep.announce();
    const bool done = ready();
    if (done || run.cancelled.load()) {
      sleep.withdraw();
      return done;
    }
    sleep.commit(key, Sleep::kForever);
  }
}

/// The action that is number `count` (from 1) of a stream since the start; kNoAction if there is
/// none.
inline constexpr std::uint32_t kNoAction = 0xFFFFFFFFu;
std::uint32_t action_at(const PiperProgram& program, std::uint32_t stream, std::uint64_t count);

/// The table that programs call; one for all ranks. In the second one `wake` also records the
/// action that has ended, and library calls are timed: it is for traced runs, whose programs call
/// it after every action.
const PiperApi& executor_api();
const PiperApi& recording_api();
/// A busy or sleeping pause of random length, a function of the seed, the rank and the count of
/// pauses.
void random_delay(const RandomDelays& delays, std::uint32_t rank, std::uint64_t count);
std::uint64_t random_delay_ns(const RandomDelays& delays, std::uint32_t rank, std::uint64_t key);

/// The loop of one device thread.
void run_device(LocalRank& rank);

}  // namespace piper::runtime
