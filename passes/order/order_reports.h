#pragma once
// Diagnostics about orders that cannot be applied, in the words of the order.
//
//   error P3105: `F stage[0] mb[1]` stands twice in the order of `line[pp: 0]`

#include <string>
#include <vector>

#include "ir/diagnostics/diagnostics.h"
#include "passes/selectors/select.h"

namespace piper::passes {

/// Work, a message or a reduction of gradients as an order names it: `F stage[1] mb[0]`,
/// `F stage[0].send mb[0]`, `B stage[0].reduce`. Other nodes by their names.
std::string work_text(const dag::Dag& dag, dag::NodeId node);

/// An operation in the order of a rank.
struct RankOp {
  const directive::Order& order;
  const directive::OrderOp& op;
  const directive::RankSteps& rank;
};

/// A node and the operation that names it.
struct NamedNode {
  dag::NodeId node;
  LocId loc;
};

class OrderReports {
 public:
  /// All must outlive the reports.
  OrderReports(const dag::Dag& dag, const directive::Strategy& strategy, Selection& selection,
               DiagnosticSink& sink)
      : dag_(dag), strategy_(strategy), selection_(selection), sink_(sink) {}

  /// The rank covers devices with different work: `node` runs on some of them.
  void claims_too_much(const directive::RankSteps& rank, dag::NodeId node);
  void lacks_work(const directive::RankSteps& rank, const std::vector<dag::NodeId>& missing);

  /// The operation names `node`, which runs on other devices; `wider`: on some of the rank's
  /// devices.
  void elsewhere(const RankOp& at, dag::NodeId node, bool wider);
  /// The operation names `node`, which `first` names already.
  void repeated(const RankOp& at, dag::NodeId node, LocId first);
  /// Members of a group need each other: `y` needs `x`, or the reverse if not `forward`.
  void members_dependent(const directive::OrderStep& group, NamedNode x, NamedNode y, bool forward);

  /// `node`, of the operation, has no such communication.
  void no_communication(const RankOp& at, dag::NodeId node);
  void repeated_communication(const RankOp& at, LocId first);
  /// The all-gather of parameters that `node` reads is named after it.
  void gathered_late(const RankOp& at, dag::NodeId node, LocId where);
  /// Communication that one rank names after some work, and another rank with the same work
  /// elsewhere; null: nowhere.
  void named_apart(const RankOp& at, const std::vector<dag::NodeId>& behind,
                   const directive::RankSteps& other, const RankOp* other_at,
                   const std::vector<dag::NodeId>& other_behind);
  /// An all-gather of this rank and one in the order of replicas serve overlapping but different
  /// work.
  void gathered_differently(const directive::RankSteps& rank,
                            const dag::Dag::GatherInterval& gather,
                            const dag::Dag::GatherInterval& other);

 private:
  /// The text of an operation, with its indices: `B stage[1].reduce mb[0]`.
  std::string op_text(const RankOp& at, Pass pass, directive::CommClass part,
                      bool with_dims = true) const;
  /// The line that places it; null if unknown.
  const directive::Place* place_of(dag::NodeId node);

  const dag::Dag& dag_;
  const directive::Strategy& strategy_;
  Selection& selection_;
  DiagnosticSink& sink_;
};

}  // namespace piper::passes
