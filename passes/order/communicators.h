#pragma once
// Communicators and their windows: groups of messages with one numbered sequence, and how far a
// receiver must post ahead.
//
// A pair communicator carries the messages of one pass direction from one device set to another. If
// the receiver reads them in another order than they are sent, it is split by producing chunk and
// copy, which keeps windows small. A group communicator carries the collectives of one purpose over
// the same member sets.
//
// Guarantee: the result is a function of the DAG, the requested streams and `position`, a numbering
// of units that agrees with the compute order of every rank and with data flow. Another such
// numbering may give the messages of a route another sequence; the plan uses the sequence of their
// producers, as the order pass does, and takes the sequences of collectives from the linear order.

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/dag/plan.h"
#include "passes/order/work_graph.h"

namespace piper::passes {

struct Communicators {
  // With windows for pairs: max(2, least), or the window of the stream.
  std::vector<dag::Communicator> list;
  std::vector<dag::CommunicatorId> of_comm;  // per CommId
  std::vector<std::uint32_t> number;         // per CommId: position in its communicator
  // Per CommId of a pair: the node that reads the message first; invalid: none does.
  std::vector<dag::NodeId> first_reader;
  /// The two messages farthest apart of which the later one must arrive while the earlier is
  /// unread, because it is read earlier or by the same node. Numbers in the communicator; equal if
  /// there are none.
  struct Swap {
    std::uint32_t unread = 0, wanted = 0;
  };
  std::vector<Swap> widest;  // per communicator
};

/// Routes of messages: from one device set to another, with values of a forward or of a backward.
struct Routes {
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  struct Route {
    DeviceSetId from, to;
    bool backward = false;
    dag::StreamId stream;  // the stream to which the user assigned its messages; invalid: none
  };

  explicit Routes(const dag::Dag& dag);
  /// Splits routes by the streams of their messages.
  void part_by_streams(std::span<const dag::StreamId> stream_of);

  std::vector<Route> list;             // in the order of first messages
  std::vector<std::uint32_t> of_comm;  // per CommId; kNone: a collective
};

/// `routes` are those of `dag`. `stream_of`: per communication the stream to which the user
/// assigned it; invalid: none.
Communicators form_communicators(const dag::Dag& dag, const WorkGraph& graph, Routes routes,
                                 std::span<const dag::StreamId> stream_of,
                                 std::span<const std::uint32_t> position);

/// The collectives of each group in the order of `position`, which numbers all nodes.
void number_collectives(const dag::Dag& dag, std::span<const std::uint32_t> position,
                        Communicators& communicators);

}  // namespace piper::passes
