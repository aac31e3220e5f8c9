#pragma once
// Parameters of a model as elements of the tensors of a file with other names and another order of
// dimensions. The compiler makes maps of `names` items (ir/weight_map.h, which has an example);
// frontend/tools/weight_names passes them on.

#include <cstdint>
#include <string>
#include <vector>

namespace piper::runtime {

/// Elements of a parameter that are in one tensor of a file. Index (i0, i1, ...) below `factors` is
/// element offset + i0 * strides[0] + i1 * strides[1] + ... of the tensor, which is row-major with
/// extents `tensor_dims`, and element parameter_offset + i0 * parameter_strides[0] + ... of the
/// parameter, which is row-major. All in elements. A dimension may be written as several factors,
/// whose product it is.
///
/// A parameter has several of these, which together are all of it, if it is in several tensors.
struct MappedWeight {
  std::string parameter;
  std::string tensor;  // its name in the file
  std::vector<std::int64_t> tensor_dims;
  std::uint64_t offset = 0;
  std::vector<std::int64_t> factors, strides;
  std::uint64_t parameter_offset = 0;
  std::vector<std::int64_t> parameter_strides = {};  // empty: row-major, with extents `factors`
};

/// A fact of the model that is compared with the file's `config.json`, and that an export writes there:
/// `"rope_theta": 10000`.
struct ConfigFact {
  std::string key;
  std::string value;  // JSON
};

struct WeightMap {
  std::string name;  // of the `names` item; empty: the parameters' own names
  std::vector<MappedWeight> weights;
  // Tensors that a file may have although no parameter is in them: an export writes none of them.
  std::vector<std::string> ignored;
  std::vector<ConfigFact> config;
};

}  // namespace piper::runtime
