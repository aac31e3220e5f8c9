#pragma once
// CRC-32C, the checksum of iSCSI (RFC 3720, polynomial of Castagnoli), which the records of
// TensorBoard's event files carry. Its polynomial is another one than that of `crc32.h`.

#include <cstdint>
#include <string_view>

namespace piper::runtime {

/// The checksum of the bytes; 0 of none.
std::uint32_t crc32c_of(std::string_view bytes);

}  // namespace piper::runtime
