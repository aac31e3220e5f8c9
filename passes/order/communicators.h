#pragma once
// Communicators and their windows: which messages share one numbered sequence, and how far a receiver must post ahead.
//
// A pair communicator carries the messages of one pass direction from one device set to another. Where the receiver reads them in another order than they are
// sent it is cut by producing chunk and copy, which keeps windows small. A group communicator carries the collectives of one purpose over
// the same member sets.
//
// Guarantee: the result is a function of the DAG, the streams asked for and `position`, a numbering of units that agrees with the compute order of every
// rank and with data flow. Another such numbering may put the messages of a route in another sequence; the plan takes the one in which they are made, as the
// order pass does, and the sequences of collectives from the linear order.

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/dag/plan.h"
#include "passes/order/work_graph.h"

namespace piper::passes {

struct Communicators {
  std::vector<dag::Communicator> list;          // windows filled in for pairs: max(2, least), or what the stream asks for
  std::vector<dag::CommunicatorId> of_comm;     // per CommId
  std::vector<std::uint32_t> number;            // per CommId: position in its communicator
  std::vector<dag::NodeId> first_reader;        // per CommId of a pair: the node that reads the message first; invalid: none does
  /// Two messages, farthest apart, of which the one sent later must arrive while the other is unread: it is read before it, or by the same node.
  /// Numbers in the communicator; equal: there are none.
  struct Swap {
    std::uint32_t unread = 0, wanted = 0;
  };
  std::vector<Swap> widest;                     // per communicator
};

/// Where messages go: from one device set to another, with values of a forward or of a backward.
struct Routes {
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  struct Route {
    DeviceSetId from, to;
    bool backward = false;
    dag::StreamId stream;  // that the user put its messages on; invalid: none
  };

  explicit Routes(const dag::Dag& dag);
  /// Messages on different streams take different routes from here on.
  void part_by_streams(std::span<const dag::StreamId> stream_of);

  std::vector<Route> list;             // as the messages come
  std::vector<std::uint32_t> of_comm;  // per CommId; kNone: a collective
};

/// `routes` are those of `dag`. `stream_of`: per communication the stream that the user put it on; invalid: none.
Communicators form_communicators(const dag::Dag& dag, const WorkGraph& graph, Routes routes, std::span<const dag::StreamId> stream_of, std::span<const std::uint32_t> position);

/// The collectives of each group in the order of `position`, which numbers all nodes.
void number_collectives(const dag::Dag& dag, std::span<const std::uint32_t> position, Communicators& communicators);

}  // namespace piper::passes
