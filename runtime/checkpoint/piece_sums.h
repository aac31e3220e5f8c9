#pragma once
// Checksums of the pieces of a file, from those of parts that several processes have written.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/checkpoint/manifest.h"

namespace piper::runtime {

/// The CRC-32 of bytes of a file that lie in one piece of kCheckedBytes.
struct PartSum {
  std::uint64_t file = 0;  // into StateLayout::files
  std::uint64_t position = 0, bytes = 0;
  std::uint32_t crc32 = 0;
};

/// Appends the sums of the bytes at `position` of a file, one for each piece that they touch.
void add_sums(std::uint64_t file, std::uint64_t position, const void* data, std::uint64_t bytes,
              std::vector<PartSum>& sums);

/// Fills in the checksums of files whose sizes are known. False if the parts do not cover every
/// file exactly once.
bool combine_sums(std::vector<PartSum> sums, std::span<ManifestFile> files);

/// The form in which a process sends its sums to another.
std::string sums_as_bytes(std::span<const PartSum> sums);
std::optional<std::vector<PartSum>> sums_from_bytes(std::string_view bytes);

}  // namespace piper::runtime
