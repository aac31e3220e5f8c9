#pragma once
// The state of a training run as whole tensors: the layout of a checkpoint's files, and the ranks
// that hold the elements.
//
// Guarantees: files, tensors and positions follow from the names, types and optimizer state of the
// model's parameters alone, so every layout of the same model has the same files. The ranges of
// `written_ranges` cover every element of a tensor exactly once.
//
//   const StateLayout layout = state_layout(RankParameters(ranks));
//   for (const StateTensor& tensor : layout.tensors)
//     for (const StateRange& range : written_ranges(parameters, tensor)) ...;

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/abi.h"
#include "runtime/checkpoint/safetensors.h"

namespace piper::runtime {

/// The part of a parameter that a tensor of a checkpoint holds: its values, unrounded if it has master
/// weights, one of its optimizer's tensors, or its moving average.
enum class StatePart : std::uint8_t { values, slot0, slot1, average };
inline constexpr StatePart kStateParts[] = {StatePart::values, StatePart::slot0, StatePart::slot1,
                                            StatePart::average};
/// The beginning of the key of a moving average.
inline constexpr std::string_view kAverageKey = "ema/";

/// The memory in which a rank keeps a part of a parameter.
struct PartMemory {
  std::uint64_t offset =
      PIPER_NO_OFFSET;  // in the arena, or in that on the host; none: no such part
  bool on_host = false;
  std::uint32_t dtype = PIPER_F32;
  PiperSharded sharded = PIPER_SHARDED_PARAMETERS;  // which elements the rank has (elements_here)
};
PartMemory part_memory(const PiperParam& param, StatePart part);

/// The parameters of ranks, by name. The ranks must outlive it.
class RankParameters {
 public:
  explicit RankParameters(std::span<const PiperJobRank> ranks);

  std::span<const PiperJobRank> ranks() const { return ranks_; }
  /// One copy of every parameter that has a counted owner, by name.
  const std::map<std::string_view, const PiperParam*>& counted() const { return counted_; }
  /// All copies of a parameter on a rank; a rank may have several.
  std::span<const PiperParam* const> copies(std::size_t rank, std::string_view name) const;

 private:
  using Copies = std::map<std::string_view, std::vector<const PiperParam*>>;
  std::span<const PiperJobRank> ranks_;
  std::map<std::string_view, const PiperParam*> counted_;
  std::map<const PiperProgram*, Copies> by_program_;
};

struct StateTensor {
  StoredTensor stored;    // its key, type, extents and position in the file
  std::string parameter;  // its name
  StatePart part = StatePart::values;
  std::size_t file = 0;  // into StateLayout::files
  std::uint64_t elements() const {
    return (stored.end - stored.begin) / stored_type_bytes(stored.type);
  }
};

struct StateFile {
  std::string name;
  std::string header;       // the bytes before the data
  std::uint64_t bytes = 0;  // of the whole file
};

/// The files of a checkpoint, with the tensors in the order of the files and of the data in them.
struct StateLayout {
  std::vector<StateFile> files;
  std::vector<StateTensor> tensors;
  // Hugging Face's index of the weights; empty if they are in one file.
  std::string index;

  /// The position of a tensor's first byte in its file.
  std::uint64_t position(const StateTensor& tensor) const {
    return files[tensor.file].header.size() + tensor.stored.begin;
  }
};

/// A file ends before the tensor with which its data would have more bytes than this, unless it is
/// the first.
inline constexpr std::uint64_t kMaxFileBytes = std::uint64_t{4} << 30;
StateLayout state_layout(const RankParameters& parameters,
                         std::uint64_t max_file_bytes = kMaxFileBytes);

/// Elements [first, end) of a tensor, on a rank.
struct StateRange {
  std::size_t rank = 0;  // into RankParameters::ranks()
  bool on_host = false;
  std::uint64_t offset = 0;  // of element `first`, in bytes
  std::uint64_t first = 0, end = 0;
};

/// The ranges from which a tensor is written, in order. Ranks that hold the same elements share
/// them evenly.
std::vector<StateRange> written_ranges(const RankParameters& parameters, const StateTensor& tensor);

}  // namespace piper::runtime
