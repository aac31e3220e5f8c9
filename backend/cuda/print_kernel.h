#pragma once
// One loop nest as a CUDA kernel, with the launch configuration of launch.h.
//
// Guarantees: the results are those of the evaluator for the same nest, bit for bit (compile with
// kFlags). The text needs prelude.h and kernel_math.h.

#include <string>
#include <vector>

#include "backend/kernel/kernel.h"

namespace piper::backend::cuda {

/// Flags of NVRTC: no contraction, exact divisions and roots, subnormal numbers are kept;
/// `-lineinfo` keeps the lines of the .pipe file.
inline constexpr const char* kFlags[] = {"--std=c++17",     "--fmad=false",     "--ftz=false",
                                         "--prec-div=true", "--prec-sqrt=true", "-lineinfo"};

/// `canonical` numbers all names and leaves out lines, so that equal texts mean equal kernels.
std::string print_kernel(const Kernel& kernel, const KernelBody& body, const std::string& name,
                         bool canonical);

}  // namespace piper::backend::cuda
