#pragma once
// The runtime's job: programs and tables of all ranks, and the train's settings.
//
// Guarantees: a job owns everything that its tables point to and may outlive the DAGs. All ranks of
// one role share one program.
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
  // Cuda, cuda_own: the ranks have functions that enqueue their steps; the plans must be made for
  // it.
  Target target = Target::cpu;
  Engine engine = Engine::generated;
  JitOptions jit = {};
  // On CUDA: the set to which the job's kernels are added; it must outlive the job; null: a set of
  // its own.
  cuda::KernelSet* kernels = nullptr;
  std::uint64_t first_step = 0;  // first step of training; a resumed run begins later
  // A text about the libraries of matrix products; part of the programs' hashes, because results
  // depend on it.
  std::string products = {};
  // The ranks that this process runs, consecutive ones: programs of other roles are not built, and
  // have only tables.
  std::uint64_t first_rank = 0, num_ranks = UINT64_MAX;
  // Number of steps; by default those of the train from `first_step` on.
  std::optional<std::uint64_t> steps = {};
};

class Job {
 public:
  ~Job();
  Job(const Job&) = delete;

  const PiperJob& tables() const;
  /// The programs of the ranks, for `show program`, traces and statistics.
  const ProgramSet& training() const;
  const ProgramSet* evaluation() const;
  /// False if generated programs were requested and no compiler was found.
  bool generated() const;

  /// For a CUDA job: the function that enqueues the steps of a rank, and the kernels of all ranks.
  const PiperEnqueue* enqueue(std::size_t rank, bool evaluation) const;
  const cuda::KernelSet& kernels() const;

  struct Parts;  // the implementation's own
  explicit Job(std::unique_ptr<Parts> parts);

 private:
  std::unique_ptr<Parts> parts_;
};

/// `training` and `evaluation` (null: none) are planned on the same mesh. Nothing, with an error in
/// `sink`, if generated code cannot be built; nothing if the build was stopped.
std::unique_ptr<Job> make_job(const dag::Dag& training, const dag::Dag* evaluation,
                              const JobOptions& options, DiagnosticSink& sink);

}  // namespace piper::backend
