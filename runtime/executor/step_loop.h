#pragma once
// The steps of one run, on the thread that called `run`: begins them a few ahead, and reports those
// that have ended, in order.
//
//   StepLoop loop(job, device, run, stop, on_step, others);
//   loop.run();
//   if (loop.failure()) ...;
//   loop.reported();

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/peer_processes.h"
#include "runtime/executor/step_reports.h"

namespace piper::runtime {

class StepLoop {
 public:
  /// `peers`: null if all ranks are in this process. `stop`: once it is true no step begins that no
  /// rank, in any process, has reached.
  StepLoop(const PiperJob& job, Device& device, const DeviceRun& run, const std::atomic<bool>& stop,
           const OnStep& on_step, PeerProcesses* peers);

  /// Returns when nothing is running. Throws std::bad_alloc; then nothing has begun.
  void run();
  /// Steps that have ended on all ranks, each with a call of `on_step` unless it has failed.
  std::uint64_t reported() const { return reported_; }
  const std::optional<Failure>& failure() const { return failure_; }

 private:
  void take_failure_of_others();
  bool goes_on();
  bool device_lives() const { return device_.failure() == nullptr; }
  void begin_steps();
  bool may_begin();
  bool report();
  void call_back(const StepRecord& record);
  void wait();
  void end_run();
  void add_places_of_refused();
  void add_last_actions();
  void keep_failure();

  Device& device_;
  const DeviceRun run_;
  const std::atomic<bool>& stop_;
  const OnStep& on_step_;
  PeerProcesses* const peers_;
  const std::uint64_t max_steps_;  // the maximum number of steps in flight
  StepReports reports_;
  std::vector<const ReportSlots*> slots_;  // of the local ranks, then of other processes
  const std::size_t local_ranks_;
  std::uint64_t started_ = 0, ended_ = 0, reported_ = 0;
  bool stopped_ = false;            // no further step begins
  bool device_idle_ = false;        // the device has ended its run
  std::optional<Failure> failure_;  // the first
};

}  // namespace piper::runtime
