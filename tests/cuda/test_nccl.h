#pragma once
// An NCCL for tests: processes on one machine, each with a HostDriver, exchange files in a folder
// that they share. It follows NCCL's rules, and reports violations: a communicator is being set up
// until all members have joined, and again at its first call of each kind; calls begin at the end
// of their group, and every call is in one; the members of a communicator make the same calls in
// the same order; and a communicator does not end while a graph has calls of it.
//
// Sums add the last member first, so sums of more than two round differently from member order, as
// NCCL's do.

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "runtime/cuda/nccl.h"
#include "tests/cuda/host_driver.h"

namespace piper::test {

struct TestNcclOptions {
  std::string folder = {};   // shared by all processes
  std::string refused = {};  // the function of NCCL that fails
  // The communication, counted from 1, that fails in flight; 0: none.
  std::uint64_t breaks = 0;
  // The communication, counted from 1, at which the process is killed; 0: none.
  std::uint64_t killed_at = 0;
  std::string calls = {};  // a file for the calls, one a line
};

class TestNccl final : public runtime::cuda::Nccl {
 public:
  using NcclResult = runtime::cuda::NcclResult;
  using NcclCommunicator = runtime::cuda::NcclCommunicator;
  using NcclCall = runtime::cuda::NcclCall;

  TestNccl(HostDriver& driver, TestNcclOptions options);
  ~TestNccl() override;

  std::string name() const override { return "NCCL of the tests"; }
  std::string text_of(NcclResult result, NcclCommunicator communicator) const override;
  NcclResult make_id(runtime::cuda::NcclId* id) override;
  NcclResult open(NcclCommunicator* created, std::uint32_t members, const runtime::cuda::NcclId& id,
                  std::uint32_t self, std::uint32_t most_blocks) override;
  NcclResult state(NcclCommunicator communicator, NcclResult* state) override;
  NcclResult finalize(NcclCommunicator communicator) override;
  NcclResult destroy(NcclCommunicator communicator) override;
  NcclResult abort(NcclCommunicator communicator) override;
  NcclResult group_start() override;
  NcclResult group_end() override;
  NcclResult enqueue(NcclCommunicator communicator, runtime::cuda::CudaStream stream,
                     const NcclCall& call) override;

 private:
  struct Member;   // of a communicator
  struct Waiting;  // a communication that has begun
  NcclResult launch(Member& member, runtime::cuda::CudaStream stream, std::vector<NcclCall> calls);
  HostTries begin(Member& member, const std::vector<NcclCall>& calls);
  void write_down(const Member& member, const std::vector<NcclCall>& calls);

  HostDriver& driver_;
  const TestNcclOptions options_;
  const std::thread::id owner_ = std::this_thread::get_id();
  std::vector<std::unique_ptr<Member>> members_;
  int groups_ = 0;                                         // open groups
  NcclResult group_failed_ = runtime::cuda::kNcclSuccess;  // of a call in the open group
  std::vector<std::tuple<Member*, runtime::cuda::CudaStream, NcclCall>> gathered_;
  static inline std::uint64_t ids_ = 0;  // a process may open NCCL again
  std::uint64_t communications_ = 0;
};

}  // namespace piper::test
