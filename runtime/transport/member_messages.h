#pragma once
// The messages that one member of a communicator exchanges with another in one operation: which
// elements of which parts, in which order. Both ends derive the same list.
//
//   PartCursor cursor{.shard_of = 1, .members = 4};   // the pieces of member 1's shards
//   while (auto piece = cursor.next(operation)) ...;

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/transport/transport.h"

namespace piper::runtime {

/// Elements of a part: one message.
struct PartInterval {
  std::uint32_t part = 0;
  std::uint64_t first = 0, count = 0;
};

/// The bits of parts to which a member adds something.
class Terms {
 public:
  void assign(const Operation& operation);
  /// False if the bytes are not those of so many parts.
  bool assign(std::string_view bytes, std::uint32_t num_parts);
  bool has(std::uint32_t part) const { return (bits_[part / 8] >> part % 8 & 1) != 0; }
  const std::string& bytes() const { return bits_; }

 private:
  std::string bits_;
};

/// Goes through the pieces of an operation's parts. Padding (PIPER_ZERO_FILL) has none.
struct PartCursor {
  /// The member whose shards of the parts count; kWhole: the parts as they are.
  static constexpr std::uint32_t kWhole = UINT32_MAX;
  std::uint32_t shard_of = kWhole;
  std::uint32_t members = 1;
  std::uint64_t slice_bytes = UINT64_MAX;  // longer intervals are several pieces
  const Terms* terms = nullptr;            // only parts that this member adds to; null: all
  // Only parts whose first contributor this is; null: all.
  const std::vector<std::uint32_t>* contributors = nullptr;
  std::uint32_t contributor = 0;

  std::uint32_t part = 0;
  std::uint64_t at = 0;  // elements of its interval that are behind

  /// The next piece; nothing at the end. `next` goes on, `peek` does not.
  std::optional<PartInterval> peek(const Operation& operation);
  std::optional<PartInterval> next(const Operation& operation);
};

/// Numbers that are equal if the parts of two operations have equal sizes, and equal types.
struct PartDigests {
  std::uint64_t sizes = 0, types = 0;
};
PartDigests digests_of(const Operation& operation);

/// Addresses of a piece in the member's buffers. `in_shard`, `out_shard`: in a buffer that may hold
/// the shard of its owner alone.
unsigned char* in_at(const Operation& member, const PartInterval& piece);
unsigned char* out_at(const Operation& member, const PartInterval& piece);
unsigned char* in_shard(const Operation& member, const PartInterval& piece);
unsigned char* out_shard(const Operation& member, const PartInterval& piece);
std::uint64_t bytes_of(const Operation& member, const PartInterval& piece);

}  // namespace piper::runtime
