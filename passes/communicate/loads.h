#pragma once
// Adds loads and counts. A load reads one model input for one instance on one device set; a count
// is the number of elements of a masked loss that count over the whole batch, computed from the
// targets alone, so that the first backward need not wait for the last forward.
//
//   F.stage0.mb0                 ->   load.tokens.mb0 -> F.stage0.mb0
//   B.stage1.mb0, B.stage1.mb1   ->   load.targets.mb0, load.targets.mb1 -> count.gpt.loss.0 -> B.stage1.mb0, B.stage1.mb1, report.gpt.loss.0

#include <cstdint>
#include <span>
#include <vector>

#include "ir/dag/dag.h"
#include "passes/selectors/select.h"

namespace piper::passes {

/// Finds or adds the load of an input for an instance on the devices that read it.
class Loads {
 public:
  explicit Loads(dag::Dag& dag);
  /// The load for a node, on its devices, with the layout in which it reads the input. The DAG may
  /// grow between calls.
  dag::Port of(tensor::InputId input, const dag::Node& reader, LayoutId layout);

 private:
  static constexpr std::uint32_t kEnd = 0xFFFFFFFFu;
  struct Load {
    dag::NodeId node;
    std::uint32_t next;  // of the same input and instance
  };
  dag::Dag& dag_;
  const Instances instances_;
  std::vector<std::uint32_t> first_;  // by input and instance
  std::vector<Load> loads_;
};

/// Feeds every input port of the compute nodes.
void load_inputs(dag::Dag& dag, Loads& loads);

/// The sums of a loss in order of instance.
std::vector<dag::Port> loss_sums(const dag::Dag& dag, tensor::LossId loss);

/// Adds the count of a masked loss over the instances that `sums` belong to, all on the devices of
/// the first, and returns its output.
dag::Port add_count(dag::Dag& dag, Loads& loads, tensor::LossId loss,
                    std::span<const dag::Port> sums);

/// The device sets of the compute nodes that divide by the count of a masked loss.
std::vector<DeviceSetId> count_readers(const dag::Dag& dag, tensor::LossId loss);

/// Feeds every count port of the compute nodes from `counts`, one per device set id; a single one
/// feeds all.
void connect_counts(dag::Dag& dag, tensor::LossId loss, std::span<const dag::Port> counts);

}  // namespace piper::passes
