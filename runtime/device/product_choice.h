#pragma once
// The rule that chooses one of the two libraries of matrix products inside LibTorch, so that every
// rank and every run on one kind of processor has the same bits.
//
//   choose_product(call, Math::automatic, this_processor()) == ProductLibrary::mkl

#include <cstdint>

#include "runtime/abi.h"
#include "runtime/options.h"

namespace piper::runtime {

enum class ProductLibrary : std::uint8_t { mkl, onednn };

/// The properties of a processor that the rule reads.
struct Processor {
  bool intel = false;
  // The subsets of AVX-512 that LibTorch wants before it multiplies with oneDNN.
  bool avx512 = false;
};
Processor this_processor();

/// MKL uses AVX-512 on Intel's processors only, oneDNN on all. On others both use the same
/// instructions and are about as fast, and MKL starts faster. `math` is neither Math::builtin nor,
/// on a processor without AVX-512, Math::onednn.
ProductLibrary choose_product(const PiperGemm& call, Math math, const Processor& processor);

/// The number of rows of the result, at most `call.m`, that MKL computes in one call on `threads`
/// threads. MKL returns to each element once per block of the sum, so a call writes no more than a
/// core's second-level cache holds, unless rows are so long that packing `b` for few of them would
/// cost more than that saves. Several threads share the rows themselves and would wait for each
/// other after every call (measured in tests/bench/README.md).
std::int64_t rows_per_call(const PiperGemm& call, std::uint32_t threads);

/// The rule in a few words, for the hash of a program: equal if `choose_product` gives equal
/// libraries.
const char* rule_of_products(Math math, const Processor& processor);

/// `MKL`, `oneDNN`.
const char* name_of(ProductLibrary library);

}  // namespace piper::runtime
