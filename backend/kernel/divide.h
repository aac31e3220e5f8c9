#pragma once
// Division of a loop nest for a device that runs blocks of threads concurrently: nests of one form
// each, in order.
//
//   rms_norm_grad beside the sum of dy * x_hat over rows, 8192 rows of 768:
//     rows      dx; the inverse rms of each row goes to scratch
//     sums      64 parts of 128 rows, added row after row, for each of 768 columns -> scratch
//     sums      the parts, one after the other -> d_gain
//
// Guarantees: a result is written by one nest alone; values that two nests need are loaded or
// computed in both, and passed through scratch if they depend on a reduction or are stored anyway.
// Few long rows are divided into parts, and so are totals.

#include <vector>

#include "backend/kernel/lower_kernel.h"

namespace piper::backend {

std::vector<Kernel> divide(Kernel nest, const StepBuffers& buffers);

}  // namespace piper::backend
