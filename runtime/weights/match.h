#pragma once
// Parameters and the tensors of files that hold them: which fit, which are missing, and what else
// the files have.
//
//   const std::vector<ParameterShape> shapes = shapes_of(RankParameters(ranks));
//   const WeightMap map = own_names(shapes);
//   WeightsReport report;
//   if (auto differs = match_weights(*files, map, Missing::refused, report)) ...;
//   print(report_text(report));

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/checkpoint/state_tensors.h"
#include "runtime/weights/weight_files.h"
#include "runtime/weights/weight_map.h"

namespace piper::runtime {

struct ParameterShape {
  std::string name;
  std::vector<std::int64_t> dims;
};
/// The parameters of ranks, sorted by name.
std::vector<ParameterShape> shapes_of(const RankParameters& parameters);

/// The map of parameters to tensors of the same names and shapes.
WeightMap own_names(std::span<const ParameterShape> shapes);

/// Checks that a map has every element of every parameter once, and only positions that its tensors
/// have: kBadJob, because the compiler makes maps.
std::optional<Failure> check_map(const WeightMap& map, std::span<const ParameterShape> shapes);

/// Whether parameters that the files lack keep the first values of their initializers.
enum class Missing : std::uint8_t { refused, initialised };

struct WeightsReport {
  std::string path;
  std::size_t parameters = 0;  // that have values in the files
  std::size_t tensors = 0;     // of the files that they are taken from
  std::size_t rearranged = 0;  // parameters with elements in another order than their tensor's
  std::vector<std::string> missing;    // parameters without values, sorted
  std::vector<std::string> not_read;   // tensors of the files without a parameter, sorted
  bool has_config = false;             // a `config.json` belongs to the files
  std::vector<std::string> unchecked;  // facts of the map that it lacks
};

/// Compares files with a checked map: kWeightsDiffer, with all that differs. A parameter that they
/// have in part differs, whatever `missing` says. Fills in the report.
std::optional<Failure> match_weights(const WeightFiles& files, const WeightMap& map,
                                     Missing missing, WeightsReport& report);

/// Lines for a reader:
///
///   weights of llama: 12 parameters from 10 tensors, 3 rearranged
///   not in it, with first values: `head.bias`
///   not read, because no parameter has them: `model.rotary.inv_freq`, `model.norm.bias` and 2 more
std::string report_text(const WeightsReport& report);

}  // namespace piper::runtime
