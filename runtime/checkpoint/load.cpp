#include <algorithm>
#include <cstring>
#include <tuple>

#include "runtime/checkpoint/checked_pieces.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/device/state.h"
#include "runtime/dtypes.h"

namespace piper::runtime {
namespace {

/// Elements of a tensor for one place in the memory of a local rank.
struct Target {
  std::size_t file = 0;
  std::uint64_t begin = 0, end = 0;  // bytes in the file
  std::uint32_t stored = 0, dtype = 0;
  std::size_t rank = 0;
  bool on_host = false;
  std::uint64_t offset = 0;  // of the first element
};

/// The targets of the values, and those of the optimizer's tensors, of a copy of a parameter.
class Targets {
 public:
  Targets(const Checkpoint& checkpoint, const StateLayout& layout, Restored restored)
      : checkpoint_(checkpoint), restored_(restored) {
    for (const StateTensor& tensor : layout.tensors)
      keys_[{tensor.parameter, tensor.part}] = &tensor;
  }

  void add(const PiperParam& param, std::size_t rank, const PiperInterval* intervals) {
    for (const StatePart part : kStateParts) {
      const auto key = keys_.find({param.name, part});
      if (key == keys_.end()) continue;
      if (restored_ == Restored::weights && part != StatePart::values) continue;
      const auto stored = checkpoint_.tensors().find(key->second->stored.name);
      if (stored == checkpoint_.tensors().end()) continue;  // a moving average begins at the values
      const Checkpoint::Tensor& tensor = stored->second;
      const PartMemory memory = part_memory(param, part);
      if (memory.offset != PIPER_NO_OFFSET) add(tensor, param, memory, rank, intervals);
      // The parameter beside its master weights is their rounded value.
      if (part == StatePart::values && master_offset(param) != PIPER_NO_OFFSET)
        add(tensor, param, {param.offset, false, param.dtype, PIPER_SHARDED_PARAMETERS}, rank,
            intervals);
      const PartMemory average = part_memory(param, StatePart::average);
      if (part == StatePart::values && average.offset != PIPER_NO_OFFSET &&
          !takes_averages(restored_))
        add(tensor, param, average, rank, intervals);
    }
  }

  /// By file and position.
  std::vector<Target> sorted() && {
    std::sort(targets_.begin(), targets_.end(), [](const Target& a, const Target& b) {
      return std::tie(a.file, a.begin, a.rank) < std::tie(b.file, b.begin, b.rank);
    });
    return std::move(targets_);
  }

 private:
  bool takes_averages(Restored restored) const {
    return restored == Restored::all && checkpoint_.has_averages();
  }
  void add(const Checkpoint::Tensor& tensor, const PiperParam& param, const PartMemory& memory,
           std::size_t rank, const PiperInterval* intervals) {
    const Elements here = elements_here(param, memory.sharded, intervals);
    if (here.first >= here.end) return;
    const std::uint64_t element = stored_type_bytes(tensor.stored.type);
    targets_.push_back(
        {tensor.file, tensor.position + here.first * element, tensor.position + here.end * element,
         static_cast<std::uint32_t>(*dtype_of(tensor.stored.type)), memory.dtype, rank,
         memory.on_host, memory.offset + here.at * element_bytes(memory.dtype)});
  }

  const Checkpoint& checkpoint_;
  const Restored restored_;
  std::map<std::pair<std::string_view, StatePart>, const StateTensor*> keys_;
  std::vector<Target> targets_;
};

/// Converts elements from one floating type to another, as the runtime rounds first values.
void convert(const unsigned char* from, std::uint32_t from_dtype, std::uint64_t count,
             std::uint32_t to_dtype, std::vector<unsigned char>& to) {
  to.resize(count * element_bytes(to_dtype));
  with_element(from_dtype, [&](auto read) {
    with_element(to_dtype, [&](auto written) {
      for (std::uint64_t i = 0; i < count; ++i) {
        decltype(read) value;
        std::memcpy(&value, from + i * sizeof value, sizeof value);
        const auto converted = static_cast<decltype(written)>(value);
        std::memcpy(to.data() + i * sizeof converted, &converted, sizeof converted);
      }
    });
  });
}

class Loading {
 public:
  Loading(const StateMemory& memory, std::vector<Target> targets)
      : memory_(memory), targets_(std::move(targets)) {}

  /// Reads the pieces of one file that any target needs.
  std::optional<Failure> file(std::size_t number, CheckedPieces pieces, std::uint64_t bytes) {
    active_.clear();
    std::optional<Failure> failure;
    for (std::uint64_t begin = 0; begin < bytes; begin += kCheckedBytes) {
      const std::uint64_t end = std::min(bytes, begin + kCheckedBytes);
      std::erase_if(active_, [&](const Target* target) { return target->end <= begin; });
      while (next_ < targets_.size() && targets_[next_].file == number &&
             targets_[next_].begin < end)
        active_.push_back(&targets_[next_++]);
      if (active_.empty()) continue;
      const unsigned char* const data = pieces.read(begin / kCheckedBytes, failure);
      if (data == nullptr) return failure;
      for (const Target* const target : active_) {
        if (!write(*target, data, begin, end))
          return memory_.failure().value_or(
              Failure{.code = kBadJob, .message = "the state of a rank cannot be written"});
      }
    }
    return std::nullopt;
  }

 private:
  /// Writes the part of a target that lies in the piece [begin, end) of the file.
  bool write(const Target& target, const unsigned char* data, std::uint64_t begin,
             std::uint64_t end) {
    const std::uint64_t from = std::max(begin, target.begin), to = std::min(end, target.end);
    const std::uint64_t element = element_bytes(target.stored);
    const std::uint64_t offset =
        target.offset + (from - target.begin) / element * element_bytes(target.dtype);
    data += from - begin;
    if (target.stored == target.dtype)
      return memory_.write(target.rank, target.on_host, offset, data, to - from);
    convert(data, target.stored, (to - from) / element, target.dtype, converted_);
    return memory_.write(target.rank, target.on_host, offset, converted_.data(), converted_.size());
  }

  const StateMemory& memory_;
  const std::vector<Target> targets_;
  std::size_t next_ = 0;
  std::vector<const Target*> active_;  // those that reach into the piece
  std::vector<unsigned char> converted_;
};

}  // namespace

std::optional<Failure> Checkpoint::load(const StateMemory& memory, Restored restored) const {
  const RankParameters parameters(memory.ranks);
  const StateLayout layout = state_layout(parameters);
  Targets targets(*this, layout, restored);
  for (std::size_t r = 0; r < memory.ranks.size(); ++r) {
    const auto local = memory.local(r);
    if (!local) continue;
    const PiperJobRank& rank = memory.ranks[r];
    for (std::uint32_t p = 0; p < rank.program->num_params; ++p)
      targets.add(rank.program->params[p], *local, rank.intervals);
  }
  Loading loading(memory, std::move(targets).sorted());
  for (std::size_t f = 0; f < manifest_.files.size(); ++f) {
    const ManifestFile& described = manifest_.files[f];
    auto failure = loading.file(
        f, CheckedPieces(folder_ + "/" + described.name, files_[f], described), described.bytes);
    if (failure) return failure;
  }
  return std::nullopt;
}

}  // namespace piper::runtime
