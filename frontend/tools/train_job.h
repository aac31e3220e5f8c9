#pragma once
// From a compiled train to an executor: what `train` and `--reference` share.

#include <memory>
#include <optional>
#include <span>

#include "backend/device_program/job.h"
#include "frontend/tools/cuda_job.h"
#include "frontend/tools/session.h"
#include "runtime/executor/executor.h"
#include "runtime/launch/interrupt.h"
#include "runtime/weights/match.h"

namespace piper::tools {

struct Resumed;

/// A train that is ready to run. The job outlives the executor.
struct TrainJob {
  dag::Dag training;
  std::optional<dag::Dag> evaluation;
  std::unique_ptr<backend::Job> job;
  PiperJob tables{};  // of the job, with the ranks of this process
  std::unique_ptr<runtime::Executor> executor;
  std::string device = {};  // a GPU's name; empty: the CPU
  // The weights of `init`, unless the run goes on from a checkpoint.
  std::optional<runtime::WeightsReport> weights = {};
};

/// The runtime's options: the environment's and then the command line's. Nothing, and a diagnostic,
/// when one has no legal value.
std::optional<runtime::Options> runtime_options(Session& session);

/// The steps before compilation that can fail or wait: the runtime's options, from the environment
/// and then the command line, and reading the texts. Nothing, and a diagnostic, on an error.
std::optional<runtime::Options> prepare_train(Session& session, const Session::Subject& subject);
/// The libraries of matrix products that a run on CPUs uses: a part of the hash of its programs.
std::string products_text(const runtime::Options& options);
/// The texts alone.
bool texts_are_ready(Session& session, const Session::Subject& subject);

/// Compiles, verifies, builds and loads; flight records go to the folder (empty: none), in place of
/// those of an earlier run. Nothing, and a diagnostic, when something fails; nothing after an
/// interrupt (null: none). `cuda`: where it runs; null: on the CPU, in `processes` (null: in this
/// one). `resumed`: the checkpoint from which it goes on; null: it begins with first values.
std::unique_ptr<TrainJob> make_train_job(Session& session, Session::Subject& subject,
                                         bool with_held_out, const runtime::Options& options,
                                         const std::string& out_folder,
                                         const runtime::Interrupt* interrupt,
                                         CudaDevice* cuda = nullptr,
                                         const Resumed* resumed = nullptr,
                                         RunProcesses* processes = nullptr);

/// The bytes or tokens of a sample of `bytes(...)` or `tokens(...)`.
std::uint64_t window_of(Session& session, const directive::Data& data);

/// Opens the file of `arrays(...)`, which the session keeps: the number of its rows, or nothing
/// with the reason in `failure`.
std::optional<std::uint64_t> read_arrays(Session& session, const tensor::Graph& model,
                                         const directive::Data& data, runtime::Failure& failure);

/// Whether the batches of held-out data fit the model: where its samples depend on each other the
/// last batch must not be short. Otherwise reports `code` and returns false. Other data fits.
bool batches_fit(Session& session, const lower::Lowered& lowered, const directive::Data& data,
                 std::uint64_t samples, Code code);

/// The checked part of a text is bounded, because a large one takes long.
inline constexpr std::uint64_t kTextLookedThrough = 1 << 20;

/// Warns of a byte at the beginning of the text that the model has no row or class for: a run stops
/// at the first window that holds one.
void look_for_bytes(Session& session, const tensor::Graph& model, const directive::Data& data,
                    std::span<const unsigned char> text);

/// `stopped after step 3`, `stopped before step 1`.
std::string stopped_text(std::uint64_t steps);

/// A failure of the runtime as a diagnostic at its `.pipe` line; at the train if it has no line of
/// its own.
void report_failure(Session& session, const runtime::Failure& failure, LocId train);

}  // namespace piper::tools
