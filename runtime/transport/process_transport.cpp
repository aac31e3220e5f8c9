#include "runtime/transport/process_transport.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "runtime/transport/local.h"
#include "runtime/transport/process_channel.h"
#include "runtime/transport/ucx.h"

namespace piper::runtime {

namespace {

// Marks the channels that reach other processes.
constexpr std::uint32_t kBetween = 1u << 31;

class ProcessTransport final : public Transport {
 public:
  /// `worker`: connected to all processes of the run, itself included.
  ProcessTransport(std::unique_ptr<UcxWorker> worker, std::vector<std::uint32_t> process_of_rank,
                   std::uint32_t process)
      : worker_(std::move(worker)),
        process_of_rank_(std::move(process_of_rank)),
        process_(process),
        local_(make_local_transport()) {
    worker_->on_note([this](std::string_view note) { take_note(note); });
  }
  ~ProcessTransport() override { forget_channels(); }

  std::uint32_t connect(const PiperCommunicator& communicator) override {
    std::vector<std::uint32_t> processes;
    for (std::uint32_t m = 0; m < communicator.num_members; ++m)
      processes.push_back(process_of_rank_[communicator.members[m]]);
    if (std::ranges::all_of(processes, [&](std::uint32_t at) { return at == process_; }))
      return local_->connect(communicator);
    const auto number = static_cast<std::uint32_t>(channels_.size());
    channels_.push_back(std::make_unique<ProcessChannel>(*worker_, epoch_, number, communicator,
                                                         std::move(processes)));
    channel_of_[{communicator.id, communicator.self}] = number;
    // Another process may have begun before this one.
    for (const std::string& note : std::exchange(early_, {})) take_note(note);
    return number | kBetween;
  }

  void disconnect() override {
    forget_channels();
    local_->disconnect();
    ++epoch_;
  }

  void start(Operation& operation) override {
    if (operation.channel & kBetween) {
      channel(operation).start(operation);
    } else {
      local_->start(operation);
    }
  }
  void poll(Operation& operation) override {
    if (operation.state != OperationState::pending) return;
    if (operation.channel & kBetween) {
      channel(operation).advance();
    } else {
      local_->poll(operation);
    }
  }
  bool moving(const Operation& operation) const override {
    return operation.channel & kBetween ? channels_[operation.channel & ~kBetween]->busy()
                                        : local_->moving(operation);
  }
  bool moves_only_on_start() const override { return false; }

  bool progress() override { return worker_->progress(); }
  bool flushed() override { return worker_->flushed(); }
  int descriptor() const override { return worker_->descriptor(); }
  bool arm() override { return worker_->arm(); }

 private:
  ProcessChannel& channel(const Operation& operation) {
    return *channels_[operation.channel & ~kBetween];
  }

  void forget_channels() {
    for (const auto& channel : channels_) channel->cancel();
    channels_.clear();
    channel_of_.clear();
  }

  /// An offer for a channel that is not there yet is kept until it is.
  void take_note(std::string_view note) {
    Offer offer;
    if (note.size() < sizeof offer) return;
    std::memcpy(&offer, note.data(), sizeof offer);
    const auto found = offer.epoch == epoch_ ? channel_of_.find({offer.communicator, offer.to})
                                             : channel_of_.end();
    if (found != channel_of_.end()) {
      channels_[found->second]->take(offer, note.substr(sizeof offer));
    } else if (offer.epoch >= epoch_) {
      early_.emplace_back(note);
    }
  }

  std::unique_ptr<UcxWorker> worker_;
  const std::vector<std::uint32_t> process_of_rank_;
  const std::uint32_t process_;
  std::unique_ptr<Transport> local_;
  std::vector<std::unique_ptr<ProcessChannel>> channels_;
  // By communicator and member.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> channel_of_;
  std::vector<std::string> early_;
  std::uint32_t epoch_ = 0;
};

std::string address_key(std::uint32_t process) { return "ucx." + std::to_string(process); }

}  // namespace

std::unique_ptr<Transport> open_process_transport(ProcessGroup& group,
                                                  std::vector<std::uint32_t> process_of_rank,
                                                  Failure& failure) {
  auto worker = UcxWorker::open(failure);
  if (!worker) return nullptr;
  const Launch& launch = group.launch();
  group.set(address_key(launch.rank), worker->address());
  for (std::uint32_t process = 0; process < launch.world; ++process) {
    const auto address = group.get(address_key(process));
    if (!address) {
      failure = *group.failure();
      return nullptr;
    }
    if (const char* const error = worker->connect(process, *address)) {
      failure = {
          .code = kUcxFailed,
          .message = worker->name() + " does not reach the process of rank " +
                     std::to_string(process) + ": " + error,
          .hint =
              "all processes need a transport in common; `UCX_TLS` and `UCX_NET_DEVICES` choose them"};
      return nullptr;
    }
  }
  return std::make_unique<ProcessTransport>(std::move(worker), std::move(process_of_rank),
                                            launch.rank);
}

}  // namespace piper::runtime
