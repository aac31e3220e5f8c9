#pragma once
// Elements that lie at regular distances in two tensors: the copy between a parameter and its
// elements of a tensor of a file, whatever the order of their dimensions.
//
//   // w[2, 3] is the transpose of t[3, 2]:
//   StridedCopy copy{.axes = {{2, 1, 3}, {3, 2, 1}}};   // from t to w
//   for_boxes_within(copy, 3, 6, use);                  // the second row of w

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "runtime/checkpoint/safetensors.h"
#include "runtime/failure.h"
#include "runtime/weights/weight_map.h"

namespace piper::runtime {

/// One index: `extent` values, and the distances in elements that a step of it has on both sides.
struct StridedAxis {
  std::uint64_t extent = 1, from = 0, to = 0;
};

/// Element (i0, i1, ...) is element from + i0 * axes[0].from + ... of the one tensor, and
/// to + i0 * axes[0].to + ... of the other.
struct StridedCopy {
  std::uint64_t from = 0, to = 0;
  std::vector<StridedAxis> axes = {};

  std::uint64_t elements() const;
  /// The last position on each side.
  std::uint64_t last_from() const;
  std::uint64_t last_to() const;
};

/// The copy from a tensor of a file to its parameter, and the one back. The map is a checked one
/// (check_map).
StridedCopy tensor_to_parameter(const MappedWeight& weight);
StridedCopy parameter_to_tensor(const MappedWeight& weight);

/// Calls `use` with the parts of a copy whose elements have a position from `begin` to `end` - 1 on
/// the side `to`: each element once.
void for_boxes_within(const StridedCopy& copy, std::uint64_t begin, std::uint64_t end,
                      const std::function<void(const StridedCopy&)>& use);

/// Sorts the axes by descending distance on the side `from`, and joins those that are one index of
/// both sides.
void sort_by_source(StridedCopy& copy);

/// Reads bytes from `position` on; a failure if they cannot be read.
using ReadBytes =
    std::function<std::optional<Failure>(std::uint64_t position, std::uint64_t bytes, void* to)>;

/// The tensor that elements are read from. `position`: the byte of its first element.
struct ElementSource {
  StoredType type = StoredType::f32;
  std::uint64_t position = 0;
  ReadBytes read;
};

/// The elements of a range of a tensor in memory.
struct ElementBlock {
  StoredType type = StoredType::f32;
  // The value of bf16 is rounded from that of f32, as the runtime rounds first values.
  std::uint64_t begin = 0;  // the position of its first element
  std::vector<unsigned char> bytes = {};

  void resize(std::uint64_t elements) { bytes.resize(elements * stored_type_bytes(type)); }
};

/// A finite value that its new type cannot hold.
struct OutOfRange {
  double value = 0;
  std::uint64_t from = 0;  // its position in the source
};

/// Copies elements between tensors of floating types, with a buffer of bounded size.
class ElementCopier {
 public:
  /// `window_bytes`: the most that is read at once, at least one element.
  explicit ElementCopier(std::uint64_t window_bytes = std::uint64_t{4} << 20)
      : window_bytes_(window_bytes) {}

  /// Copies and converts the elements of `copy`, which all lie in the block. A failure is that of
  /// `source.read`. Values beyond the range of the block's type become infinite, and
  /// `out_of_range` has the first of them.
  std::optional<Failure> copy(StridedCopy copy, const ElementSource& source, ElementBlock& block);

  std::optional<OutOfRange> out_of_range;

 private:
  struct Run;
  std::optional<Failure> copy_run(const Run& run, const ElementSource& source, ElementBlock& block);
  const unsigned char* window(std::uint64_t first, std::uint64_t count, std::uint64_t ahead,
                              const ElementSource& source, std::optional<Failure>& failure);

  const std::uint64_t window_bytes_;
  std::vector<unsigned char> window_;
  // The elements of the source that are in the window.
  std::uint64_t window_first_ = 0, window_end_ = 0;
};

/// Whether weights may have this type: f64, f32, bf16 or f16.
bool is_weight_type(StoredType type);

}  // namespace piper::runtime
