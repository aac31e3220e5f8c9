#pragma once
// Element types of the IR, their numbers in the runtime's ABI, and their spellings in generated
// code. A new type needs a row here to compile.
//
//   row_of(tensor::DType::f32).abi       // PIPER_F32
//   row_of(PIPER_F32).cpp                // "float"

#include <cstdint>

#include "ir/tensor/type.h"
#include "llvm/Support/ErrorHandling.h"
#include "runtime/abi.h"
#include "runtime/kernel_math.h"

namespace piper::backend {

struct DTypeRow {
  tensor::DType dtype;
  PiperDType abi;
  const char* abi_name;
  const char* cpp;
};

/// No default, so the compiler reports a type without a row.
constexpr DTypeRow row_of(tensor::DType dtype) {
  switch (dtype) {
    case tensor::DType::f64: return {dtype, PIPER_F64, "PIPER_F64", "double"};
    case tensor::DType::f32: return {dtype, PIPER_F32, "PIPER_F32", "float"};
    case tensor::DType::i64: return {dtype, PIPER_I64, "PIPER_I64", "int64_t"};
    case tensor::DType::bf16: return {dtype, PIPER_BF16, "PIPER_BF16", "piper_bf16"};
  }
  llvm_unreachable("no element type");
}

/// `abi`: a PiperDType, which descriptions for the runtime store as a number.
constexpr DTypeRow row_of(std::uint32_t abi) {
  switch (static_cast<PiperDType>(abi)) {
    case PIPER_F64: return row_of(tensor::DType::f64);
    case PIPER_F32: return row_of(tensor::DType::f32);
    case PIPER_I64: return row_of(tensor::DType::i64);
    case PIPER_BF16: return row_of(tensor::DType::bf16);
  }
  llvm_unreachable("no element type of the ABI");
}

constexpr PiperDType abi_dtype(tensor::DType dtype) { return row_of(dtype).abi; }

/// Calls `use` with a zero of the type in generated code.
template <typename Use>
constexpr decltype(auto) with_element(tensor::DType dtype, Use&& use) {
  switch (dtype) {
    case tensor::DType::f64: return use(double{});
    case tensor::DType::f32: return use(float{});
    case tensor::DType::i64: return use(std::int64_t{});
    case tensor::DType::bf16: return use(piper_bf16{});
  }
  llvm_unreachable("no element type");
}

/// Calls `use` with a zero of the type in which kernel statements compute, which is never narrow.
template <typename Use>
constexpr decltype(auto) with_number(tensor::DType dtype, Use&& use) {
  switch (dtype) {
    case tensor::DType::f64: return use(double{});
    case tensor::DType::f32: return use(float{});
    case tensor::DType::i64:
    case tensor::DType::bf16: break;
  }
  llvm_unreachable("statements compute in f64 and f32");
}

inline double element_as_double(const unsigned char* values, tensor::DType dtype,
                                std::int64_t i = 0) {
  return with_element(dtype, [&](auto zero) {
    return static_cast<double>(reinterpret_cast<const decltype(zero)*>(values)[i]);
  });
}

}  // namespace piper::backend
