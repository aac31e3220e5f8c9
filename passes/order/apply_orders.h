#pragma once
// Application of `order` directives: operations become nodes, and steps become edges.
//
//   rank pp0: F stage[0] mb[0]; { F stage[0] mb[1] } & { B stage[0] mb[0] }
//     ->   F.stage0.mb0 before F.stage0.mb1, F.stage0.mb0 before B.stage0.mb0, the last two in overlap group 0
//
// Checked (grammar/README.md section 7, items 7 and 8): each operation is work of the claimed
// devices; each chunk node occurs once in the order of every claimed rank that runs it; members of
// a group do not need each other; replicas name the same communication after the same steps.
// `passes/selectors/check_orders` has checked that no rank is claimed twice.

#include <optional>
#include <vector>

#include "ir/diagnostics/diagnostics.h"
#include "passes/order/roles.h"
#include "passes/order/work_graph.h"
#include "passes/selectors/select.h"

namespace piper::passes {

/// The strategy's orders as edges between units.
struct ClaimedOrder {
  std::vector<Adjacency::Pair> edges;  // steps that follow each other
  // The work, or the named send of the route, before a named communication -> that communication.
  std::vector<Adjacency::Pair> named;
  // A named communication -> work behind it that makes what it carries, which no order can keep.
  std::vector<Adjacency::Pair> late;
  // The same on one rank: its chunk, its member of the communication.
  std::vector<std::pair<dag::NodeId, dag::NodeId>> waits;
  // Per node: the operation that names it (for communication, its member on that rank); invalid:
  // none.
  std::vector<LocId> loc;
  std::vector<std::uint32_t> text_position;       // per node: its position in the text of its rank
  std::vector<std::uint32_t> claim_of_role;       // position in dag.claims, or kUnclaimed
  std::vector<dag::Dag::GatherInterval> gathers;  // that operations name
  bool has_groups = false;
  // For messages, if replicas have orders of their own.
  struct Again {
    std::uint32_t claim;
    dag::NodeId node;
    LocId loc;
  };
  // Ascending by claim: operations that name a node already named in an earlier claim.
  std::vector<Again> again;
  struct First {
    std::uint32_t edge, named, late;
  };
  std::vector<First> first_of_claim;  // per claim: the begin of its edges
  static constexpr std::uint32_t kUnclaimed = 0xFFFFFFFFu;
};

/// Device sets that the orders of a strategy claim.
std::vector<DeviceSetId> claimed_sets(const directive::Strategy& strategy);

/// Fills `dag.claims` and `dag.group`. Nothing after reporting errors.
std::optional<ClaimedOrder> apply_orders(dag::Dag& dag, const directive::Strategy& strategy,
                                         const PendingWorkGraph& graph, const RoleTable& roles,
                                         Selection& selection, DiagnosticSink& sink);

}  // namespace piper::passes
