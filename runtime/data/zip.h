#pragma once
// Members of a ZIP archive, as NumPy's `.npz` files are: stored or deflated, with or without the
// fields of ZIP64. Source: PKWARE's APPNOTE.TXT, sections 4.3 to 4.5.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/data_file.h"

namespace piper::runtime {

struct ZipMember {
  std::string name;
  bool deflated = false;
  std::uint32_t crc32 = 0;   // of the unpacked bytes
  std::uint64_t packed = 0;  // bytes in the archive
  std::uint64_t bytes = 0;   // unpacked
  std::uint64_t offset = 0;  // of the packed bytes in the file
};

bool begins_as_zip(std::string_view bytes);

/// The members of an archive in the order of its directory. Empty, with `reason`, if it is damaged,
/// encrypted, split, packed by another method, or has two members of one name.
std::optional<std::vector<ZipMember>> read_zip(const DataFile& file, std::string& reason);

/// Compares the bytes of a stored member with its checksum, part by part: they may exceed the
/// memory. False, with `reason`, if they are damaged or cannot be read.
bool verify_stored(const DataFile& file, const ZipMember& member, std::string& reason);

/// The bytes of a deflated member, whose checksum is verified. Empty, with `reason`, if they are
/// damaged or do not fit into memory.
std::optional<std::vector<unsigned char>> inflated(const DataFile& file, const ZipMember& member,
                                                   std::string& reason);

}  // namespace piper::runtime
