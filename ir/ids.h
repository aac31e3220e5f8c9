#pragma once
// Typed 32-bit ids: `using StageId = Id<struct StageTag>;` makes an index that cannot be mixed up
// with another.
//
// Guarantees: trivially copyable, 4 bytes, totally ordered by value, hashable (std and LLVM maps);
// a default constructed id is invalid and may still be a map key.
//
//   using ChunkId = Id<struct ChunkTag>;
//   std::vector<Chunk> chunks;
//   Chunk& at(ChunkId id) { return chunks[id.index()]; }

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "llvm/ADT/DenseMapInfo.h"

namespace piper {

template <typename Tag>
class Id {
 public:
  constexpr Id() = default;
  /// `value` counts from 0 and stays below 2^32 - 3: the last values are "invalid" and the marks of
  /// LLVM maps.
  constexpr explicit Id(std::uint32_t value) : value_(value) {}

  /// The id of the element at position `index` of its table.
  static constexpr Id at(std::size_t index) { return Id(static_cast<std::uint32_t>(index)); }

  constexpr bool valid() const { return value_ != kInvalid; }
  constexpr std::uint32_t value() const { return value_; }
  /// The position in the owner's table; only for valid ids.
  constexpr std::size_t index() const { return value_; }

  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  static constexpr std::uint32_t kInvalid = 0xFFFFFFFFu;
  std::uint32_t value_ = kInvalid;
};

}  // namespace piper

template <typename Tag>
struct std::hash<piper::Id<Tag>> {
  std::size_t operator()(piper::Id<Tag> id) const noexcept {
    return std::hash<std::uint32_t>()(id.value());
  }
};

template <typename Tag>
struct llvm::DenseMapInfo<piper::Id<Tag>> {
  static piper::Id<Tag> getEmptyKey() { return piper::Id<Tag>(0xFFFFFFFEu); }
  static piper::Id<Tag> getTombstoneKey() { return piper::Id<Tag>(0xFFFFFFFDu); }
  static unsigned getHashValue(piper::Id<Tag> id) {
    return llvm::DenseMapInfo<std::uint32_t>::getHashValue(id.value());
  }
  static bool isEqual(piper::Id<Tag> a, piper::Id<Tag> b) { return a == b; }
};
