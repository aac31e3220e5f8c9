#pragma once
// Types of tensor values: an element type and named dimensions.
//
//   tensor f32[batch: 32, seq: 128, dim: 256]

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/context.h"

namespace piper::tensor {

enum class DType : std::uint8_t {
#define DTYPE(name, bytes, floating, wide) name,
#include "ir/tensor/dtypes.def"
#undef DTYPE
};

struct DTypeTraits {
  std::string_view name;
  std::size_t bytes;
  bool floating;
  DType wide;
};
inline constexpr auto kDTypes = std::to_array<DTypeTraits>({
#define DTYPE(name, bytes, floating, wide) {#name, bytes, floating, DType::wide},
#include "ir/tensor/dtypes.def"
#undef DTYPE
});
constexpr const DTypeTraits& traits(DType dtype) {
  return kDTypes[static_cast<std::size_t>(dtype)];
}

constexpr std::string_view dtype_name(DType dtype) { return traits(dtype).name; }
constexpr std::size_t dtype_bytes(DType dtype) { return traits(dtype).bytes; }
constexpr bool is_floating(DType dtype) { return traits(dtype).floating; }
/// The type of its sums: f32 for bf16, else the type itself.
constexpr DType wide(DType dtype) { return traits(dtype).wide; }
constexpr bool is_narrow(DType dtype) { return wide(dtype) != dtype; }
std::optional<DType> parse_dtype(std::string_view text);

/// One named dimension, with its global extent. A sampled one counts samples: localising a body
/// divides its extent by microbatches and copies.
struct Dim {
  Symbol name;
  std::int64_t extent = 0;
  bool sampled = false;
  friend bool operator==(const Dim&, const Dim&) = default;
};

/// Dimensions in memory order (row-major, the last is contiguous); names are unique. A scalar has
/// none.
struct Type {
  DType dtype = DType::f32;
  std::vector<Dim> dims;

  std::int64_t elements() const;
  std::int64_t bytes() const { return elements() * static_cast<std::int64_t>(dtype_bytes(dtype)); }
  /// The position of the dimension of that name, if there is one.
  std::optional<std::size_t> find(Symbol name) const;
  /// The dimension that counts samples, or null.
  const Dim* samples() const;
  friend bool operator==(const Type&, const Type&) = default;
};

/// The type of the gradient of a parameter of type `param`: contributions are summed in the wide
/// dtype.
inline Type gradient_type(Type param) {
  param.dtype = wide(param.dtype);
  return param;
}

/// `f32[batch: 32, seq: 128]`; sampled dimensions print as `batch: 32*`, a scalar as `f32[]`.
std::string print(const Type& type, const SymbolTable& symbols);

}  // namespace piper::tensor
