#pragma once
// The parameters of a model as elements of the tensors of a file that has other names and another
// order of dimensions: the result of a `names` item for one model.
//
//   names llama {
//       block[l].attention.q: "model.layers.{l}.self_attn.q_proj.weight"[heads width, dim]
//   }
//   ->  {"block.0.attention.0.q", "model.layers.0.self_attn.q_proj.weight", tensor_dims [64, 32],
//        factors [32, 4, 16] (dim, heads, width), strides [1, 512, 32]}

#include <cstdint>
#include <string>
#include <vector>

namespace piper {

/// Elements of a parameter that are in one tensor of a file. With `factors` as the row-major
/// extents of indices (i0, i1, ...), element parameter_offset + i0 * parameter_strides[0] + ... of
/// the parameter, which is row-major, is element offset + i0 * strides[0] + ... of the tensor, which
/// is row-major with extents `tensor_dims`. All in elements.
///
/// A parameter has several of these, which together are all of it, if each position of one of its
/// dimensions has a tensor of its own (`"experts.{experts}.up_proj.weight"`). The tensor's elements
/// are all filled, each once, by the parameters of a map.
struct MappedWeight {
  std::string parameter;
  std::string tensor;  // its name in the file
  std::vector<std::int64_t> tensor_dims;
  std::uint64_t offset = 0;
  std::vector<std::int64_t> factors, strides;  // of one length
  std::uint64_t parameter_offset = 0;
  std::vector<std::int64_t> parameter_strides;  // one per factor
  friend bool operator==(const MappedWeight&, const MappedWeight&) = default;
};

/// A fact of the model that is compared with the `config.json` beside the file, and that an export
/// writes there: `"rope_theta": 10000`.
struct ConfigFact {
  std::string key;
  std::string value;  // JSON
  friend bool operator==(const ConfigFact&, const ConfigFact&) = default;
};

struct WeightMap {
  std::string name;                   // of the `names` item
  std::vector<MappedWeight> weights;  // in the order of the model's parameters
  // Tensors that a file may have although no parameter is in them: an export writes none of them.
  std::vector<std::string> ignored;
  std::vector<ConfigFact> config;  // in text order
  friend bool operator==(const WeightMap&, const WeightMap&) = default;
};

}  // namespace piper
