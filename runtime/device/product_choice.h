#pragma once
// Which of the two libraries of matrix products inside LibTorch multiplies: a rule, so that every rank and every run on one kind of processor has the
// same bits.
//
//   choose_product(call, Math::automatic, this_processor()) == ProductLibrary::mkl

#include <cstdint>

#include "runtime/abi.h"
#include "runtime/options.h"

namespace piper::runtime {

enum class ProductLibrary : std::uint8_t { mkl, onednn };

/// What the rule asks of a processor.
struct Processor {
  bool intel = false;
  bool avx512 = false;  // the parts that LibTorch wants before it multiplies with oneDNN
};
Processor this_processor();

/// MKL uses AVX-512 on processors of its own maker only, oneDNN wherever it is. Elsewhere both use the same instructions and are about as fast, and MKL
/// is quicker to start. `math` is neither Math::builtin nor, on a processor without AVX-512, Math::onednn.
ProductLibrary choose_product(const PiperGemm& call, Math math, const Processor& processor);

/// Rows of the result that MKL shall compute in one call on so many threads, at most `call.m`. MKL comes back to each element once per block of the sum, so a
/// call writes no more than a core's second cache holds, unless rows are so long that packing `b` for few of them would cost more than that saves. Several
/// threads share the rows themselves and would wait for each other after every call (measured in tests/bench/README.md).
std::int64_t rows_per_call(const PiperGemm& call, std::uint32_t threads);

/// The rule in a few words, for the hash of a program: equal where `choose_product` gives equal libraries.
const char* rule_of_products(Math math, const Processor& processor);

/// `MKL`, `oneDNN`.
const char* name_of(ProductLibrary library);

}  // namespace piper::runtime
