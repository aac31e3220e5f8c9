#include "runtime/weights/stored_weights.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/checkpoint/state_tensors.h"

namespace piper::runtime {
namespace {

/// Copies bytes [position, position + bytes) of a tensor from the ranks that hold them.
std::optional<Failure> read_ranges(const StateMemory& memory, const std::vector<StateRange>& ranges,
                                   std::uint64_t element, std::uint64_t position,
                                   std::uint64_t bytes, unsigned char* to) {
  const std::uint64_t end = position + bytes;
  auto range = std::partition_point(ranges.begin(), ranges.end(), [&](const StateRange& before) {
    return before.end * element <= position;
  });
  for (; position < end; ++range) {
    const std::uint64_t count = std::min(end, range->end * element) - position,
                        offset = range->offset + position - range->first * element;
    const unsigned char* const from =
        memory.read(*memory.local(range->rank), range->on_host, offset, count);
    if (from == nullptr)
      return memory.failure().value_or(
          Failure{.code = kBadJob, .message = "the state of a rank cannot be read"});
    std::memcpy(to, from, count);
    to += count;
    position += count;
  }
  return std::nullopt;
}

}  // namespace

std::vector<StoredWeight> weights_of(const Checkpoint& checkpoint, bool averages) {
  std::vector<StoredWeight> weights;
  for (const auto& [key, tensor] : checkpoint.tensors()) {
    if (!Checkpoint::is_weight(key)) continue;
    const auto average = checkpoint.tensors().find(std::string(kAverageKey) + key);
    // A frozen parameter has no average, and is its own.
    const bool takes_average = averages && average != checkpoint.tensors().end();
    const Checkpoint::Tensor* const stored = takes_average ? &average->second : &tensor;
    weights.push_back(
        {key,
         stored->stored.dims,
         {stored->stored.type, 0,
          [&checkpoint, stored](std::uint64_t position, std::uint64_t bytes, void* to) {
            return checkpoint.read(*stored, position, bytes, to);
          }}});
  }
  return weights;
}

std::vector<StoredWeight> weights_of(const StateMemory& memory) {
  const RankParameters parameters(memory.ranks);
  std::vector<StoredWeight> weights;
  for (const StateTensor& tensor : state_layout(parameters).tensors) {
    if (tensor.part != StatePart::values) continue;
    weights.push_back({tensor.parameter,
                       tensor.stored.dims,
                       {tensor.stored.type, 0,
                        [memory, ranges = written_ranges(parameters, tensor),
                         element = stored_type_bytes(tensor.stored.type)](
                            std::uint64_t position, std::uint64_t bytes, void* to) {
                          return read_ranges(memory, ranges, element, position, bytes,
                                             static_cast<unsigned char*>(to));
                        }}});
  }
  std::sort(weights.begin(), weights.end(),
            [](const StoredWeight& a, const StoredWeight& b) { return a.name < b.name; });
  return weights;
}

}  // namespace piper::runtime
