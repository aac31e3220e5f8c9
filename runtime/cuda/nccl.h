#pragma once
// The runtime's interface to NCCL, kept so small that tests have an implementation of their own
// (tests/cuda/test_nccl.h), which moves messages between processes of the host.
//
// As in NCCL, communicators do not block: a call may return kNcclInProgress, and until `state`
// changes nothing that follows is enqueued on its stream and the communicator is not used. Calls
// within a group are collected, and begin together at its end, which is called after a failed call,
// too. Members make the same calls on a communicator in the same order. One thread calls; `state`
// and `abort` may be called from others.
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
inline constexpr NcclResult kNcclSuccess = 0, kNcclInvalidUsage = 5, kNcclRemoteError = 6,
                            kNcclInProgress = 7;

/// As nccl.h declares them; only the settings that every supported version has.
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

enum class NcclKind : std::uint8_t {
  send,
  receive,
  all_reduce,
  broadcast,
  reduce,
  reduce_scatter,
  all_gather
};

/// `send`, `receive`, `broadcast` and `reduce` have a peer: the other member, or the root; only the
/// root has a `to` of a reduce. Sums are the only reductions. `count` is that of the call: of one
/// shard for reduce_scatter and all_gather.
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
  /// NCCL's text for a result, and its details of the last one; `communicator` may be null.
  virtual std::string text_of(NcclResult result, NcclCommunicator communicator) const = 0;

  virtual NcclResult make_id(NcclId* id) = 0;
  /// `most_blocks`: the maximum number of blocks of the device for one of its communications; 0:
  /// NCCL's choice.
  virtual NcclResult open(NcclCommunicator* created, std::uint32_t members, const NcclId& id,
                          std::uint32_t self, std::uint32_t most_blocks) = 0;
  virtual NcclResult state(NcclCommunicator communicator, NcclResult* state) = 0;
  /// Frees it when all its communications have ended, on all members, and no graph has calls of it:
  /// until then it is in progress.
  virtual NcclResult finalize(NcclCommunicator communicator) = 0;
  virtual NcclResult destroy(NcclCommunicator communicator) = 0;
  /// Ends communications in flight at once, and frees it: returns when no graph has calls of it.
  virtual NcclResult abort(NcclCommunicator communicator) = 0;

  virtual NcclResult group_start() = 0;
  virtual NcclResult group_end() = 0;
  virtual NcclResult enqueue(NcclCommunicator communicator, CudaStream cuda_stream,
                             const NcclCall& call) = 0;
};

/// NCCL as a library. Null with the reason in `failure`: kCudaMissing, kCudaTooOld.
std::unique_ptr<Nccl> open_nccl(const std::string& path, Failure& failure);

}  // namespace piper::runtime::cuda
