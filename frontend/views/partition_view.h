#pragma once
// The parts of partitions: their layers, devices, times, parameters and activations.

#include <cstdint>
#include <string>
#include <vector>

#include "ir/dag/dag.h"
#include "ir/directive/directive.h"
#include "passes/simulate/timeline.h"

namespace piper::views {

struct PartRow {
  std::string part;                 // `stage[2]`, `encoder[0].half[1]`
  std::vector<std::string> layers;  // regions directly inside: `embed`, `block[0..4]`, `head`
  std::string devices;  // those of its forwards: `mesh[pp: 2]`; several are separated by commas
  // Times of one microbatch: the mean of all runs of a pass.
  double forward = 0, backward = 0;
  std::int64_t parameters = 0, parameter_bytes = 0;  // weights that its forwards read, whole
  std::int64_t activation_bytes =
      0;  // values of one microbatch that its backwards read, on a device
};

struct PartitionRows {
  std::vector<PartRow> rows;  // in the order of the model
  passes::Timeline::Unit unit = passes::Timeline::Unit::cost;
};

/// `model`: partitioned and differentiated, of the train that `dag` is compiled from, at level
/// ordered or above. `timeline`: of the operations of `dag`.
PartitionRows partition_rows(const tensor::Graph& model,
                             const std::vector<directive::Directive>& directives,
                             const dag::Dag& dag, const passes::Timeline& timeline);

std::string partition_text(const PartitionRows& table);
std::string partition_json(const PartitionRows& table);

}  // namespace piper::views
