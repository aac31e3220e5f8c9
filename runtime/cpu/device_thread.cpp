// The device thread and the functions that a program's step calls. Nothing here allocates or locks
// unless the run fails.
#include <unistd.h>

#include <cstring>
#include <new>
#include <thread>

#include "runtime/cpu/progress.h"
#include "runtime/cpu/run_state.h"
#include "runtime/data/step_data.h"
#include "runtime/device/library_api.h"
#include "runtime/device/state.h"

namespace piper::runtime {
namespace {

LocalRank& local(PiperRank* rank) { return *static_cast<LocalRank*>(rank->runtime); }

std::uint64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(time.tv_nsec);
}

/// Fails at the location of the action, unless `where` is given.
int fail_at(LocalRank& rank, std::uint32_t action, std::uint32_t code, std::string message,
            std::string hint = {}, const PiperSourceLocation* where = nullptr,
            std::optional<std::int64_t> refused = {}) {
  const PiperRank& active = rank.active();
  Failure failure{
      .code = code, .message = std::move(message), .hint = std::move(hint), .rank = rank.job->rank};
  failure.step = active.global_step;
  failure.refused = refused;
  failure.place = location_of(*active.program, action);
  if (where != nullptr && where->line != 0)
    failure.place = location_of(std::move(failure.place.action), *where);
  active.flight->failed = 1;
  rank.run->fail(std::move(failure));
  return 1;
}

int api_wait(PiperRank* rank, std::uint32_t stream, std::uint64_t target) {
  LocalRank& self = local(rank);
  const std::uint64_t* counter = &rank->completed[stream * PIPER_COUNTER_STRIDE];
  PiperFlight& flight = *rank->flight;
  flight.waiting_stream = stream;
  flight.waiting_target = target;
  flight.waiting = 1;
  if (!wait_until(*self.run, self.sleep,
                  [&] { return __atomic_load_n(counter, __ATOMIC_SEQ_CST) >= target; }))
    return 1;
  flight.waiting = 0;
  return 0;
}

void api_wake(PiperRank* rank) {
  LocalRank& self = local(rank);
  RunState& run = *self.run;
  if (run.delays.max_us) random_delay(run.delays, rank->rank, self.delay_count++);
  if (__atomic_load_n(&rank->completed[0], __ATOMIC_SEQ_CST) >= self.wake_at.load())
    run.engine->sleep().wake();
}

int api_fail(PiperRank* rank, std::uint32_t action, const PiperSourceLocation* where,
             const char* message, std::int64_t value) {
  return fail_at(local(rank), action, kActionFailed,
                 std::string(message) + ": `" + std::to_string(value) + "`", {}, where, value);
}

int api_load(PiperRank* rank, std::uint32_t action, std::uint32_t input, std::uint64_t first,
             std::uint64_t samples, void* to) {
  RunState& run = *local(rank).run;
  if (auto failure = run.data->load(input, rank->global_step, first, samples, to))
    return fail_at(local(rank), action, failure->code, std::move(failure->message),
                   std::move(failure->hint), &data_line(*run.job, run.phase));
  return run.cancelled.load(std::memory_order_relaxed);
}

std::uint32_t running_action(const PiperRank& rank) {
  return action_at(*rank.program, 0, rank.flight->started[0]);
}

void api_report(PiperRank* rank, std::uint32_t subject, const double* values, std::uint32_t count) {
  LocalRank& self = local(rank);
  if (auto failure = self.reports.keep(*self.run->job, self.run->phase, rank->step,
                                       rank->global_step, subject, values, count)) {
    fail_at(self, running_action(*rank), failure->code, std::move(failure->message),
            std::move(failure->hint));
  }
}

struct DeviceHost {
  // The library of this thread, opened and given its number of threads at the thread's first call.
  static const LibraryCalls* library(PiperRank* rank, std::uint32_t) {
    LocalRank& self = local(rank);
    return self.library ? self.library : open_library(self);
  }
  static int failed(PiperRank* rank, std::uint32_t action, int status,
                    const LibraryReport& report) {
    return fail_at(local(rank), action,
                   status == kLibraryOverrun ? kWorkspaceOverrun : kLibraryFailed,
                   library_failure(status, report));
  }

 private:
  static const LibraryCalls* open_library(LocalRank& rank) {
    Failure failure;
    const LibraryCalls* const library = rank.run->library->get(failure);
    if (!library) {  // the failure belongs to no rank and no line
      rank.active().flight->failed = 1;
      rank.run->fail(std::move(failure));
      return nullptr;
    }
    library->begin_thread(rank.run->options.threads);
    return rank.library = library;
  }
};

/// The action that has just ended is the last one of the flight record.
void api_record(PiperRank* rank) {
  const PiperFlightEvent& event =
      rank->flight->ring[(rank->flight->events - 1) % PIPER_FLIGHT_RING];
  local(rank).recorder.write(event.stream, rank->step, event.action, event.begin_ns, event.end_ns);
  api_wake(rank);
}

constexpr PiperApi kApi = {.abi_version = PIPER_ABI_VERSION,
                           .wait = api_wait,
                           .wake = api_wake,
                           .fail = api_fail,
                           .load = api_load,
                           .report = api_report,
                           .call = LibraryApi<DeviceHost>::call,
                           .now_ns = now_ns};

/// A library call of a run that is recorded.
int timed_call(PiperRank* rank, std::uint32_t action, const PiperCall* call) {
  const std::uint64_t begin = now_ns();
  const int status = LibraryApi<DeviceHost>::call(rank, action, call);
  local(rank).recorder.add_call(call_family(call->shape->kind), now_ns() - begin);
  return status;
}

constexpr PiperApi kRecordingApi = [] {
  PiperApi api = kApi;
  api.wake = api_record;
  api.call = timed_call;
  return api;
}();

void run_steps(LocalRank& self) {
  RunState& run = *self.run;
  PiperRank& rank = self.active();
  const PiperProgram& program = *rank.program;
  for (std::uint64_t step = 0; run.begin_step(self, step); ++step) {
    rank.step = step;
    rank.global_step = run.first_step + step;
    rank.flight->step = rank.global_step;
    self.reports.clear(step);
    if (run.phase == Phase::training) {
      const PiperScalars scalars = scalars_of_step(run.job->optimizer, rank.global_step);
      std::memcpy(rank.arena + program.scalars_offset, &scalars, sizeof(scalars));
    }
    const int status = program.step(run.api, &rank);
    if (run.cancelled.load()) return;
    if (status != 0) {
      fail_at(self, running_action(rank), kActionFailed,
              "the step ended with status `" + std::to_string(status) + "` and gave no reason");
      return;
    }
    self.ended_steps.store(step + 1);
    run.main_sleep.wake();
  }
}

}  // namespace

const PiperApi& executor_api() { return kApi; }
const PiperApi& recording_api() { return kRecordingApi; }

std::uint64_t random_delay_ns(const RandomDelays& delays, std::uint32_t rank, std::uint64_t key) {
  std::uint64_t x = delays.seed + (key + 1) * 0x9E3779B97F4A7C15u + (std::uint64_t{rank} << 48);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  x ^= x >> 31;
  // Half of the delays are zero, because runs of undelayed actions are a timing pattern, too.
  return x & 1 ? (x >> 8) % (std::uint64_t{delays.max_us} * 1000 + 1) : 0;
}

void random_delay(const RandomDelays& delays, std::uint32_t rank, std::uint64_t count) {
  const std::uint64_t ns = random_delay_ns(delays, rank, count * PIPER_MAX_STREAMS);
  if (ns) std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
}

void run_device(LocalRank& rank) {
  RunState& run = *rank.run;
  rank.library = nullptr;
  // A barrier around generated code: its calls may throw, and no exception may leave a thread.
  try {
    run_steps(rank);
  } catch (const std::bad_alloc&) {
    fail_at(rank, running_action(rank.active()), kOutOfMemory, "there is no memory left");
  } catch (...) {
    fail_at(rank, running_action(rank.active()), kActionFailed, "the step threw an exception");
  }
  run.devices_running.fetch_sub(1);
  run.main_sleep.wake();
}

}  // namespace piper::runtime
