#include "tests/cuda/planned_laws.h"

#include <gtest/gtest.h>

#include "tests/laws/library_cases.h"

namespace piper::test {

const PlannedLaw& PlannedLaws::add(std::string what, const std::string& text, tensor::DType dtype) {
  const PlannedLaw& made = laws_.emplace_back(
      PlannedLaw{std::move(what) + " in " + std::string(tensor::dtype_name(dtype)),
                 std::make_unique<CudaLaw>(text, dtype), dtype});
  // Its kernels come into the set.
  EXPECT_TRUE(made.law->program && *made.law->program && made.law->program->make_job(options()))
      << made.what;
  return made;
}

std::vector<const PlannedLaw*> PlannedLaws::add_library(tensor::DType dtype) {
  std::vector<const PlannedLaw*> added;
  for (const LibraryCase& each : library_cases()) {
    for (const char* zero : {"zero: 1", "zero: 2", "zero: 3, prefetch: 1"}) {
      if (each.replicates && zero != std::string("zero: 1")) continue;
      added.push_back(&add(each.call + ", " + zero, gpt_source(each, zero), dtype));
    }
  }
  return added;
}

std::vector<const PlannedLaw*> PlannedLaws::add_lines(tensor::DType dtype) {
  std::vector<const PlannedLaw*> added;
  for (const auto& [name, lines] : kNoisyLines)
    added.push_back(&add(name, noisy_source(lines), dtype));
  return added;
}

void PlannedLaws::build(TestDevice& device) {
  images_ = {device.build(kernels_), device.build_own()};
}

LawRunOptions PlannedLaws::options() {
  LawRunOptions options;
  options.kernels = &kernels_;
  options.held_out_steps = 1;
  return options;
}

LawRun PlannedLaws::interpreted(const PlannedLaw& planned) {
  return planned.law->program->run(options());
}

LawRun PlannedLaws::run(const PlannedLaw& planned, MakeDriver drivers) {
  LawRunOptions on_device = options();
  on_device.executor = executors_on(images_, std::move(drivers));
  return planned.law->program->run(on_device);
}

}  // namespace piper::test
