#include "runtime/transport/member_messages.h"

#include <algorithm>

#include "runtime/dtypes.h"

namespace piper::runtime {

namespace {

/// The digest of one more number (FNV-1a, eight bytes at a time).
std::uint64_t mixed(std::uint64_t digest, std::uint64_t number) {
  return (digest ^ number) * 0x100000001B3u;
}

PiperInterval shard(const Operation& member, std::uint64_t elements) {
  return piper_shard(elements, member.communicator->num_members, member.communicator->self);
}

}  // namespace

void Terms::assign(const Operation& operation) {
  bits_.assign((operation.action->num_parts + 7) / 8, '\0');
  for (std::uint32_t part = 0; part < operation.action->num_parts; ++part) {
    if (contributes(operation, part))
      bits_[part / 8] = static_cast<char>(bits_[part / 8] | 1 << part % 8);
  }
}

bool Terms::assign(std::string_view bytes, std::uint32_t num_parts) {
  bits_.assign(bytes);
  return bytes.size() == (std::uint64_t{num_parts} + 7) / 8;
}

std::optional<PartInterval> PartCursor::peek(const Operation& operation) {
  for (; part < operation.action->num_parts; ++part, at = 0) {
    const PiperMessagePart& shape = operation.parts[part];
    if ((shape.flags & PIPER_ZERO_FILL) != 0 || (terms != nullptr && !terms->has(part)) ||
        (contributors != nullptr && (*contributors)[part] != contributor))
      continue;
    const PiperInterval interval = shard_of == kWhole
                                       ? PiperInterval{0, shape.elements, shape.elements}
                                       : piper_shard(shape.elements, members, shard_of);
    if (at >= interval.extent) continue;
    return PartInterval{part, interval.first + at,
                        std::min(interval.extent - at, slice_bytes / element_bytes(shape.dtype))};
  }
  return std::nullopt;
}

std::optional<PartInterval> PartCursor::next(const Operation& operation) {
  const auto piece = peek(operation);
  if (piece) at += piece->count;
  return piece;
}

PartDigests digests_of(const Operation& operation) {
  PartDigests digests;
  for (std::uint32_t i = 0; i < operation.action->num_parts; ++i) {
    const PiperMessagePart& part = operation.parts[i];
    digests.sizes = mixed(digests.sizes, part.elements + 1);
    digests.types = mixed(digests.types, part.dtype + 1);
  }
  return digests;
}

unsigned char* in_at(const Operation& member, const PartInterval& piece) {
  const PiperMessagePart& part = member.parts[piece.part];
  return part_at(member, part, part.in) + piece.first * element_bytes(part.dtype);
}
unsigned char* out_at(const Operation& member, const PartInterval& piece) {
  const PiperMessagePart& part = member.parts[piece.part];
  return part_at(member, part, part.out) + piece.first * element_bytes(part.dtype);
}
unsigned char* in_shard(const Operation& member, const PartInterval& piece) {
  const PiperMessagePart& part = member.parts[piece.part];
  return part_at(member, part, part.in) +
         in_own(part, shard(member, part.elements), piece.first) * element_bytes(part.dtype);
}
unsigned char* out_shard(const Operation& member, const PartInterval& piece) {
  const PiperMessagePart& part = member.parts[piece.part];
  return part_at(member, part, part.out) +
         in_own(part, shard(member, part.elements), piece.first) * element_bytes(part.dtype);
}
std::uint64_t bytes_of(const Operation& member, const PartInterval& piece) {
  return piece.count * element_bytes(member.parts[piece.part].dtype);
}

}  // namespace piper::runtime
