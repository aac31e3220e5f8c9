#include "runtime/executor/step_loop.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <new>
#include <thread>
#include <utility>

#include "runtime/data/step_data.h"

namespace piper::runtime {

namespace {

/// With several processes a started step is not taken back, so few are in flight: a stop must not
/// wait for many.
constexpr std::uint64_t kMaxBesideOthers = 2;
constexpr std::chrono::microseconds kOthersLook(50);

}  // namespace

StepLoop::StepLoop(const PiperJob& job, Device& device, const DeviceRun& run,
                   const std::atomic<bool>& stop, const OnStep& on_step, PeerProcesses* peers)
    : device_(device),
      run_(run),
      stop_(stop),
      on_step_(on_step),
      peers_(peers),
      max_steps_(peers != nullptr ? std::min(device.most_steps(), kMaxBesideOthers)
                                  : device.most_steps()),
      reports_(job, run),
      local_ranks_(job.num_ranks) {
  for (std::uint32_t rank = 0; rank < job.num_ranks; ++rank)
    slots_.push_back(&device.reports(rank));
  if (peers == nullptr) return;
  for (const auto& slots : peers->slots(run.phase)) slots_.push_back(slots.get());
}

void StepLoop::run() {
  device_.begin_run(run_);
  try {
    while (goes_on()) {
      begin_steps();
      if (device_lives() && !report()) wait();
    }
  } catch (const std::bad_alloc&) {
    device_.fail({.code = kOutOfMemory, .message = "no memory for the tables of the run"});
  }
  // Processes affected by this failure need not wait until this device is idle.
  keep_failure();
  end_run();
  keep_failure();
}

/// A device learns of a failure elsewhere only here.
void StepLoop::take_failure_of_others() {
  if (peers_ != nullptr && peers_->group().failed())
    device_.fail(device_.located(*peers_->group().failure()));
}

bool StepLoop::goes_on() {
  take_failure_of_others();
  if (!device_lives()) return false;
  if (peers_ == nullptr && !stopped_ && (stop_.load() || failure_)) {
    stopped_ = true;
    started_ = device_.take_back_steps();
  }
  return reported_ < started_ || (started_ < run_.steps && !stopped_);
}

void StepLoop::begin_steps() {
  // The report of a step takes the slot of a much earlier one.
  while (started_ < run_.steps && started_ - ended_ < max_steps_ &&
         started_ - reported_ < kReportSlots && may_begin())
    device_.begin_step(started_++);
}

bool StepLoop::may_begin() {
  if (stopped_ || !device_lives()) return false;
  if (peers_ == nullptr) return true;
  if (stop_.load()) peers_->group().request_stop();
  const ProcessGroup::Begin begin = peers_->group().begin_step();
  stopped_ = begin == ProcessGroup::Begin::no;
  return begin == ProcessGroup::Begin::yes;
}

/// Reports the next step that has ended, once all its numbers are here.
bool StepLoop::report() {
  if (reported_ == ended_ || (peers_ != nullptr && !peers_->take(run_.phase, reported_)))
    return false;
  const StepRecord& record = reports_.take(reported_, slots_);
  if (reports_.failure()) {
    device_.fail(*reports_.failure());
    return true;
  }
  ++reported_;
  if (on_step_ && !failure_) call_back(record);
  return true;
}

void StepLoop::call_back(const StepRecord& record) {
  try {
    failure_ = on_step_(record);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {
    failure_ = Failure{.code = kBadJob, .message = "the callback of a step threw an exception"};
  }
  // The steps in flight end, unless they wait for processes that have stopped.
  if (failure_ && peers_ != nullptr) device_.fail(*failure_);
}

void StepLoop::wait() {
  if (ended_ < started_) {
    const std::uint64_t before = ended_;
    ended_ = device_.wait(before);
    for (std::uint64_t step = before; peers_ != nullptr && step < ended_; ++step)
      peers_->send(run_.phase, step, std::span(slots_).first(local_ranks_));
    return;
  }
  // The missing reports come from other processes, which may wait for steps in flight here.
  if (stopped_ || started_ == run_.steps) {
    end_run();
  } else {
    device_.look();
  }
  std::this_thread::sleep_for(kOthersLook);
}

void StepLoop::end_run() {
  if (std::exchange(device_idle_, true)) return;
  while (!device_.end_run()) take_failure_of_others();
}

/// Adds a note with the places of a refused value in the data of the step. The failure of another
/// process has its own.
void StepLoop::add_places_of_refused() {
  if (!failure_->refused || !failure_->step) return;
  const std::string places = run_.data->places_of(*failure_->refused, *failure_->step);
  if (!places.empty()) failure_->notes.push_back({.text = "the batch has it " + places});
}

/// A message between processes that fails is mostly the consequence of a lost process.
void StepLoop::add_last_actions() {
  if (failure_->code == kUcxFailed)
    failure_ = device_.located(peers_->group().first_cause(*failure_));
  constexpr std::uint32_t kBetweenProcesses[] = {kProcessLost, kStalled, kUcxFailed, kNcclFailed};
  if (std::ranges::find(kBetweenProcesses, failure_->code) == std::end(kBetweenProcesses)) return;
  std::ranges::move(peers_->last_actions(device_), std::back_inserter(failure_->notes));
}

void StepLoop::keep_failure() {
  if (!failure_ && !device_lives()) {
    failure_ = *device_.failure();
    add_places_of_refused();
    if (peers_ != nullptr) add_last_actions();
    if (run_.phase == Phase::evaluation && failure_->step) {
      failure_->held_out = held_out_text(*run_.data, *failure_->step);
      failure_->step.reset();
    }
  }
  if (failure_ && peers_ != nullptr) peers_->group().fail(*failure_);
}

}  // namespace piper::runtime
