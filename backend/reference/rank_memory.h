#pragma once
// The memory of a one-device run: state at every owner, gradients and values at every rank, each in
// separate memory. Used by `sequential_run.cpp` alone.

#include <cstdint>
#include <string>
#include <vector>

#include "backend/device_program/abi_types.h"
#include "backend/memory.h"
#include "ir/dag/bucket_layout.h"
#include "ir/dag/dag.h"
#include "runtime/abi.h"

namespace piper::backend {

struct RankMemory {
  const dag::Dag& dag;
  std::uint64_t world;
  std::vector<std::vector<std::uint32_t>> coordinates;  // per rank

  // State: one copy of parameters and slots per (parameter, owner), gradients per (parameter,
  // rank).
  std::vector<PiperParam> params;
  std::vector<std::string> names;
  std::vector<std::vector<std::int64_t>> dims;
  std::vector<std::vector<std::uint32_t>> copies;  // per parameter: positions in `params`, by owner
  Memory state;
  std::vector<std::vector<Memory>> gradients;  // per parameter, per rank

  std::vector<std::size_t> first_port;      // per node
  std::vector<std::vector<Memory>> values;  // per port of the DAG, per rank

  explicit RankMemory(const dag::Dag& dag);

  directive::Optimizer optimizer() const {
    return dag.settings.optimizer.value_or(directive::Optimizer{});
  }
  /// Slots of a parameter's optimizer state, including master weights.
  std::uint32_t slots(tensor::ParamId param) const {
    return static_cast<std::uint32_t>(
        dag::state_slots(dag.settings, dag.param_types[param.index()].dtype));
  }
  std::int64_t gradient_bytes(tensor::ParamId param) const {
    return tensor::gradient_type(dag.param_types[param.index()]).bytes();
  }
  bool on(DeviceSetId set, std::uint64_t r) const {
    return dag.device_sets[set].contains_device(coordinates[r]);
  }

  /// The copy of a parameter that a device reads.
  const PiperParam& copy_at(tensor::ParamId param, std::uint64_t r) const;
  unsigned char* gradient_at(tensor::ParamId param, std::uint64_t r);
  unsigned char* output(dag::NodeId node, std::uint32_t port, std::uint64_t r);
  unsigned char* value(dag::Port port, std::uint64_t r) { return output(port.node, port.index, r); }

 private:
  void lay_out_state();
};

}  // namespace piper::backend
