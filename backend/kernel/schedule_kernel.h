#pragma once
// Scheduling of one nest of a division: its passes, its form, and the threads that run it.
//
//   a softmax of 8192 rows of 512 f32   ->   passes 0 to 2, Form::rows, 64 threads for each row, vectors of 4

#include "backend/kernel/kernel.h"
#include "backend/kernel/lower_kernel.h"

namespace piper::backend {

/// Completes `kernel`, which was divided from `nest` and has its loops and statements in dependence
/// order. Sets the checks, the passes, the ops and the lanes, and the form unless the kernel sums
/// by index (`Kernel::runs`). Statements refer to the ops of `nest` before, to those of `kernel`
/// afterwards.
void schedule_kernel(Kernel& kernel, const Kernel& nest, const StepBuffers& buffers);

}  // namespace piper::backend
