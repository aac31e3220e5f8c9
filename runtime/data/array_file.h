#pragma once
// The numbers that the inputs of a model read from a file, row by row: of `.npz`, `.npy` and
// `.safetensors` files, and of tables of text (`table.h`).
//
// The rows of `.npy`, `.safetensors` and stored members of `.npz` stay in their file and are read
// when a step needs them; tables and deflated members are held in memory. The checksum of a stored
// member is verified when its file is opened.
//
// An input has the array of its name; a `.npy` file has one array, for a model of one input. The
// first dimension of an array is that of the samples; the others hold as many numbers as a sample of
// the input, in row-major order.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/checkpoint/safetensors.h"
#include "runtime/data/data_file.h"
#include "runtime/data/table.h"

namespace piper::runtime {

/// The numbers of one input: `numbers` per row, row by row, in a file or in memory.
struct ArrayColumn {
  std::string name;
  StoredType type = StoredType::f64;
  std::uint64_t numbers = 1;
  std::shared_ptr<const DataFile> file;  // null: in memory
  std::uint64_t offset = 0;              // in the file
  std::shared_ptr<const unsigned char> memory;
};

/// The place of the numbers of a row in memory: number o * inner + i of the row is written to
/// position o * stride + i.
struct RowTarget {
  std::uint64_t inner = 1, stride = 1;
  std::uint32_t dtype = 0;  // PiperDType
  void* to = nullptr;
};

struct ArrayRows {
  std::string path;
  std::uint64_t rows = 0;
  std::vector<ArrayColumn> columns;  // by input

  /// Writes a row in the type of the target. Fails, without a location, if the file changed
  /// (kDataChanged), or if a number is not finite or does not fit (kDataMismatch). Allocates only
  /// for a failure.
  std::optional<Failure> read(std::uint32_t input, std::uint64_t row,
                              const RowTarget& target) const;
  /// Asks the system to read a row of a file into its cache.
  void read_ahead(std::uint32_t input, std::uint64_t row) const;
  /// `42 rows, crc32 01234567`: the checksum is that of all columns in their order, with their names
  /// and types.
  std::string fingerprint_text() const;
};

/// Null, with the reason in `failure`. Its location is the line of a table; files of other formats
/// have none. The format is found by the beginning of the file.
std::shared_ptr<const ArrayRows> read_arrays(const std::string& path,
                                             std::span<const TableInput> inputs, Failure& failure);

}  // namespace piper::runtime
