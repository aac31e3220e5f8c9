#pragma once
// The all-gathers of parameters that orders name: each gathers anew for its readers, until the next
// all-gather that names them.
//
//   B stage[0].gather mb[0]; B stage[0] mb[0]   ->   an interval of the all-gather of stage 0, read by B.stage0.mb0

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "passes/order/apply_orders.h"
#include "passes/order/named_places.h"
#include "passes/order/order_reports.h"
#include "passes/order/work_graph.h"

namespace piper::passes {

class ClaimedGathers {
 public:
  /// Appends to `out.gathers`, and reads `out.loc`. All must outlive it.
  ClaimedGathers(const dag::Dag& dag, const WorkGraph& graph, NamedPlaces& places,
                 OrderReports& reports, ClaimedOrder& out)
      : dag_(dag), graph_(graph), places_(places), reports_(reports), out_(out) {}

  void begin_rank();
  void begin_step() { step_.reset(); }
  /// Names the all-gathers that `work` reads; `late`: the rank names the work before them.
  void name(dag::NodeId work, bool late);
  /// Whether the current step names all-gathers.
  bool any() const { return step_.has_value(); }
  /// Ends a step that names all-gathers: they come after `previous`, and serve their work until the
  /// next all-gather that names it. Reports an error if there are none, or if nothing reads one.
  /// `nodes`: the work that `at` names; `before`: the hash sum of earlier work (`NamedPlaces`).
  void place(const RankOp& at, const std::vector<dag::NodeId>& nodes, std::uint32_t claim,
             const std::vector<std::uint32_t>& previous, std::uint64_t before);
  /// Ends a rank. Replicas may have orders of their own but take part in the same all-gathers:
  /// joins their named all-gathers, or reports that they differ.
  void join(const directive::RankSteps& rank);

 private:
  struct Step {
    std::map<dag::NodeId, std::set<dag::NodeId>> uses;  // by the gather of the whole step: readers
    dag::NodeId late;                                   // work named before it; invalid: none
  };
  /// An all-gather of parameters sharded at rest, not one after an update.
  bool gathers_for_work(const dag::Node& node) const;

  const dag::Dag& dag_;
  const WorkGraph& graph_;
  NamedPlaces& places_;
  OrderReports& reports_;
  ClaimedOrder& out_;
  std::optional<Step> step_;
  std::size_t first_of_rank_ = 0;  // the begin of the current rank's gathers
  // In the current rank: (all-gather of the whole step, reader) -> index into `out_.gathers`.
  std::map<std::pair<dag::NodeId, dag::NodeId>, std::size_t> of_rank_;
  std::map<std::pair<dag::NodeId, dag::NodeId>, std::size_t> joined_;  // the same, of earlier ranks
};

}  // namespace piper::passes
