#pragma once
// The job that the runtime is asked to run: programs and tables of all ranks, and what the train's settings say.
//
// Guarantees: a job owns everything that its tables point to; the DAGs may be gone. All ranks of one role share one program.
//
//   std::unique_ptr<Job> job = make_job(training, evaluation, {.engine = Engine::interpreter}, sink);
//   Executor::create(job->tables(), make_cpu_device(), {}, failure);

#include <memory>
#include <optional>

#include "backend/cuda/kernel_set.h"
#include "backend/device_program/device_program.h"
#include "backend/jit/jit.h"

namespace piper::backend {

enum class Engine : std::uint8_t { generated, interpreter };

struct JobOptions {
  Target target = Target::cpu;           // cuda, cuda_own: the ranks have functions that enqueue their steps; the plans are made for it
  Engine engine = Engine::generated;
  JitOptions jit = {};
  cuda::KernelSet* kernels = nullptr;    // on CUDA: to which those of the job are added, which outlives it; null: a set of its own
  std::uint64_t first_step = 0;          // of training: a resumed run begins later
  std::string products = {};             // which library takes which matrix product, in words: part of the programs' hashes, as results depend on it
  std::optional<std::uint64_t> steps = {};  // to run; by default those of the train behind `first_step`
};

class Job {
 public:
  ~Job();
  Job(const Job&) = delete;

  const PiperJob& tables() const;
  /// What the ranks run; for `show program`, traces and statistics.
  const ProgramSet& training() const;
  const ProgramSet* evaluation() const;
  /// False where generated programs were asked for and no compiler was found.
  bool generated() const;

  /// Of a job for CUDA: the function that enqueues the steps of a rank, and the kernels of all of them.
  const PiperEnqueue* enqueue(std::size_t rank, bool evaluation) const;
  const cuda::KernelSet& kernels() const;

  struct Parts;  // the implementation's own
  explicit Job(std::unique_ptr<Parts> parts);

 private:
  std::unique_ptr<Parts> parts_;
};

/// `training` and `evaluation` (null: none) are planned and speak of one mesh. Nothing, and an error in `sink`, when generated code cannot be built; nothing when the
/// build was stopped.
std::unique_ptr<Job> make_job(const dag::Dag& training, const dag::Dag* evaluation, const JobOptions& options, DiagnosticSink& sink);

}  // namespace piper::backend
