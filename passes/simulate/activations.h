#pragma once
// Live activations per device: the values that F keeps or R recomputes are on the devices of F or R
// until they go to those of the backward, and there until the backward, or both of its halves, have
// read them.
//
//   Activations activations(dag, shares, costs);
//   held += activations.from_start(forward);          // as fractions of the values that the F of all chunks of a rank keeps
//   held -= activations.until_finish(backward);
//   activations.arrivals(backward, [&](dag::NodeId maker, double part) { ... });   // from another rank, when `maker` has run

#include <functional>

#include "passes/selectors/select.h"
#include "passes/simulate/operations.h"
#include "passes/simulate/work_fraction.h"

namespace piper::passes {

class Activations {
 public:
  Activations(const dag::Dag& dag, const WorkFractions& fractions, const OperationCosts& costs);

  /// Activations that F or R adds on its devices; 0 for a backward.
  double from_start(const dag::Node& node) const;
  /// Activations freed at the end of a node: for F and R those sent to other devices, for a
  /// backward those of which it is the last reader.
  double until_finish(const dag::Node& node) const;
  /// Activations that arrive for a backward from F or R on other devices.
  void arrivals(const dag::Node& backward,
                const std::function<void(dag::NodeId maker, double part)>& each) const;

 private:
  /// The fraction of a chunk's activations that an F or R makes, or of which a backward is the last
  /// reader.
  double part(const dag::Node& node) const;
  dag::NodeId sibling(const dag::Node& node, Pass pass) const {
    return work_.at(node.chunk, pass, instances_.position(node.instance));
  }

  const dag::Dag& dag_;
  const WorkFractions& fractions_;
  const OperationCosts& costs_;
  const Instances instances_;
  const WorkTable work_;
};

}  // namespace piper::passes
