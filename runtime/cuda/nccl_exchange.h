#pragma once
// Messages between processes, one GPU each, by NCCL: every communication of the plan is a group of
// calls on a stream of this process's rank.
//
// Guarantees: this rank's calls in a step are planned before the first one, from the tables of all
// ranks. Every communicator has moved an element by each kind of call before step 1, in the order
// of all ranks, so nothing is set up while steps are captured. A thread watches the communicators
// and the other processes: after a failure of either all communications end, and nothing waits for
// them. The end of an exchange drops all graphs, because NCCL waits for them, and has its own time
// limit, whatever NCCL does.

#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "runtime/cuda/exchange.h"
#include "runtime/cuda/gpu.h"
#include "runtime/cuda/nccl.h"
#include "runtime/processes/process_group.h"
#include "runtime/transport/match_communications.h"

namespace piper::runtime::cuda {

class NcclExchange final : public Exchange {
 public:
  /// `job`: the job with the ranks of all processes; only this process's rank is on the GPU.
  NcclExchange(Gpu& gpu, ProcessGroup& group, std::unique_ptr<Nccl> nccl, const PiperJob& job);
  ~NcclExchange() override;

  std::uint64_t library_bytes() const override;
  std::optional<Failure> connect(Phase phase) override;
  int arrive(GpuRank& rank, std::uint32_t stream, std::uint32_t action,
             std::uint32_t position) override;
  std::optional<Failure> lost() override;

 private:
  struct Communicator {
    NcclCommunicator handle = nullptr;
    const PiperCommunicator* members = nullptr;
    bool evaluates = false;  // evaluation uses this communicator, too
  };
  // Adds a sum in scratch to the values at its destination.
  struct Adds {
    std::size_t call = 0;      // the call that makes the sum
    std::uint64_t offset = 0;  // in scratch
    // table: both addresses, on the device.
    unsigned char *from = nullptr, *to = nullptr, *table = nullptr;
    std::uint64_t elements = 0;
    std::uint32_t dtype = 0;
  };
  struct Communication {
    std::size_t communicator = 0;
    std::vector<std::pair<unsigned char*, std::uint64_t>> cleared;
    std::vector<NcclCall> calls;
    std::vector<Adds> adds;
    // To and from the memory of the host: from, to, bytes.
    std::vector<NcclCall> copies;
    std::uint64_t scratch = 0;  // bytes
  };

  std::optional<Failure> plan(Phase phase, const MatchedComms& matched);
  void plan_part(Communication& planned, const std::vector<CommMember>& matched_comm,
                 std::size_t self, std::uint32_t part);
  void plan_reduce_scatter(Communication& planned, const Operation& operation,
                           const PiperMessagePart& part, const unsigned char* in);
  void plan_all_gather(Communication& planned, const Operation& operation,
                       const PiperMessagePart& part, const unsigned char* in);
  /// The communicators for communications with other processes, by number, in the order of all
  /// ranks.
  std::map<std::uint32_t, const PiperCommunicator*> used(Phase phase) const;
  std::optional<Failure> open_communicators(Phase phase);
  std::optional<Failure> open_communicator(const PiperCommunicator& members);
  std::optional<Failure> place_scratch(Phase phase);
  std::optional<Failure> exchange_elements(Phase phase);

  bool call(const Communication& communication, CudaStream cuda_stream, GpuRank* rank,
            std::uint32_t action);
  /// Waits until all calls begun on the communicator are enqueued. False after a failure.
  bool settle(NcclCommunicator communicator, const char* call, GpuRank* rank, std::uint32_t action);
  bool fail(NcclResult result, const char* call, NcclCommunicator communicator, const GpuRank* rank,
            std::uint32_t action);
  /// Keeps the reason why everything has ended. Always false.
  bool others_failed(const GpuRank* rank, std::uint32_t action);
  void watch();
  /// False if one has not ended in time; those before it are gone.
  bool finalize_all();
  /// Begins to abort all communicators, once.
  void abort_all();

  Gpu& gpu_;
  ProcessGroup& group_;
  // Threads that abort communicators may outlive the exchange.
  const std::shared_ptr<Nccl> nccl_;
  const PiperJob& whole_job_;
  // The position of this process's rank in the whole job.
  std::size_t self_ = 0;
  std::map<std::uint32_t, std::size_t> known_;                 // id -> communicator
  std::vector<std::vector<Communication>> communications_[2];  // by Phase, queue, position
  unsigned char *zeros_ = nullptr, *elements_ = nullptr;
  std::uint64_t zero_bytes_ = 0;

  // Shared with the thread.
  std::timed_mutex mutex_;
  std::vector<Communicator> communicators_;
  // Also written without the lock, when a call that holds it waits for the device.
  std::atomic<bool> aborted_ = false;
  std::vector<std::future<void>> aborts_;  // by the thread, and after its end
  std::atomic<bool> lost_{false}, ends_{false};
  std::atomic<bool> noticed_{false};  // the thread that runs the steps has seen lost_
  Failure failure_;                   // set before lost_ is true
  std::thread watch_;
};

}  // namespace piper::runtime::cuda
