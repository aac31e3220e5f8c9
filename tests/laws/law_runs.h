#pragma once
// Runs a program in the three ways that the law of values speaks of, and compares what came out.
//
// Guarantees: a run takes kLawSteps optimizer steps in f64 on synthetic data whose samples all differ; losses, gradients and parameters are recorded
// after every step; library calls are the runtime's own loops unless asked otherwise; arenas are poisoned and guarded.
//
//   LawProgram program(context, model, strategy);
//   const LawRun run = program.run({});
//   EXPECT_EQ(first_bit_difference(run, program.run_sequential()), "");
//   EXPECT_EQ(first_difference(run, LawProgram(context, model, one_device(context, strategy)).run({}), 1e-10), "");

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/device_program/job.h"
#include "ir/directive/directive.h"
#include "ir/tensor/graph.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/executor/executor.h"
#include "tests/support/random_programs.h"

namespace piper::test {

inline constexpr int kLawSteps = 3;
/// As many held-out steps as the data has batches.
inline constexpr int kAllHeldOut = -1;

/// What a run leaves behind; a vector has one entry per step.
struct LawRun {
  std::vector<double> losses, norms;                                // norms: -1 where the program has none
  std::vector<double> held_out;                                     // after all steps: the losses of steps on held-out data
  double held_out_loss = 0;                                         // over all of them
  std::vector<std::vector<double>> sums;                            // per step all losses' microbatch sums
  std::map<std::string, std::vector<std::vector<double>>> gradients, parameters;
  std::map<std::string, std::vector<double>> initial;               // parameters before the first step
  std::vector<std::uint64_t> arena_bytes, touched_bytes, state_bytes;  // per rank
};

struct LawRunOptions {
  backend::Engine engine = backend::Engine::interpreter;
  std::string cache_folder = {};        // of generated objects
  runtime::RandomDelays delays = {};
  runtime::Math math = runtime::Math::builtin;
  int held_out_steps = 0;
  /// Makes the executor of the job; null: on the CPU.
  std::function<std::unique_ptr<runtime::Executor>(const backend::Job&, const runtime::ExecutorOptions&, runtime::Failure&)> executor = {};
  backend::cuda::KernelSet* kernels = nullptr;  // on CUDA: as JobOptions::kernels
  std::shared_ptr<runtime::Transport> transport = {};  // null: local
};

class LawProgram {
 public:
  /// Compiles up to level planned and verifies; fails the test, and is false, when there are errors.
  /// `target`: what the plan is made for; the interpreter runs either.
  LawProgram(Context& context, tensor::Graph model, directive::Strategy strategy, backend::Target target = backend::Target::cpu);

  explicit operator bool() const { return dag_.has_value(); }
  const dag::Dag& dag() const { return *dag_; }
  /// Other held-out data than that of training; before the first job.
  void hold_out(const directive::Data& data);

  /// Through the executor, all ranks in this process; fails the test when the run fails.
  LawRun run(const LawRunOptions& options);
  /// The job alone.
  std::unique_ptr<backend::Job> make_job(const LawRunOptions& options);
  /// Node after node on one device, without plan.
  LawRun run_sequential(runtime::Math math = runtime::Math::builtin);
  /// The whole batch of a step, per model input in their order.
  std::vector<std::vector<double>> inputs_of_step(std::uint64_t step);

 private:
  std::optional<dag::Dag> compile(bool forward_only);

  DiagnosticSink sink_;
  const backend::Target target_;
  tensor::Graph model_;
  directive::Strategy strategy_;
  std::optional<dag::Dag> dag_, held_out_;
};

/// A random program, compiled.
struct DrawnLaw {
  DrawnLaw(Random& random, const RandomProgramOptions& options)
      : drawn(random_program(context, random, options)), program(context, drawn.model, drawn.strategy) {}
  /// The same model on one device, nothing cut; compiled anew.
  LawProgram unsplit();

  Context context;
  const RandomProgram drawn;
  LawProgram program;
};

/// Runs `body` on `count` random programs (`for_each_case`); a failure shows the program, and one that does not compile fails.
void for_each_law(int count, const RandomProgramOptions& options, const std::function<void(DrawnLaw&, Random&)>& body);

/// The same train without directives, on one device: nothing is cut, split or ordered.
directive::Strategy one_device(Context& context, const directive::Strategy& strategy);

/// Where the runs differ first in losses, microbatch sums, gradients or parameters, bit for bit; empty: nowhere.
std::string first_bit_difference(const LawRun& a, const LawRun& b);
/// As above, in losses, held-out ones too, norms, gradients and parameters, by more than `bound` relative to the norm of `b`'s tensor (at least 1e-3).
std::string first_difference(const LawRun& a, const LawRun& b, double bound);

}  // namespace piper::test
