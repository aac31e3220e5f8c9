#pragma once
// Small bodies for checks of compilers: chains of operations that read elements at other positions
// than their own, between products, sums and functions.
//
// Guarantees: every body reads two values `x` and `y` of the same type, and perhaps a row `z` of
// it. The chains include forms that g++ 12.2 compiles wrongly if loops may be unrolled:
// `padded_slices` with vectors of 512 bits, `selected_rows` with those of 128 and 256.
//
//   for (CheckChain& chain : check_chains(context, tensor::DType::f64, 4, 4)) build_kernels(chain.body);

#include <cstdint>
#include <string>
#include <vector>

#include "ir/dag/body.h"

namespace piper::backend {

struct CheckChain {
  std::string what;  // sums of padded slices in `f64[batch: 4*, dim: 3]`
  dag::Body body;
};

/// All chains on values of that type and size; both extents are positive.
std::vector<CheckChain> check_chains(Context& context, tensor::DType dtype, std::int64_t batch,
                                     std::int64_t dim);

}  // namespace piper::backend
