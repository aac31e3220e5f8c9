#pragma once
// The interface between the progress engine and a carrier of messages.
//
// Contract of an implementation: the k-th operation of a member on a communicator matches the k-th
// of the others, and identity, direction, size and dtype are checked. A peer touches a member's
// buffers only between that member's start and end; a collective ends on a member only when no peer
// still reads its buffers. Communicators share no buffering. `start` and `poll` never block and
// never allocate. Reductions add the members' values in member order, element by element, in the
// value's dtype.
//
// All calls come from one thread, after `connect`.

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/abi.h"

namespace piper::runtime {

enum class OperationState : std::uint8_t { pending, done, failed };

/// One member's side of one communication, from start to end. The caller owns it and keeps it in
/// place while it is pending.
struct Operation {
  const PiperCommAction* action = nullptr;
  const PiperMessagePart* parts = nullptr;  // action->num_parts of them
  unsigned char* arena = nullptr;
  unsigned char* host = nullptr;             // the rank's arena in the memory of the host
  const PiperInterval* intervals = nullptr;  // of the rank
  const PiperCommunicator* communicator = nullptr;
  std::uint32_t channel = 0;  // the result of `connect` for this communicator
  OperationState state = OperationState::done;
  const char* error = nullptr;   // when failed: the disagreement, in static storage
  std::int64_t error_value = 0;  // shown with it: the other member's identity, or -1
  bool carrier_failed = false;   // the error is that of the carrier, and no disagreement
};

/// The start of a part in the member's arena; `offset` is its `in` or `out`.
unsigned char* part_at(const Operation& member, const PiperMessagePart& part, std::uint64_t offset);

/// The position of element `at` of a part in the buffer of the shard's owner.
inline std::uint64_t in_own(const PiperMessagePart& part, const PiperInterval& block,
                            std::uint64_t at) {
  return part.flags & PIPER_SHARD_ONLY ? at - block.first : at;
}
/// Whether the member contributes to a part; `contributor` gives the first member that does, or
/// null.
inline bool contributes(const Operation& member, std::uint32_t part) {
  return member.parts[part].in != PIPER_NO_OFFSET;
}
const Operation* contributor(std::span<const Operation* const> members, std::uint32_t part);

/// The reason why the operations of a communicator's members, in their order, are not the same
/// communication; null if they are. `member`: one that disagrees with the first.
const char* disagreement(std::span<const Operation* const> members, std::size_t& member);

class Transport {
 public:
  virtual ~Transport() = default;

  /// Prepares a communicator of a local rank; called for all of them in global order before the
  /// first step of a program. Returns the channel that operations name.
  virtual std::uint32_t connect(const PiperCommunicator& communicator) = 0;
  /// Forgets all communicators; nothing may be pending.
  virtual void disconnect() = 0;

  /// Offers this member's side. Sets operation.state.
  virtual void start(Operation& operation) = 0;
  /// Moves as much as is possible within a short time and updates operation.state.
  virtual void poll(Operation& operation) = 0;
  /// True while a pending operation is matched with its peers and moves on with every poll.
  virtual bool moving(const Operation& operation) const = 0;
  /// True if an operation that waits for its peers can be left alone until one of theirs starts:
  /// all peers are in this process.
  virtual bool moves_only_on_start() const = 0;

  // ---- messages of other processes
  /// Takes and sends messages as far as they can move now; called before the polls of a scan. True
  /// if any moved.
  virtual bool progress() { return false; }
  /// True if all messages of ended operations have left this process. Called after `progress`,
  /// again and again, before a run ends.
  virtual bool flushed() { return true; }
  /// A descriptor that becomes readable when a message comes, for a thread that sleeps; -1: none.
  virtual int descriptor() const { return -1; }
  /// Call just before a sleep on the descriptor. False if messages have come: call `progress` first.
  virtual bool arm() { return true; }
};

std::string_view comm_op_name(std::uint32_t op);

}  // namespace piper::runtime
