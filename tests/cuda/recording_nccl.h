#pragma once
// An NCCL that moves nothing: it records its calls in the trace of a RecordingDriver, with the
// bytes that they read and write. A group is one operation; if two calls of it touch the same
// bytes, one of them writing, the test fails, because they run at once. fails the test, for they
// run at once.
//
//   auto driver = std::make_unique<RecordingDriver>(operands, trace);
//   RecordingNccl nccl(*driver);

#include <memory>
#include <vector>

#include "runtime/cuda/nccl.h"
#include "tests/cuda/recording_driver.h"

namespace piper::test {

class RecordingNccl final : public runtime::cuda::Nccl {
 public:
  using NcclResult = runtime::cuda::NcclResult;
  using NcclCommunicator = runtime::cuda::NcclCommunicator;

  explicit RecordingNccl(RecordingDriver& driver) : driver_(driver) {}

  std::string name() const override { return "an NCCL that moves nothing"; }
  std::string text_of(NcclResult result, NcclCommunicator) const override {
    return "result " + std::to_string(result);
  }
  NcclResult make_id(runtime::cuda::NcclId*) override { return runtime::cuda::kNcclSuccess; }
  NcclResult open(NcclCommunicator* created, std::uint32_t members, const runtime::cuda::NcclId& id,
                  std::uint32_t self, std::uint32_t most_blocks) override;
  NcclResult state(NcclCommunicator, NcclResult* state) override {
    return *state = runtime::cuda::kNcclSuccess;
  }
  NcclResult finalize(NcclCommunicator) override { return runtime::cuda::kNcclSuccess; }
  NcclResult destroy(NcclCommunicator) override { return runtime::cuda::kNcclSuccess; }
  NcclResult abort(NcclCommunicator) override { return runtime::cuda::kNcclSuccess; }
  NcclResult group_start() override;
  NcclResult group_end() override;
  NcclResult enqueue(NcclCommunicator communicator, runtime::cuda::CudaStream stream,
                     const runtime::cuda::NcclCall& call) override;

 private:
  struct Member {
    std::uint32_t members = 0, self = 0;
  };

  RecordingDriver& driver_;
  std::vector<std::unique_ptr<Member>> members_;
  bool in_group_ = false;
  runtime::cuda::CudaStream stream_ = nullptr;  // of the open group
  std::vector<std::vector<Touched>> gathered_;  // per call
};

}  // namespace piper::test
