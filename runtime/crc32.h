#pragma once
// CRC-32 as zlib and Python's `zlib.crc32` compute it: checksums of checkpoints, and fingerprints of
// data. It finds damage, and is no defence against intent.

#include <cstdint>
#include <string>

namespace piper::runtime {

std::uint32_t crc32_of(const void* data, std::uint64_t bytes);
/// The checksum of two parts end to end; `bytes` is the size of the second.
std::uint32_t crc32_joined(std::uint32_t first, std::uint32_t second, std::uint64_t bytes);
/// Its 8 hexadecimal digits.
std::string crc32_text(std::uint32_t crc);

}  // namespace piper::runtime
