#pragma once
// Runs one step of a training DAG at level communicating (or later) on every device of its mesh,
// with the reference evaluator: slow and simple, in data order only, so it defines the meaning of a
// DAG.
//
// Guarantees: a value is computed per device; messages, reductions and gathers read the devices
// that the DAG pairs; a missing edge, a value of another type than its port, and a cycle of data
// end the test.
//
//   DagRun run(dag, inputs, params);
//   run.gradient(param, home, rank)      run.loss(LossId(0))      run.norm()

#include <map>
#include <vector>

#include "ir/dag/dag.h"
#include "tests/support/evaluate.h"

namespace piper::test {

class DagRun {
 public:
  /// `inputs` hold the whole batch, `params` the values of every owner.
  DagRun(const dag::Dag& dag, std::vector<Array> inputs, std::vector<Array> params);

  /// The final gradients of every parameter that device `rank` updates, by parameter.
  std::map<tensor::ParamId, Array> gradients(std::uint64_t rank);
  /// The value that the report of a loss shows.
  double loss(tensor::LossId loss);
  double norm();

  /// Compute nodes evaluated so far, each on every device: all of them when `run_all` was called.
  void run_all();

 private:
  const std::vector<Array>& outputs(dag::NodeId node, std::uint64_t rank);
  std::vector<Array> evaluate(dag::NodeId node, std::uint64_t rank);
  /// The value that feeds an input port.
  const Array& input(const dag::Node& node, std::uint32_t port, std::uint64_t rank);
  Array sum(const dag::Node& node, std::uint32_t port, std::uint64_t rank);
  Array all_reduce(const dag::Node& node, std::uint32_t port, std::uint64_t rank);
  std::vector<Array> gradients_of(const dag::Node& node, std::uint64_t rank);
  std::vector<double> own_shard(const dag::Bucket& bucket, std::size_t param,
                                const std::vector<double>& gradient, std::uint64_t rank) const;
  /// The device of `set` with the coordinates of `rank` on the set's whole axes.
  std::uint64_t partner(DeviceSetId set, std::uint64_t rank) const;

  const dag::Dag& dag_;
  std::vector<Array> inputs_, params_;
  std::map<std::pair<dag::NodeId, std::uint64_t>, std::vector<Array>> values_;
  std::map<std::pair<dag::NodeId, std::uint64_t>, bool> running_;
};

}  // namespace piper::test
