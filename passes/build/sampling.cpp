#include "passes/build/sampling.h"

#include <algorithm>

#include "ir/dag/segment_text.h"
#include "ir/tensor/sample_coupling.h"
#include "passes/build/localise.h"

namespace piper::passes {

using namespace dag;

namespace {

Batch batch_of(const tensor::Type& type, const directive::Settings& settings) {
  const tensor::Dim* const sampled = type.samples();
  if (sampled == nullptr) return {};
  return {sampled->name, sampled->extent, settings.data ? settings.data->loc : LocId()};
}

}  // namespace

Batch batch_of(const Dag& dag) {
  for (const tensor::Type& type : dag.input_types) {
    if (const Batch batch = batch_of(type, dag.settings); batch.name.valid()) return batch;
  }
  return {};
}

Batch batch_of(const tensor::Graph& model, const directive::Settings& settings) {
  for (const tensor::Input& input : model.inputs) {
    if (const Batch batch = batch_of(model.type(input.value), settings); batch.name.valid())
      return batch;
  }
  return {};
}

void divide_samples(Body& body, std::int64_t divide) {
  if (divide == 1) return;
  for (tensor::Value& value : body.graph.mutable_values()) divide_samples(value.type, divide);
  for (tensor::Node& node : body.graph.mutable_nodes()) divide_samples(node.attrs.shape, divide);
}

bool samples_are_independent(const Dag& dag, const Chunk& chunk, std::string_view how, LocId loc,
                             DiagnosticSink& sink) {
  const Body& body = dag.bodies[chunk.bodies[static_cast<std::size_t>(Pass::F)].index()];
  bool good = true;
  std::vector<tensor::ValueId> loss_sums;
  for (const BodyPort& port : body.outputs) {
    if (port.kind == PortKind::loss_sum) loss_sums.push_back(port.value);
  }
  for (const tensor::Node& node : body.graph.nodes()) {
    if (!tensor::couples_samples(body.graph, node, loss_sums)) continue;
    sink.report(
            Code::coupled_operation, loc,
            "`{}` cannot be {}: in its operation {} the samples of the batch depend on each other",
            region_text(dag, chunk), how, tensor::in_words(node.op))
        .related(node.loc, "{} mixes samples here", tensor::in_words(node.op))
        .hint(
            "write the model so that each sample is computed from its own inputs, or leave this region whole");
    good = false;
  }
  return good;
}

bool batch_divides(const Batch& batch, std::int64_t parts, std::string_view how, LocId loc,
                   DiagnosticSink& sink) {
  if (batch.samples % parts == 0) return true;
  const std::int64_t above = (batch.samples / parts + 1) * parts,
                     below = batch.samples / parts * parts;
  const bool has_enough = below > 0;
  auto builder = has_enough ? sink.report(Code::batch_does_not_divide, loc,
                                          "a batch of {} does not divide into {} equal parts ({})",
                                          batch.samples, parts, how)
                            : sink.report(Code::batch_does_not_divide, loc,
                                          "a batch of {} has no sample for some of {} parts ({})",
                                          batch.samples, parts, how);
  if (batch.loc.valid()) builder.related(batch.loc, "the batch is given here");
  if (has_enough) {
    builder.hint("write `batch: {}` or `batch: {}`, or take a number of parts that divides {}",
                 below, above, batch.samples);
  } else {
    builder.hint("write `batch: {}`, or take fewer parts", above);
  }
  return false;
}

}  // namespace piper::passes
