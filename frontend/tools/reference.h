#pragma once
// `train --reference`: the program against the one-device step (docs/execution.md section 6).

#include "frontend/tools/cuda_job.h"
#include "frontend/tools/session.h"
#include "runtime/options.h"

namespace piper::tools {

/// On the CPU: three steps in f64 against the unsplit one-device step of the same model, each loss,
/// gradient and parameter within kReferenceBound of it relative to the larger of its norm and 1; in
/// bf16 also three of its own type against that step, the loss within kReferenceBoundNarrow,
/// gradients printed; then three steps in the train's own type against the one-device run with the
/// same microbatches and order of additions, bit-equal. On a GPU the second comparison is with the
/// same program on the CPU, whose products and attention add in another order: loss and gradients
/// within kReferenceBoundF32 in f32 and kReferenceBoundNarrow in bf16, all within kReferenceBound
/// in f64. Prints the largest differences; gives the exit code, 1 beyond a bound. Ctrl-C ends it
/// between two steps or before them, as it ends a run. All processes call it; the first one runs
/// the reference, compares and prints.
int compare_with_one_device(Session& session, Session::Subject& subject,
                            const runtime::Options& options, CudaDevice* cuda);

inline constexpr double kReferenceBound = 1e-10, kReferenceBoundF32 = 1e-3;
/// For a program in bf16: its loss against the unsplit step in f64, and on a GPU its loss and
/// gradients against the CPU. Each operation rounds by 2^-9, and a deep model has some hundreds in
/// sequence.
inline constexpr double kReferenceBoundNarrow = 1e-1;
inline constexpr int kReferenceSteps = 3;

}  // namespace piper::tools
