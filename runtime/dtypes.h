#pragma once
// Element types in the runtime: numbers of the ABI, and their types in memory. A new type needs a
// row here, or this does not compile.
//
//   with_element(part.dtype, [&](auto zero) { add<decltype(zero)>(sum, value, count); });

#include <cstdint>
#include <cstdlib>

#include "runtime/abi.h"
#include "runtime/kernel_math.h"

namespace piper::runtime {

/// Its name in text; null for a number that is no type.
constexpr const char* dtype_name(std::uint32_t dtype) {
  switch (static_cast<PiperDType>(dtype)) {
    case PIPER_F64: return "f64";
    case PIPER_F32: return "f32";
    case PIPER_I64: return "i64";
    case PIPER_BF16: return "bf16";
  }
  return nullptr;
}

/// The type that operations compute in and sums are kept in; any other number is a fault of this
/// program, as below.
constexpr PiperDType wide_dtype(std::uint32_t dtype) {
  switch (static_cast<PiperDType>(dtype)) {
    case PIPER_F64: return PIPER_F64;
    case PIPER_F32:
    case PIPER_BF16: return PIPER_F32;
    case PIPER_I64: return PIPER_I64;
  }
  std::abort();
}

/// Whether parameters may have this type.
constexpr bool is_floating(std::uint32_t dtype) {
  switch (static_cast<PiperDType>(dtype)) {
    case PIPER_F64:
    case PIPER_F32:
    case PIPER_BF16: return true;
    case PIPER_I64: return false;
  }
  return false;
}

/// Calls `use` with a zero of that type. The tables of a job are checked before anything of them is
/// read: any other number is a fault of this program.
template <typename Use>
constexpr decltype(auto) with_element(std::uint32_t dtype, Use&& use) {
  switch (static_cast<PiperDType>(dtype)) {
    case PIPER_F64: return use(double{});
    case PIPER_F32: return use(float{});
    case PIPER_I64: return use(std::int64_t{});
    case PIPER_BF16: return use(piper_bf16{});
  }
  std::abort();
}

/// Bytes of one element.
constexpr std::uint64_t element_bytes(std::uint32_t dtype) {
  return with_element(dtype, [](auto zero) -> std::uint64_t { return sizeof zero; });
}

inline double element_as_double(const unsigned char* values, std::uint32_t dtype, std::uint64_t i) {
  return with_element(dtype, [&](auto zero) {
    return static_cast<double>(reinterpret_cast<const decltype(zero)*>(values)[i]);
  });
}

}  // namespace piper::runtime
