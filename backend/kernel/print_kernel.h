#pragma once
// One loop nest as a C++ function.

#include <set>
#include <string>
#include <vector>

#include "backend/kernel/kernel.h"

namespace piper::backend {

/// The distinct buffers of a loop nest in the order of its parameters.
std::vector<BufferIndex> kernel_parameters(const Kernel& kernel);
bool kernel_draws(const Kernel& kernel);
/// The dropouts of a loop nest. Their keys are parameters of its function, `dropout_0_draws` of the
/// first one.
std::vector<const Statement*> kernel_dropouts(const Kernel& kernel);
std::string draws_name(std::size_t number);
/// The intervals of its body that a loop nest reads, ascending.
std::set<std::int32_t> kernel_intervals(const Kernel& kernel);

/// Prints the function `name`. `canonical` numbers all names, so that equal texts mean equal
/// functions.
std::string print_kernel(const Kernel& kernel, const KernelBody& body, const std::string& name,
                         bool canonical);

std::string c_type(tensor::DType dtype);

}  // namespace piper::backend
