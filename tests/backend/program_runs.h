#pragma once
// Compiles sample programs and runs them through the executor, interpreted or generated.
//
//   TestProgram program(small_gpt(context, {}), build.strategy(), context);
//   const ProgramRun run = program.run({.engine = Engine::interpreter}, 3);

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/device_program/job.h"
#include "tests/support/sample_models.h"

namespace piper::test {

/// The results of a run.
struct ProgramRun {
  std::vector<double> losses, norms;                      // per step
  std::map<std::string, std::vector<double>> parameters;  // after the last one
  std::vector<double> held_out;                           // losses of the evaluation program
};

class TestProgram {
 public:
  /// Fails the test if the strategy does not compile.
  TestProgram(Context& context, tensor::Graph model, directive::Strategy strategy,
              bool evaluation = false);

  explicit operator bool() const { return training_.has_value(); }
  const dag::Dag& training() const { return *training_; }
  std::unique_ptr<backend::Job> job(const backend::JobOptions& options);
  /// With library calls built in and short sleeps; fails the test if the run fails.
  ProgramRun run(const backend::JobOptions& options, std::uint64_t steps);

  DiagnosticSink sink;

 private:
  std::optional<dag::Dag> training_, evaluation_;
};

/// Two stages of a small GPT on pp 2 x dp 2, 1F1B over four microbatches, gradients clipped.
TestProgram gpt_program(Context& context, tensor::DType dtype = tensor::DType::f64,
                        bool evaluation = false);

}  // namespace piper::test
