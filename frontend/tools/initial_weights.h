#pragma once
// `init: weights(...)` of a train: its files, how they fit the model, and the values that a run
// takes from them.
//
//   auto weights = open_weights(shapes_of(dag), *settings.init, failure);
//   if (auto refused = take_weights(*weights, executor->state_memory(), stopped)) ...;

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "frontend/tools/session.h"
#include "ir/dag/dag.h"
#include "runtime/weights/load_weights.h"
#include "runtime/weights/match.h"

namespace piper::tools {

struct OpenedWeights {
  std::unique_ptr<runtime::WeightFiles> files;
  runtime::WeightMap map;
  runtime::WeightsReport report;
};

/// The parameters of a model, and those of a compiled train.
std::vector<runtime::ParameterShape> shapes_of(const tensor::Graph& model);
std::vector<runtime::ParameterShape> shapes_of(const dag::Dag& dag);

/// Opens the files and compares them with the parameters. Nothing, with the reason in `failure`, if
/// they cannot be read or do not fit.
std::optional<OpenedWeights> open_weights(const std::vector<runtime::ParameterShape>& shapes,
                                          const directive::InitialWeights& init,
                                          runtime::Failure& failure);

/// Writes the values to the ranks, until `stopped` (empty: never).
std::optional<runtime::Failure> take_weights(const OpenedWeights& weights,
                                             const runtime::StateMemory& memory,
                                             const std::function<bool()>& stopped);

/// Reports weights that `train` would refuse: as errors, or as warnings of `code`. False if there
/// are any.
bool weights_fit(Session& session, const lower::Lowered& lowered, std::optional<Code> code = {});

/// A fingerprint of the weights of a train; empty without any. Processes of one run compare it.
std::string weights_identity(const std::optional<OpenedWeights>& weights);

}  // namespace piper::tools
