#pragma once
// What runs the local ranks of a job, as the executor sees it: threads of this process (runtime/cpu) or a GPU (runtime/cuda).
//
// A device has the arenas of its ranks and runs their steps in order, several under way at once; it begins a step only when it is told to, and keeps what the ranks reported. Messages to ranks of other processes
// are its own matter; of their stops, reports and failures it learns from the executor alone.
//
// Guarantees: of its own failures the first is kept, with the action that failed where there is one. What waits within it watches for failures, and for how long nothing has moved: no call waits for ever.
// All calls come from one thread.
//
//   if (!device.open(job, options, {}, failure)) ...;
//   device.begin_run({.phase = Phase::training, .steps = 2, .data = &data});
//   std::uint64_t ended = 0;
//   device.begin_step(0);
//   device.begin_step(1);
//   while (ended < 2 && !device.failure()) ended = device.wait(ended);
//   while (!device.end_run()) ...;  // who waits for others looks whether they live
//   device.read(0, false, offset, bytes);

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/abi.h"
#include "runtime/device/report_slots.h"
#include "runtime/failure.h"
#include "runtime/options.h"
#include "runtime/phase.h"
#include "runtime/trace/recorder.h"

namespace piper::runtime {

class ProcessGroup;
class StepData;

/// The processes of which this is one: the job has its rank alone, `whole` those of all.
struct Processes {
  ProcessGroup* group = nullptr;  // null: the job has all ranks
  const PiperJob* whole = nullptr;
};

struct DeviceOptions {
  Options runtime;
  std::string out_folder;              // flight records lie here; empty: in files without a name
  std::function<bool()> stopped = {};  // once it is true `open` gives up; it is asked on several threads
};

/// Some steps of one phase.
struct DeviceRun {
  Phase phase = Phase::training;
  std::uint64_t first_step = 0;    // of training
  std::uint64_t steps = 0;         // that are begun at most
  const StepData* data = nullptr;  // of the phase
  bool record = false;             // when the actions of the last step run, and what they take
  const std::atomic<bool>* stop = nullptr;  // once it is true no step begins any more; null: that is told by nobody
};

class Device {
 public:
  virtual ~Device() = default;

  /// Arenas, flight records, first values, and whatever else a step needs. The tables have been checked; they and the group outlive the device. Refuses ranks of other processes that it does not reach. False
  /// with the reason in `failure`; false without one when stopped. Throws std::bad_alloc.
  virtual bool open(const PiperJob& job, const DeviceOptions& options, const Processes& processes, Failure& failure) = 0;

  // ---- a run
  /// Throws std::bad_alloc, and then nothing has begun.
  virtual void begin_run(const DeviceRun& run) = 0;
  /// So many steps may have been begun and not have ended.
  virtual std::uint64_t most_steps() const = 0;
  /// Steps from 0 on, one after the other. Waits for no rank: each begins the step when it comes to it.
  virtual void begin_step(std::uint64_t step) = 0;
  /// Takes back the steps that no rank has come to, and no further ones begin. How many of the run are left.
  virtual std::uint64_t take_back_steps() = 0;
  /// Waits until more than `ended` of the steps that were begun have ended on all ranks, until there is a failure, or for a moment. How many have ended: their reports are there.
  virtual std::uint64_t wait(std::uint64_t ended) = 0;
  /// Looks whether what is left of the steps has failed, for who waits for something else.
  virtual void look() = 0;
  /// Ends what is left of the steps: messages that nobody waits for; after a failure all of it. Waits for a moment: false where something still runs, and it is asked again.
  virtual bool end_run() = 0;

  // ---- failures
  /// The first one; null: none so far. Nothing can be run after it.
  virtual const Failure* failure() const = 0;
  /// Ends the run: what is under way need not end.
  virtual void fail(Failure failure) = 0;
  /// A failure of another process, at the action in which this device waits for it; as it is where it has a place already.
  virtual Failure located(Failure failure) const = 0;

  // ---- what came out; ranks by their number among the local ones
  /// Of the last kReportSlots steps.
  virtual const ReportSlots& reports(std::size_t rank) const = 0;
  /// What all ranks report in a step of a phase, by subject; nothing where that is known from the reports alone.
  virtual std::optional<std::vector<std::uint32_t>> reported(Phase phase) const = 0;
  /// The last of so many steps of a run that was recorded; empty where it was not.
  virtual std::vector<RecordedRank> recorded(std::uint64_t steps) const = 0;
  /// Bytes of a rank's arena between two runs, of that on the host where `on_host`; null where they cannot be read, and there is a failure. Valid until the next call.
  virtual const unsigned char* read(std::size_t rank, bool on_host, std::uint64_t offset, std::uint64_t bytes) = 0;
  virtual std::uint64_t arena_bytes(std::size_t rank) const = 0;
  /// One past the last byte of the arena that was written; with Options::check_memory, else 0.
  virtual std::uint64_t touched_bytes(std::size_t rank) = 0;
  /// What runs did otherwise than they might, and why.
  virtual std::vector<Failure> warnings() const { return {}; }
  /// Destructors of libraries that it opened take long and do nothing, or what they end does not end.
  virtual bool skip_destructors() const = 0;
};

}  // namespace piper::runtime
