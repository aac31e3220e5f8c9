#pragma once
// The durations of a plan's actions on a machine: for work the time of its operations and bytes,
// for communication that of a ring.
//
//   const ActionSeconds seconds(dag, costs);
//   seconds.work(node) / speed, seconds.transfer(comm).seconds()

#include <optional>
#include <vector>

#include "ir/dag/plan.h"
#include "ir/tensor/op_rules.h"
#include "passes/simulate/actions.h"

namespace piper::passes {

/// The transfer of each device of a communication.
struct TransferTime {
  double latency = 0, bytes = 0;
  double bandwidth = 1;
  AxisMask axes = 0;  // axes whose links it uses
  double seconds() const { return latency + bytes / bandwidth; }
};

class ActionSeconds {
 public:
  ActionSeconds(const dag::Dag& dag, const ActionCosts& costs);

  /// On a device of speed 1. `rates`: if the device states none, those of the costs apply.
  double work(const dag::Node& node, const DeviceRates& rates) const;
  TransferTime transfer(const dag::Comm& comm) const;
  /// The axes along which devices take part in a communication, and those on which its members
  /// differ.
  AxisMask crossed(const dag::Comm& comm) const;
  /// Bytes that a node reads; contributions to a sum count once, because they share one
  /// accumulator.
  double bytes_of(const dag::Node& node) const;

 private:
  double bytes_of(dag::Port port) const;
  double fraction_of(const dag::Node& node) const;

  const dag::Dag& dag_;
  const ActionCosts& costs_;
  std::vector<tensor::Cost> body_work_;
};

/// FLOP/s of a device for a type of elements; none: not stated.
std::optional<double> flops_of(const DeviceRates& rates, tensor::DType dtype);

}  // namespace piper::passes
