#pragma once
// Writes parameters into safetensors files, under the names and in the order of dimensions of a
// map. Several parameters may fill one tensor.
//
//   ExportReport report;
//   auto failure = export_weights(weights_of(*checkpoint), own_names(shapes), {.path = "out.safetensors"}, report);

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/checkpoint/state_tensors.h"
#include "runtime/weights/match.h"
#include "runtime/weights/stored_weights.h"
#include "runtime/weights/weight_map.h"

namespace piper::runtime {

struct ExportOptions {
  // A file if it ends in `.safetensors`; otherwise a folder with `model.safetensors`, or with files
  // of `max_file_bytes` of data and an index, and with the `config.json` of the map's facts.
  std::string path = {};
  StoredType dtype = StoredType::f32;  // of all tensors; a type of weights
  std::uint64_t max_file_bytes = kMaxFileBytes;
  std::uint64_t block_bytes = std::uint64_t{64} << 20, window_bytes = std::uint64_t{4} << 20;
  /// Once it is true nothing more is written, and what was written is removed.
  std::function<bool()> stopped = {};
};

struct ExportedFile {
  std::string name;  // the path of a file; inside of a folder its name
  std::uint64_t bytes = 0;
};

struct ExportReport {
  std::vector<ExportedFile> files;  // with data, in their order; empty if it was stopped
  std::size_t parameters = 0, tensors = 0;
};

/// Writes all weights. Readers see nothing or everything. kBadJob for a wrong map (check_map);
/// kMapIncomplete if it fills a tensor not exactly once; kWeightsUnreadable for weights that are no
/// numbers; kWeightOutOfRange for a finite value that
/// `dtype` cannot hold; kOutputUnwritable; kOutOfMemory; failures of the sources.
std::optional<Failure> export_weights(std::span<const StoredWeight> weights, const WeightMap& map,
                                      const ExportOptions& options, ExportReport& report);

/// Whether every element of each tensor of a checked map is that of exactly one parameter:
/// kMapIncomplete.
std::optional<Failure> check_coverage(const WeightMap& map);

/// The shapes of weights, as own_names takes them.
std::vector<ParameterShape> shapes_of(std::span<const StoredWeight> weights);

}  // namespace piper::runtime
