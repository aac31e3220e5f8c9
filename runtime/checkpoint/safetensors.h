#pragma once
// The safetensors format: 8 bytes with the length of the header (little-endian), the header as
// JSON, and the data of the tensors end to end, row-major.
//
//   std::vector<StoredTensor> tensors = {{"gpt.wte", StoredType::f32, {256, 64}}};
//   lay_out(tensors);
//   write(safetensors_header(tensors, {}));  // then the data of each tensor, in this order
//
//   Failure failure;
//   const std::optional<SafetensorsHeader> header = read_safetensors_header(file, path, failure);

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/failure.h"

namespace piper::runtime {

/// Element types of the format that Piper knows.
enum class StoredType : std::uint8_t {
  f64,
  f32,
  f16,
  bf16,
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean
};
inline constexpr std::size_t kNumStoredTypes = 13;

/// Its name in a header: `F32`.
std::string_view stored_type_name(StoredType type);
/// The type of this name; nothing if there is none.
std::optional<StoredType> find_stored_type(std::string_view name);
/// Bytes of one element.
std::uint64_t stored_type_bytes(StoredType type);
/// Whether its elements are integers; booleans are none.
bool is_integer(StoredType type);
/// The stored form of an element type (PiperDType); any other number is a fault of this program.
StoredType stored_type_of(std::uint32_t dtype);
/// The element type of the runtime; nothing if the runtime has none of this form.
std::optional<PiperDType> dtype_of(StoredType type);

/// Bytes of a tensor; nothing if a dimension is negative, or if the product of the dimensions that
/// are not 0 and the element size exceeds 2^63 - 1.
std::optional<std::uint64_t> stored_bytes(StoredType type, std::span<const std::int64_t> dims);

struct StoredTensor {
  std::string name;
  StoredType type = StoredType::f32;
  std::vector<std::int64_t> dims;
  std::uint64_t begin = 0, end = 0;  // bytes from the start of the data
};

/// Strings that a header holds beside its tensors, in their order.
using SafetensorsMetadata = std::vector<std::pair<std::string, std::string>>;

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  // in the order of their positions
  SafetensorsMetadata metadata;
  std::uint64_t data_offset = 0;  // of the data in the file
};

/// The maximum length of the JSON text of a header.
inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;
/// The maximum length of the name of a tensor.
inline constexpr std::size_t kMaxTensorName = 4096;

/// Reads the header of an open file, which must be a plain file; its position does not change. The
/// tensors cover the data without holes and overlaps, and the data ends with the file. On failure
/// the reason is in `failure` (code kCheckpointUnreadable), with `path` as the name of the file.
std::optional<SafetensorsHeader> read_safetensors_header(int file, const std::string& path,
                                                         Failure& failure);

/// Sorts tensors by descending element size, then by name, and places them end to end. So every
/// tensor begins at a multiple of its element size.
void lay_out(std::vector<StoredTensor>& tensors);

/// The bytes of a file before its data: the length and the JSON text, which spaces extend so that
/// the data begins at a multiple of 8. Names are UTF-8, distinct, and not `__metadata__`.
std::string safetensors_header(std::span<const StoredTensor> tensors,
                               const SafetensorsMetadata& metadata = {});

}  // namespace piper::runtime
