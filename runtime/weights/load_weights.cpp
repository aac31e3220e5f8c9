#include "runtime/weights/load_weights.h"

#include <algorithm>
#include <map>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/checkpoint/json.h"
#include "runtime/checkpoint/state_tensors.h"
#include "runtime/device/state.h"
#include "runtime/dtypes.h"
#include "runtime/weights/strided_copy.h"

namespace piper::runtime {
namespace {

/// The position of elements in the memory of a local rank.
struct Place {
  std::size_t rank = 0;
  bool on_host = false;
  std::uint64_t offset = 0;  // of the first element, in bytes
};

/// Elements [first, end) of a parameter in one type, for all places that hold them.
struct Range {
  std::uint64_t first = 0, end = 0;
  std::uint32_t dtype = 0;
  friend auto operator<=>(const Range&, const Range&) = default;
};
using Ranges = std::map<Range, std::vector<Place>>;

/// The ranges of all parameters that local ranks hold.
class LocalRanges {
 public:
  explicit LocalRanges(const StateMemory& memory) {
    for (std::size_t r = 0; r < memory.ranks.size(); ++r) {
      const auto local = memory.local(r);
      if (!local) continue;
      const PiperJobRank& rank = memory.ranks[r];
      for (std::uint32_t p = 0; p < rank.program->num_params; ++p)
        add(rank.program->params[p], *local, rank.intervals);
    }
  }

  /// Null if no local rank holds elements of it.
  const Ranges* of(std::string_view parameter) const {
    const auto found = ranges_.find(parameter);
    return found == ranges_.end() ? nullptr : &found->second;
  }

 private:
  void add(const PiperParam& param, std::size_t rank, const PiperInterval* intervals) {
    const PartMemory values = part_memory(param, StatePart::values);
    add(param, values, rank, intervals);
    // The parameter beside its master weights is their rounded value.
    if (master_offset(param) != PIPER_NO_OFFSET)
      add(param, {param.offset, false, param.dtype, PIPER_SHARDED_PARAMETERS}, rank, intervals);
    if (const PartMemory average = part_memory(param, StatePart::average);
        average.offset != PIPER_NO_OFFSET)
      add(param, average, rank, intervals);
  }

  void add(const PiperParam& param, const PartMemory& memory, std::size_t rank,
           const PiperInterval* intervals) {
    const Elements here = elements_here(param, memory.sharded, intervals);
    if (here.first >= here.end) return;
    ranges_[param.name][{here.first, here.end, memory.dtype}].push_back(
        {rank, memory.on_host, memory.offset + here.at * element_bytes(memory.dtype)});
  }

  std::map<std::string_view, Ranges> ranges_;
};

/// Elements of a parameter, and the tensor that they are in.
struct StoredPart {
  const MappedWeight* weight = nullptr;
  const WeightFiles::Tensor* tensor = nullptr;
  StridedCopy copy;  // from the tensor to the parameter
};

class Loading {
 public:
  Loading(const StateMemory& memory, const WeightFiles& files, const LoadOptions& options)
      : memory_(memory), files_(files), options_(options), copier_(options.window_bytes) {}

  /// The parts are all of the parameter.
  std::optional<Failure> load(std::span<const StoredPart> parts, const Ranges& ranges) {
    for (const auto& [range, places] : ranges) {
      block_.type = stored_type_of(range.dtype);
      const std::uint64_t element = element_bytes(range.dtype),
                          at_once = std::max<std::uint64_t>(options_.block_bytes / element, 1);
      for (std::uint64_t begin = range.first; begin < range.end; begin += at_once) {
        if (options_.stopped && options_.stopped()) return std::nullopt;
        const std::uint64_t end = std::min(begin + at_once, range.end);
        block_.begin = begin;
        block_.resize(end - begin);
        for (const StoredPart& part : parts) {
          if (auto failure = read(part, begin, end)) return failure;
          if (copier_.out_of_range) return beyond(*part.weight, range.dtype);
        }
        for (const Place& place : places) {
          const std::uint64_t offset = place.offset + (begin - range.first) * element;
          if (!memory_.write(place.rank, place.on_host, offset, block_.bytes.data(),
                             (end - begin) * element))
            return memory_.failure().value_or(
                Failure{.code = kBadJob, .message = "the state of a rank cannot be written"});
        }
      }
    }
    return std::nullopt;
  }

 private:
  /// Fills the block with the elements of the part among [begin, end) of the parameter.
  std::optional<Failure> read(const StoredPart& part, std::uint64_t begin, std::uint64_t end) {
    const WeightFiles::Tensor& tensor = *part.tensor;
    const ElementSource source{tensor.stored.type, tensor.position,
                               [&](std::uint64_t position, std::uint64_t bytes, void* to) {
                                 return files_.read(tensor.file, position, bytes, to);
                               }};
    std::optional<Failure> failure;
    for_boxes_within(part.copy, begin, end, [&](const StridedCopy& box) {
      if (!failure) failure = copier_.copy(box, source, block_);
    });
    return failure;
  }

  Failure beyond(const MappedWeight& weight, std::uint32_t dtype) const {
    std::string value;
    append_json_number(value, copier_.out_of_range->value);
    return {.code = kWeightOutOfRange,
            .message = "`" + files_.path() + "` has the value `" + value + "` in " +
                       shown_name(weight.tensor) + ", which " + dtype_name(dtype) + " cannot hold",
            .hint = "train in a wider type, or give weights of other values"};
  }

  const StateMemory& memory_;
  const WeightFiles& files_;
  const LoadOptions& options_;
  ElementCopier copier_;
  ElementBlock block_;
};

}  // namespace

std::optional<Failure> load_weights(const StateMemory& memory, const WeightFiles& files,
                                    const WeightMap& map, const LoadOptions& options) {
  const LocalRanges ranges(memory);
  std::map<std::string_view, std::vector<StoredPart>> parameters;
  for (const MappedWeight& weight : map.weights) {
    const auto found = files.tensors().find(weight.tensor);
    if (found != files.tensors().end())
      parameters[weight.parameter].push_back(
          {&weight, &found->second, tensor_to_parameter(weight)});
  }
  // In the order of the files, as disks read fastest.
  std::vector<const std::vector<StoredPart>*> order;
  for (const auto& [name, parts] : parameters) order.push_back(&parts);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    const WeightFiles::Tensor &first = *a->front().tensor, &second = *b->front().tensor;
    return std::tie(first.file, first.position) < std::tie(second.file, second.position);
  });
  try {
    Loading loading(memory, files, options);
    for (const std::vector<StoredPart>* const parts : order) {
      const Ranges* const held = ranges.of(parts->front().weight->parameter);
      if (held == nullptr) continue;
      if (auto failure = loading.load(*parts, *held)) return failure;
    }
  } catch (const std::bad_alloc&) {
    return Failure{.code = kOutOfMemory, .message = "no memory for the buffers of weights"};
  }
  return std::nullopt;
}

}  // namespace piper::runtime
