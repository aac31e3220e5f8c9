#pragma once
// The places at which ranks name communication: all replicas that take part in it name it after the
// same work, or none of them names it.
//
//   pp[0] dp[0]: F stage[0] mb[0]; F stage[0].send mb[0]     pp[0] dp[1]: F stage[0] mb[0]     ->     P3108

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "passes/order/order_reports.h"
#include "passes/order/roles.h"
#include "passes/order/work_graph.h"

namespace piper::passes {

class NamedPlaces {
 public:
  /// A message or reduction, or a gather of the whole step and one of its uses.
  using Named = std::pair<dag::NodeId, dag::NodeId>;

  /// All must outlive it.
  NamedPlaces(const dag::Dag& dag, const WorkGraph& graph, const RoleTable& roles,
              OrderReports& reports)
      : dag_(dag), graph_(graph), roles_(roles), reports_(reports) {}

  /// The next claim, counted from 0.
  void add_claim(const directive::RankSteps& rank) { claims_.push_back(&rank); }
  /// A hash of work: equal sums of hashes mean the same set of work.
  static std::uint64_t summand(dag::NodeId work);
  /// An operation of a claim names it after the units `previous`; `before` is the hash sum of all
  /// earlier work, because one replica may have a group for work that another runs in sequence. A
  /// reduction may be named for several regions: its place is after all of them.
  void add(Named named, std::uint32_t claim, const RankOp& at,
           const std::vector<std::uint32_t>& previous, std::uint64_t before);
  /// The same, replacing an earlier name in this claim.
  void replace(Named named, std::uint32_t claim, const RankOp& at,
               const std::vector<std::uint32_t>& previous, std::uint64_t before);
  /// Reports the first communication that replicas name at different places.
  void check();

 private:
  struct Place {
    std::uint32_t claim;
    RankOp at;
    std::vector<dag::NodeId> behind;  // its direct predecessors, ascending
    std::uint64_t before = 0;
  };

  std::vector<Place>& of_claim(Named named, std::uint32_t claim, const RankOp& at);
  const std::vector<std::uint32_t>& claims_on(DeviceSetId devices);
  bool same(const std::vector<Place>& places, DeviceSetId devices);

  const dag::Dag& dag_;
  const WorkGraph& graph_;
  const RoleTable& roles_;
  OrderReports& reports_;
  std::vector<const directive::RankSteps*> claims_;
  std::map<Named, std::vector<Place>> places_;  // ascending by claim
  // Per device set: the claims with its work, computed on demand.
  std::vector<std::optional<std::vector<std::uint32_t>>> on_set_;
};

}  // namespace piper::passes
