#pragma once
// Programs whose kernels are compiled: the examples, and one with the sizes of a large model.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/device_program/device_program.h"

namespace piper::test {

struct CudaProgram {
  std::string name;
  backend::ProgramSet programs;
};

/// Every train in examples/, and in tests/cuda/testdata/*.pipe. `dtype` replaces the train's own.
std::vector<CudaProgram> cuda_programs(std::optional<tensor::DType> dtype = {});
/// A train of a file; without a name its only one.
CudaProgram cuda_program(const std::string& path, std::optional<tensor::DType> dtype = {},
                         const std::string& train = "");

}  // namespace piper::test
