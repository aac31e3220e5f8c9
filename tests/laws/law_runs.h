#pragma once
// Runs a program in the three ways that the law of values compares, and compares the results.
//
// Guarantees: a run takes kLawSteps optimizer steps in f64 on synthetic data whose samples all
// differ; losses, gradients and parameters are recorded after every step; library calls are the
// runtime's own loops unless asked otherwise; arenas are poisoned and guarded.
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
/// Run all held-out steps of the data.
inline constexpr int kAllHeldOut = -1;

/// The results of a run; a vector has one entry per step.
struct LawRun {
  // norms: -1 if the program has none.
  std::vector<double> losses, norms;
  // After all steps: the losses of steps on held-out data.
  std::vector<double> held_out;
  double held_out_loss = 0;  // over all of them
  // Per step the microbatch sums of all losses.
  std::vector<std::vector<double>> sums;
  // averages: with `ema`, of trained parameters.
  std::map<std::string, std::vector<std::vector<double>>> gradients, parameters, averages;
  // Parameters before the first step.
  std::map<std::string, std::vector<double>> initial;
  std::string checkpoint;  // the folder of the one that was written
  std::vector<std::uint64_t> arena_bytes, touched_bytes, state_bytes;  // per rank
  std::vector<std::uint64_t> written_bytes;  // per rank, of that checkpoint
};

struct LawRunOptions {
  backend::Engine engine = backend::Engine::interpreter;
  std::string cache_folder = {};  // of generated objects
  runtime::RandomDelays delays = {};
  runtime::Math math = runtime::Math::builtin;
  int held_out_steps = 0;
  /// Makes the executor of the job; null: on the CPU.
  std::function<std::unique_ptr<runtime::Executor>(
      const backend::Job&, const runtime::ExecutorOptions&, runtime::Failure&)>
      executor = {};
  backend::cuda::KernelSet* kernels = nullptr;         // on CUDA: as JobOptions::kernels
  std::shared_ptr<runtime::Transport> transport = {};  // null: local
  int steps = kLawSteps;
  /// Goes on from the checkpoint in this folder; empty: from first values.
  std::string resumed = {};
  /// A folder for a checkpoint at the end, `step-N`; empty: none is written.
  std::string out_folder = {};
};

class LawProgram {
 public:
  /// Compiles up to level planned and verifies; on errors it fails the test and is false. `target`:
  /// the target of the plan; the interpreter runs either.
  LawProgram(Context& context, tensor::Graph model, directive::Strategy strategy,
             backend::Target target = backend::Target::cpu);

  explicit operator bool() const { return dag_.has_value(); }
  const dag::Dag& dag() const { return *dag_; }
  /// Sets other held-out data than that of training; call it before the first job.
  void hold_out(const directive::Data& data);

  /// Runs through the executor, all ranks in this process; fails the test if the run fails.
  LawRun run(const LawRunOptions& options);
  /// Makes only the job.
  std::unique_ptr<backend::Job> make_job(const LawRunOptions& options,
                                         std::uint64_t first_step = 0);
  /// Runs node after node on one device, without a plan.
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
      : drawn(random_program(context, random, options)),
        program(context, drawn.model, drawn.strategy) {}
  /// The same model on one device, not sharded; compiled separately.
  LawProgram unsplit();

  Context context;
  const RandomProgram drawn;
  LawProgram program;
};

/// Runs `body` on `count` random programs (`for_each_case`); a failure shows the program, and a
/// program that does not compile fails.
void for_each_law(int count, const RandomProgramOptions& options,
                  const std::function<void(DrawnLaw&, Random&)>& body);

/// The same train without directives, on one device: neither sharded, split nor ordered.
directive::Strategy one_device(Context& context, const directive::Strategy& strategy);

/// A run without its first steps.
LawRun without_steps(LawRun run, int steps);
/// The first bitwise difference of the runs in losses, microbatch sums, gradients or parameters;
/// empty: none.
std::string first_bit_difference(const LawRun& a, const LawRun& b);
/// The first difference in losses, held-out ones too, norms, gradients and parameters, by more than
/// `bound` relative to the norm of `b`'s tensor (at least 1e-3).
std::string first_difference(const LawRun& a, const LawRun& b, double bound);

}  // namespace piper::test
