#pragma once
// The executor's interface to the device that runs the local ranks of a job: threads of this
// process (runtime/cpu) or a GPU (runtime/cuda).
//
// A device owns the arenas of its ranks and runs their steps in order, several in flight at once;
// it begins a step only on request, and keeps the reports of the ranks. It carries messages to
// ranks of other processes itself; it learns of their stops, reports and failures from the executor
// alone.
//
// Guarantees: the first of its own failures is kept, with the action that failed if there is one.
// Every wait inside it watches for failures and for a stall: no call waits for ever. All calls come
// from one thread.
//
//   if (!device.open(job, options, {}, failure)) ...;
//   device.begin_run({.phase = Phase::training, .steps = 2, .data = &data});
//   std::uint64_t ended = 0;
//   device.begin_step(0);
//   device.begin_step(1);
//   while (ended < 2 && !device.failure()) ended = device.wait(ended);
//   while (!device.end_run()) ...;  // the caller also checks the other processes
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

/// The processes of the run: the job has this one's rank alone, `whole` has all ranks.
struct Processes {
  ProcessGroup* group = nullptr;  // null: the job has all ranks
  const PiperJob* whole = nullptr;
};

struct DeviceOptions {
  Options runtime;
  // The folder of flight records; empty: in files without a name.
  std::string out_folder;
  // Parameters get first values; otherwise they are zero until they are written.
  bool first_values = true;
  // Once it is true `open` gives up; it is called on several threads.
  std::function<bool()> stopped = {};
};

/// Some steps of one phase.
struct DeviceRun {
  Phase phase = Phase::training;
  std::uint64_t first_step = 0;    // of training
  std::uint64_t steps = 0;         // the maximum number that is begun
  const StepData* data = nullptr;  // of the phase
  // record when the actions of the last step run, and how long they take.
  bool record = false;
  // Once it is true no further step begins; null: no stop is asked for.
  const std::atomic<bool>* stop = nullptr;
};

class Device {
 public:
  virtual ~Device() = default;

  /// Allocates arenas and flight records, writes first values, and prepares all else that a step
  /// needs. The tables have been checked; they and the group outlive the device. Refuses ranks of
  /// other processes that it does not reach. False with the reason in `failure`; false without one
  /// when stopped. Throws std::bad_alloc.
  virtual bool open(const PiperJob& job, const DeviceOptions& options, const Processes& processes,
                    Failure& failure) = 0;

  // ---- a run
  /// Throws std::bad_alloc; then nothing has begun.
  virtual void begin_run(const DeviceRun& run) = 0;
  /// The maximum number of steps in flight.
  virtual std::uint64_t most_steps() const = 0;
  /// Steps from 0 on, one after the other. Waits for no rank: each rank begins the step when it
  /// reaches it.
  virtual void begin_step(std::uint64_t step) = 0;
  /// Takes back the steps that no rank has reached, and lets no further ones begin. Returns how
  /// many steps of the run remain.
  virtual std::uint64_t take_back_steps() = 0;
  /// Waits until more than `ended` of the steps have ended on all ranks, until there is a failure,
  /// or for a short time. Returns how many have ended: their reports are there.
  virtual std::uint64_t wait(std::uint64_t ended) = 0;
  /// Checks whether a step in flight has failed, for a caller that waits for something else.
  virtual void look() = 0;
  /// Ends the steps in flight: messages without a reader and, after a failure, all work. Waits for
  /// a short time: false if something still runs, and then it is called again.
  virtual bool end_run() = 0;

  // ---- failures
  /// The first one; null: none so far. Nothing can run after it.
  virtual const Failure* failure() const = 0;
  /// Ends the run: steps in flight need not end.
  virtual void fail(Failure failure) = 0;
  /// A failure of another process, at the action in which this device waits for it; unchanged if it
  /// already has a location.
  virtual Failure located(Failure failure) const = 0;

  // ---- results; ranks are numbered among the local ones
  /// The reports of the last kReportSlots steps.
  virtual const ReportSlots& reports(std::size_t rank) const = 0;
  /// The subjects that all ranks report in a step of a phase; empty if that is known from the
  /// reports alone.
  virtual std::optional<std::vector<std::uint32_t>> reported(Phase phase) const = 0;
  /// The last of the `steps` steps of a recorded run; empty if the run was not recorded.
  virtual std::vector<RecordedRank> recorded(std::uint64_t steps) const = 0;
  /// Bytes of a rank's arena between two runs, or of its arena on the host if `on_host`; null if
  /// they cannot be read: then there is a failure. Valid until the next call.
  virtual const unsigned char* read(std::size_t rank, bool on_host, std::uint64_t offset,
                                    std::uint64_t bytes) = 0;
  /// Writes such bytes. False if they cannot be written: then there is a failure.
  virtual bool write(std::size_t rank, bool on_host, std::uint64_t offset, const void* from,
                     std::uint64_t bytes) = 0;
  virtual std::uint64_t arena_bytes(std::size_t rank) const = 0;
  /// The flight record of a rank since `open`. Any thread may read it, by `snapshot_of`.
  virtual const PiperFlight& flight(std::size_t rank) const = 0;
  /// One past the last byte of the arena that was written; 0 without Options::check_memory.
  virtual std::uint64_t touched_bytes(std::size_t rank) = 0;
  /// Deviations of the runs from the fast path, each with its reason.
  virtual std::vector<Failure> warnings() const { return {}; }
  /// True if destructors of the libraries that it opened take long and do nothing, or do not
  /// return.
  virtual bool skip_destructors() const = 0;
};

}  // namespace piper::runtime
