#pragma once
// `config.json` of a folder of weights: facts that shapes do not say, such as the base of rotary
// positions.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/weights/match.h"
#include "runtime/weights/weight_files.h"
#include "runtime/weights/weight_map.h"

namespace piper::runtime {

/// The differences between facts and the `config.json` of the folder, or of the folder of a file
/// `model.safetensors`. A file of another name has none. A fact may also stand in an object of it:
/// `rope_theta` in `rope_parameters`. Facts that it lacks are no differences: `report.unchecked`
/// gets them, except those whose value is `null`. Kinds of models that Piper does not have are
/// differences, too: `rope_type: llama3`. Nothing with the reason in `failure` (kWeightsUnreadable)
/// if the file cannot be read.
std::optional<std::vector<std::string>> compare_config(const WeightFiles& files,
                                                       std::span<const ConfigFact> facts,
                                                       WeightsReport& report, Failure& failure);

/// The text of a `config.json` that states the facts.
std::string config_json(std::span<const ConfigFact> facts);

}  // namespace piper::runtime
