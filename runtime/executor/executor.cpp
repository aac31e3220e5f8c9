#include "runtime/executor/executor.h"

#include <algorithm>
#include <new>
#include <string>

#include "runtime/data/step_data.h"
#include "runtime/executor/check_tables.h"
#include "runtime/executor/parameters.h"
#include "runtime/executor/peer_processes.h"
#include "runtime/executor/step_loop.h"

namespace piper::runtime {

namespace {

Failure no_memory() {
  return {.code = kOutOfMemory, .message = "no memory for the tables of the run"};
}

RunResult failed(Failure failure) {
  return {.ended = Ended::failed, .steps = 0, .failure = std::move(failure)};
}

}  // namespace

struct Executor::Parts {
  Parts(const PiperJob& job, std::unique_ptr<Device> device, const ExecutorOptions& options)
      : job(job), record(options.record), next_step(job.first_step), device(std::move(device)) {}

  ~Parts() {
    if (peers) peers->stop_watching();
  }

  const PiperJob& job;
  const bool record;
  std::unique_ptr<StepData> data[2];  // by Phase
  std::string identities[2];          // of the data; empty until they are asked for
  std::uint64_t next_step;
  std::optional<PeerProcesses> peers;  // empty if all ranks are in this process
  std::unique_ptr<Device> device;
  std::vector<RecordedRank> recorded;
  std::optional<Failure> failure;  // nothing runs after it

  /// False with the reason in `failure`; false without one when stopped.
  bool open(const ExecutorOptions& options, const Processes& processes, Failure& failure) {
    const auto good = [&](std::optional<Failure> found) {
      if (found) failure = std::move(*found);
      return !found;
    };
    if (!good(check_tables(job))) return false;
    if (processes.group != nullptr) {
      const Launch& launch = processes.group->launch();
      const ProcessRanks ranks = ranks_of(launch.rank, launch.world, job.world);
      if (processes.whole->num_ranks != job.world || job.num_ranks != ranks.count ||
          job.num_ranks == 0 || job.ranks[0].rank != ranks.first)
        return good(Failure{.code = kBadJob, .message = "a process has its share of all ranks"});
      peers.emplace(processes, job, options.out_folder);
    }
    const std::span inputs(job.inputs, job.num_inputs);
    data[0] = open_data(job.data, inputs, job.seed, DataUse::training, failure, options.texts);
    if (!data[0]) return false;
    if (evaluates() && !(data[1] = open_held_out(job, failure, options.texts))) return false;
    if (!device->open(job, options, processes, failure)) return false;
    if (peers) peers->watch(*device);
    return !peers || good(peers->agree(*device, data_facts()));
  }

  /// The data of this process: samples that another process reads from other files would mix.
  PeerProcesses::Facts data_facts() {
    PeerProcesses::Facts facts = {{"data", identity(Phase::training)}};
    if (data[1]) facts.emplace_back("held-out data", identity(Phase::evaluation));
    return facts;
  }

  /// Computed once: files of the data are read for it.
  const std::string& identity(Phase phase) {
    const auto at = static_cast<std::size_t>(phase);
    if (identities[at].empty()) identities[at] = data[at]->identity();
    return identities[at];
  }

  bool evaluates() const { return job.ranks[0].evaluation != nullptr; }
  /// With the ranks of other processes.
  std::span<const PiperJobRank> all_ranks() const {
    return peers ? peers->ranks() : std::span(job.ranks, job.num_ranks);
  }

  std::optional<Failure> keep_recorded(std::uint64_t steps) {
    recorded = device->recorded(steps);
    if (!peers || recorded.empty()) return std::nullopt;
    auto failure = peers->collect(recorded);
    return failure ? std::optional(device->located(std::move(*failure))) : std::nullopt;
  }

  template <typename Bytes>
  std::vector<std::uint64_t> of_ranks(const Bytes& bytes) const {
    std::vector<std::uint64_t> list;
    for (std::uint32_t rank = 0; rank < job.num_ranks; ++rank) list.push_back(bytes(rank));
    return list;
  }
};

Executor::Executor(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Executor::~Executor() = default;

std::unique_ptr<Executor> Executor::create(const PiperJob& job, std::unique_ptr<Device> device,
                                           const ExecutorOptions& options, Failure& failure,
                                           const Processes& processes) {
  try {
    auto parts = std::make_unique<Parts>(job, std::move(device), options);
    if (parts->open(options, processes, failure))
      return std::unique_ptr<Executor>(new Executor(std::move(parts)));
  } catch (const std::bad_alloc&) {
    failure = no_memory();
  }
  return nullptr;
}

RunResult Executor::run(Phase phase, std::uint64_t steps, const OnStep& on_step) {
  Parts& parts = *parts_;
  if (parts.failure) return failed(*parts.failure);
  const bool training = phase == Phase::training;
  if (!training && !parts.evaluates())
    return failed({.code = kBadJob, .message = "the job has no evaluation program"});
  DeviceRun asked{.phase = phase,
                  .first_step = training ? parts.next_step : 0,
                  .steps = steps,
                  .data = parts.data[static_cast<std::size_t>(phase)].get()};
  asked.record = parts.record && training;
  // Another process may already be at a later step.
  asked.stop = parts.peers ? nullptr : &stop_requested_;
  RunResult result;
  try {
    StepLoop loop(parts.job, *parts.device, asked, stop_requested_, on_step,
                  parts.peers ? &*parts.peers : nullptr);
    loop.run();
    result.steps = loop.reported();
    result.failure = loop.failure();
    if (asked.record && !result.failure) result.failure = parts.keep_recorded(result.steps);
  } catch (const std::bad_alloc&) {
    result.failure = no_memory();
  }
  if (result.failure && parts.peers) parts.peers->group().fail(*result.failure);
  if (training) parts.next_step += result.steps;
  if (parts.peers) parts.peers->end_run(result.steps);
  parts.failure = result.failure;
  result.ended = result.failure         ? Ended::failed
                 : result.steps < steps ? Ended::stopped
                                        : Ended::finished;
  return result;
}

Batches Executor::held_out() const {
  return parts_->evaluates() ? parts_->data[1]->batches() : Batches();
}
std::uint64_t Executor::next_step() const { return parts_->next_step; }

StateMemory Executor::state_memory() const {
  Parts* const parts = parts_.get();
  Device* const device = parts->device.get();
  StateMemory memory;
  memory.job = &parts->job;
  memory.ranks = parts->all_ranks();
  memory.group = parts->peers ? &parts->peers->group() : nullptr;
  memory.local = [parts](std::size_t rank) -> std::optional<std::size_t> {
    if (!parts->peers) return rank;
    const std::uint32_t local = parts->all_ranks()[rank].rank - parts->job.ranks[0].rank;
    return local < parts->job.num_ranks ? std::optional<std::size_t>(local) : std::nullopt;
  };
  memory.read = [device](std::size_t rank, bool on_host, std::uint64_t offset,
                         std::uint64_t bytes) {
    return device->read(rank, on_host, offset, bytes);
  };
  memory.write = [device](std::size_t rank, bool on_host, std::uint64_t offset, const void* from,
                          std::uint64_t bytes) {
    return device->write(rank, on_host, offset, from, bytes);
  };
  memory.failure = [device]() -> std::optional<Failure> {
    return device->failure() ? std::optional(*device->failure()) : std::nullopt;
  };
  return memory;
}
std::string Executor::data_identity() const { return parts_->identity(Phase::training); }

std::optional<ParameterValues> Executor::read_parameter(std::string_view name,
                                                        ParamTensor part) const {
  Device& device = *parts_->device;
  if (parts_->peers) return parts_->peers->read_parameter(device, name, part);
  return collect_parameter(
      parts_->all_ranks(), name, part,
      [&](std::size_t rank, bool on_host, std::uint64_t offset, std::uint64_t bytes) {
        return device.read(rank, on_host, offset, bytes);
      });
}
std::vector<std::string> Executor::parameter_names() const {
  return counted_parameters(parts_->all_ranks());
}

const std::vector<RecordedRank>& Executor::recorded() const { return parts_->recorded; }
std::vector<Failure> Executor::warnings() const { return parts_->device->warnings(); }
std::vector<std::uint64_t> Executor::arena_bytes() const {
  if (!parts_->peers)
    return parts_->of_ranks([&](std::size_t rank) { return parts_->device->arena_bytes(rank); });
  std::vector<std::uint64_t> list;
  for (const PiperJobRank& rank : parts_->all_ranks()) {
    list.push_back(std::max(rank.program->arena_bytes,
                            rank.evaluation != nullptr ? rank.evaluation->arena_bytes : 0));
  }
  return list;
}
std::vector<std::uint64_t> Executor::touched_bytes() const {
  return parts_->of_ranks([&](std::size_t rank) { return parts_->device->touched_bytes(rank); });
}
bool Executor::skip_destructors() const { return parts_->device->skip_destructors(); }

}  // namespace piper::runtime
