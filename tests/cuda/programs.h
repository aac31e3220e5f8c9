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

/// Of every train in examples/, and of tests/cuda/testdata/*.pipe. `dtype` takes the place of the train's own.
std::vector<CudaProgram> cuda_programs(std::optional<tensor::DType> dtype = {});
/// Of the only train of a file.
CudaProgram cuda_program(const std::string& path, std::optional<tensor::DType> dtype = {});

}  // namespace piper::test
