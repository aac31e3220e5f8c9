#pragma once
// Programs that run on one device of a test, with their kernels compiled together, because
// compiling takes longer than the runs.
//
//   PlannedLaws laws;
//   const PlannedLaw& small = laws.add("mlp", kMlp, tensor::DType::bf16);
//   laws.build(device);
//   first_difference(laws.run(small, drivers), laws.interpreted(small), 0x1p-6);

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/kernel_set.h"
#include "tests/cuda/cuda_laws.h"
#include "tests/cuda/test_device.h"

namespace piper::test {

struct PlannedLaw {
  std::string what;  // `gpipe(pp, 4), zero: 1 in f64`
  std::unique_ptr<CudaLaw> law;
  tensor::DType dtype;
};

class PlannedLaws {
 public:
  /// Fails the test if it does not compile. The result stays at its address.
  const PlannedLaw& add(std::string what, const std::string& text,
                        tensor::DType dtype = tensor::DType::f64);
  /// Every schedule of the library on a small GPT at each level of ZeRO, and every layout of
  /// kNoisyLines.
  std::vector<const PlannedLaw*> add_library(tensor::DType dtype);
  std::vector<const PlannedLaw*> add_lines(tensor::DType dtype);

  /// Builds the kernels of all of them, and those of the runtime.
  void build(TestDevice& device);
  const std::vector<std::string>& images() const { return images_; }
  std::size_t kernels() const { return kernels_.list().size(); }

  /// With one step on held-out data.
  LawRunOptions options();
  LawRun interpreted(const PlannedLaw& planned);
  LawRun run(const PlannedLaw& planned, MakeDriver drivers);

 private:
  std::list<PlannedLaw> laws_;
  backend::cuda::KernelSet kernels_;
  std::vector<std::string> images_;
};

}  // namespace piper::test
