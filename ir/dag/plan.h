#pragma once
// The plan: the actions of each role and the memory of its values (docs/execution.md sections 3 to
// 5).
//
// A role is a class of ranks whose programs differ only in tables. Its actions are in issue order,
// each on a stream; positions count per stream. A wait names the end of an action on another stream
// of the same rank, at step distance 0 or 1. Buffers are byte ranges of the rank's arena; two
// values share bytes only if happens-before allows it.

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/dag/dag.h"

namespace piper::dag {

using RoleId = Id<struct RoleTag>;
using BufferId = Id<struct BufferTag>;  // position in Role::buffers

/// unreduced: full gradients until a reduce_scatter has left a shard of them; gathered: full
/// parameters of which a device keeps a shard; offloaded: values in the memory of the host;
/// offloaded_optimizer: optimizer state there.
enum class BufferClass : std::uint8_t {
  parameters,
  gradients,
  optimizer,
  unreduced,
  gathered,
  activations,
  communication,
  workspace,
  offloaded,
  offloaded_optimizer,
  scalars
};
std::string_view buffer_class_name(BufferClass cls);
/// It is live all the time; all other live ranges are within a step.
bool is_state(BufferClass cls);
/// It holds the optimizer state of a bucket.
BufferClass optimizer_class(const Bucket& bucket);
/// It is in the rank's arena in the memory of the host.
bool is_on_host(BufferClass cls);

struct Buffer {
  std::int64_t offset = 0;  // bytes from the start of its arena, a multiple of 64
  std::int64_t bytes = 0;
  // whose value it holds; invalid for state and workspace. unreduced: output 0 of the accumulate;
  // gathered: output 0 of the gather
  Port value;
  // Parameters, gradients, optimizer: the bucket; gradients and parameters are flat in bucket
  // order.
  BucketId bucket;
  BufferClass cls = BufferClass::activations;
};

/// Wait for the end of the action at `position` of `stream`, `distance` steps ago; satisfied on the
/// first step when distance is 1.
struct Wait {
  StreamId stream;
  std::uint32_t position = 0;
  std::uint8_t distance = 0;
  friend bool operator==(const Wait&, const Wait&) = default;
};

/// The memory of an operand: a byte range inside a buffer.
struct Operand {
  std::int64_t offset = 0;  // within the buffer
  BufferId buffer;
  bool accumulate = false;  // a term of a sum after the first: add to the buffer
};

struct Action {
  NodeId node;
  StreamId stream;
  std::uint32_t position = 0;                   // in its stream
  std::uint32_t first_wait = 0, num_waits = 0;  // into Role::waits
  // Into Role::operands: input ports in order, output ports in order, then workspace if any. An
  // update also uses the optimizer buffer of its bucket (slot after slot, each as large as the
  // bucket) and the scalars.
  std::uint32_t first_operand = 0, num_operands = 0;
  CommunicatorId communicator;  // communication
};

struct Role {
  Symbol name;  // `pp0`, with the coordinates that distinguish it
  // Per mesh axis: the coordinate, or DeviceSet::kWhole for any without a role of its own.
  std::vector<std::int32_t> at;
  std::vector<Action> actions;  // issue order
  std::vector<Wait> waits;
  std::vector<Operand> operands;
  std::vector<Buffer> buffers;
  std::int64_t arena_bytes = 0;  // size to allocate
  // The maximum number of live bytes at one action, counted as in ir/verify/plan_facts.h; the rest
  // is fragmentation.
  std::int64_t live_bytes = 0;
  std::int64_t host_bytes = 0;  // bytes of the arena in the memory of the host
};

/// A directed pair or an ordered group, on one stream at each member; its k-th operation at one
/// member is the k-th at the others.
struct Communicator {
  enum class Kind : std::uint8_t { pair, group } kind = Kind::pair;
  std::vector<CommId> comms;  // its operations in order
  // Pair: source, destination (matched by coordinate on common whole axes); group: member sets.
  std::vector<DeviceSetId> members;
  AxisMask axes = 0;  // group: axes along which devices take part
  StreamId stream;
  std::uint32_t window = 0;      // pair: receives posted ahead of their first reader
  std::uint32_t min_window = 0;  // with a smaller window the program could deadlock
  LocId loc;
};

struct Plan {
  std::vector<Role> roles;
  std::vector<Communicator> communicators;
};

/// Bytes of scratch that one run of a chunk, sum_squares, norm or update node needs beside its
/// operands; the backend computes it.
using WorkspaceBytes = std::function<std::int64_t(const Dag&, const Node&)>;

}  // namespace piper::dag
