#pragma once
// The header of NumPy's `.npy` format, versions 1 to 3: magic, version, length, and a Python literal
// such as `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
// Source: numpy/lib/_format_impl.py of NumPy 2.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/checkpoint/safetensors.h"

namespace piper::runtime {

struct NpyHeader {
  StoredType type = StoredType::f32;
  std::vector<std::int64_t> dims;  // none: a single number
  std::uint64_t data_offset = 0;   // of the numbers, row by row
  std::uint64_t bytes = 0;         // of the numbers
};

/// The maximum length of a header with its magic; longer ones describe records.
inline constexpr std::size_t kMaxNpyHeader = std::size_t{1} << 16;

bool begins_as_npy(std::string_view bytes);

/// Reads the header of `size` bytes that begin with `start`, which has min(size, kMaxNpyHeader)
/// bytes. The numbers are little-endian, lie row by row, and end with the last byte. Empty, with
/// `reason` ("it holds text"), otherwise.
std::optional<NpyHeader> read_npy_header(std::string_view start, std::uint64_t size,
                                         std::string& reason);

}  // namespace piper::runtime
