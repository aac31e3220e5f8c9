#pragma once
// The names of safetensors files that hold a model together, and the index that says which of them
// has a tensor, as Hugging Face's `save_pretrained` writes them.
//
//   WeightIndex index;
//   index.add(tensor, shard_name("model", 0, 2));
//   write("model.safetensors.index.json", index.text());

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/checkpoint/safetensors.h"

namespace piper::runtime {

/// The name of file `number`, from 0, of `count`: `model.safetensors`, or
/// `model-00002-of-00003.safetensors`.
std::string shard_name(std::string_view stem, std::size_t number, std::size_t count);

class WeightIndex {
 public:
  /// Adds a tensor, whose positions are set, and the name of its file.
  void add(const StoredTensor& tensor, std::string_view file);
  /// The JSON text, with the tensors in the order in which they were added.
  std::string text() const;

 private:
  std::uint64_t bytes_ = 0;  // of all tensors
  std::string map_;          // the members of `weight_map`
};

}  // namespace piper::runtime
