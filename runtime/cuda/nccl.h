#pragma once
// What the runtime asks of NCCL, and nothing more: so small that tests have one of their own (tests/cuda/test_nccl.h), which moves messages between processes of the host.
//
// As NCCL has it: communicators do not block, so a call may give kNcclInProgress, and nothing that follows on its stream is enqueued, nor the communicator used, before `state` says something else. Within
// a group calls are gathered, and begin together at its end, which comes after a call that failed, too. Members make the same calls on a communicator in the same order. One thread calls; `state` and
// `abort` may come from others.
//
//   std::unique_ptr<Nccl> nccl = open_nccl("/usr/lib/libnccl.so.2", failure);

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/cuda/driver.h"
#include "runtime/failure.h"

namespace piper::runtime::cuda {

/// An ncclResult_t.
using NcclResult = int;
inline constexpr NcclResult kNcclSuccess = 0, kNcclInvalidUsage = 5, kNcclRemoteError = 6, kNcclInProgress = 7;

/// As nccl.h declares them; of the settings those that every supported version has.
struct NcclId {
  char bytes[128];
};
struct NcclConfig {
  std::size_t size;
  unsigned magic, version;
  int blocking, cga_cluster_size, min_ctas, max_ctas;
  const char* net_name;
  int split_share;
};

using NcclCommunicator = struct NcclCommunicatorObject*;

enum class NcclKind : std::uint8_t { send, receive, all_reduce, broadcast, reduce, reduce_scatter, all_gather };

/// `send`, `receive`, `broadcast` and `reduce` have a peer: the other member, the root, which alone has a `to` of a reduce. Sums are the only reductions. `count` is that of the call: of a block for reduce_scatter and all_gather.
struct NcclCall {
  NcclKind kind = NcclKind::send;
  const void* from = nullptr;
  void* to = nullptr;
  std::uint64_t count = 0;
  std::uint32_t dtype = 0;  // PiperDType
  std::uint32_t peer = 0;
};
/// `ncclSend`.
const char* name_of(NcclKind kind);

class Nccl {
 public:
  virtual ~Nccl() = default;

  /// `NCCL 2.28.9`.
  virtual std::string name() const = 0;
  /// NCCL's words for a result, and what it says of the last one; `communicator` may be null.
  virtual std::string text_of(NcclResult result, NcclCommunicator communicator) const = 0;

  virtual NcclResult make_id(NcclId* id) = 0;
  /// `most_blocks`: that a communication of it may occupy on the device; 0: as NCCL likes.
  virtual NcclResult open(NcclCommunicator* made, std::uint32_t members, const NcclId& id, std::uint32_t self, std::uint32_t most_blocks) = 0;
  virtual NcclResult state(NcclCommunicator communicator, NcclResult* state) = 0;
  /// Frees it when all its communications have ended, on all members, and no graph has calls of it any more: until then it is in progress.
  virtual NcclResult finalize(NcclCommunicator communicator) = 0;
  virtual NcclResult destroy(NcclCommunicator communicator) = 0;
  /// Ends what is under way at once, and frees it: returns when no graph has calls of it any more.
  virtual NcclResult abort(NcclCommunicator communicator) = 0;

  virtual NcclResult group_start() = 0;
  virtual NcclResult group_end() = 0;
  virtual NcclResult enqueue(NcclCommunicator communicator, Stream stream, const NcclCall& call) = 0;
};

/// NCCL as a library. Null with the reason in `failure`: kCudaMissing, kCudaTooOld.
std::unique_ptr<Nccl> open_nccl(const std::string& path, Failure& failure);

}  // namespace piper::runtime::cuda
