#pragma once
// Division of a loop nest for a device that runs blocks of threads at the same time: nests of one form each, in order.
//
//   rms_norm_grad beside the sum of dy * x_hat over rows, 8192 rows of 768:
//     rows      dx; the inverse rms of each row goes to scratch
//     sums      64 parts of 128 rows, added row after row, for each of 768 columns -> scratch
//     sums      the parts, one after the other -> d_gain
//
// Guarantees: a result is written by one nest alone; what two nests need is loaded or computed in both, and handed over in scratch where it depends on a
// reduction or is stored anyway. A row that is long while rows are few is cut into parts, and so is a total.

#include <vector>

#include "backend/kernel/lower_kernel.h"

namespace piper::backend {

std::vector<Kernel> divide(Kernel nest, const StepBuffers& buffers);

}  // namespace piper::backend
