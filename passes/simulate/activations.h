#pragma once
// Which activations stand where: of a chunk what its F keeps, or R makes again, lies where that ran until it goes to the devices of the backward, and there until the
// backward, or both halves of it, have read it.
//
//   Activations activations(dag, shares, costs);
//   held += activations.from_start(forward);          // in parts of what the F of all chunks of a rank keeps
//   held -= activations.until_finish(backward);
//   activations.arrivals(backward, [&](dag::NodeId maker, double part) { ... });   // from another rank, when `maker` has run

#include <functional>

#include "passes/selectors/select.h"
#include "passes/simulate/operations.h"
#include "passes/simulate/shares.h"

namespace piper::passes {

class Activations {
 public:
  Activations(const dag::Dag& dag, const Shares& shares, const OperationCosts& costs);

  /// What F or R adds where it runs; nothing of a backward.
  double from_start(const dag::Node& node) const;
  /// What leaves with the end of a node: of F and R what goes elsewhere, of a backward what it was the last to read.
  double until_finish(const dag::Node& node) const;
  /// What comes for a backward from F or R on other devices.
  void arrivals(const dag::Node& backward, const std::function<void(dag::NodeId maker, double part)>& each) const;

 private:
  /// Of what F and R of a chunk leave, what one of them makes; what a backward is the last to read.
  double part(const dag::Node& node) const;
  dag::NodeId sibling(const dag::Node& node, Pass pass) const { return work_.at(node.chunk, pass, instances_.position(node.instance)); }

  const dag::Dag& dag_;
  const Shares& shares_;
  const OperationCosts& costs_;
  const Instances instances_;
  const WorkTable work_;
};

}  // namespace piper::passes
