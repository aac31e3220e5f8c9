#pragma once
// Parameters of a model as elements of the tensors of a file with other names and another order of dimensions.

#include <cstdint>
#include <string>
#include <vector>

namespace piper::runtime {

/// A parameter as elements of a tensor of a file. Element (i0, i1, ...) of the parameter, whose row-major extents are `factors`,
/// is element offset + i0 * strides[0] + i1 * strides[1] + ... of the tensor, which is row-major with extents `tensor_dims`.
/// A dimension of the parameter may be written as several factors, whose product it is.
struct MappedWeight {
  std::string parameter;
  std::string tensor;  // its name in the file
  std::vector<std::int64_t> tensor_dims;
  std::uint64_t offset = 0;  // in elements
  std::vector<std::int64_t> factors, strides;
};

/// A fact of the model that the file's `config.json` must state, and that an export writes there: `"rope_theta": 10000`.
struct ConfigFact {
  std::string key;
  std::string value;  // JSON
};

struct WeightMap {
  std::string name;  // of the `names` item; empty: the parameters' own names
  std::vector<MappedWeight> weights;
  // Names that a file may have instead of a parameter's tensor or lack because it is tied: an export writes none of them.
  std::vector<std::string> ignored;
  std::vector<ConfigFact> config;
};

}  // namespace piper::runtime
