#pragma once
// What the actions of a plan take on a machine: work the time of its operations and of the bytes it moves, communication that of a ring.
//
//   const ActionSeconds seconds(dag, costs);
//   seconds.work(node) / speed, seconds.transfer(comm).seconds()

#include <optional>
#include <vector>

#include "ir/dag/plan.h"
#include "ir/tensor/op_rules.h"
#include "passes/simulate/actions.h"

namespace piper::passes {

/// What each device of a communication sends.
struct TransferTime {
  double latency = 0, bytes = 0;
  double bandwidth = 1;
  AxisMask axes = 0;  // whose links it runs over
  double seconds() const { return latency + bytes / bandwidth; }
};

class ActionSeconds {
 public:
  ActionSeconds(const dag::Dag& dag, const ActionCosts& costs);

  /// On a device of speed 1. `rates`: the rates of the costs hold where the device states none.
  double work(const dag::Node& node, const DeviceRates& rates) const;
  TransferTime transfer(const dag::Comm& comm) const;
  /// The axes that a communication joins, and those along which its members differ.
  AxisMask crossed(const dag::Comm& comm) const;
  /// Of what a node reads: contributions to a sum lie in one place.
  double bytes_of(const dag::Node& node) const;

 private:
  double bytes_of(dag::Port port) const;
  double share_of(const dag::Node& node) const;

  const dag::Dag& dag_;
  const ActionCosts& costs_;
  std::vector<tensor::Cost> body_work_;
};

/// Of a device, in operations on elements of a type; none: not stated.
std::optional<double> flops_of(const DeviceRates& rates, tensor::DType dtype);

}  // namespace piper::passes
