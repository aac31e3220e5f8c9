#include "runtime/checkpoint/weight_index.h"

#include <cstdio>

#include "runtime/checkpoint/json.h"

namespace piper::runtime {

std::string shard_name(std::string_view stem, std::size_t number, std::size_t count) {
  std::string name(stem);
  if (count > 1) {
    char text[64];
    std::snprintf(text, sizeof text, "-%05zu-of-%05zu", number + 1, count);
    name += text;
  }
  return name + ".safetensors";
}

void WeightIndex::add(const StoredTensor& tensor, std::string_view file) {
  bytes_ += tensor.end - tensor.begin;
  if (!map_.empty()) map_ += ',';
  append_json_string(map_, tensor.name);
  map_ += ':';
  append_json_string(map_, file);
}

std::string WeightIndex::text() const {
  return "{\"metadata\":{\"total_size\":" + std::to_string(bytes_) + "},\"weight_map\":{" + map_ +
         "}}\n";
}

}  // namespace piper::runtime
