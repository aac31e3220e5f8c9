#pragma once
// Writes the checkpoints of a run, on a thread of its own while training goes on.
//
// Guarantees: a checkpoint becomes visible as a whole, after all its bytes are durable: a process
// that is killed at any moment leaves the checkpoint before it. Files do not depend on the layout
// of the run. Every process writes the state of its own ranks; rank 0 writes the manifest.
//
//   CheckpointWriter writer(memory, {.out_folder = "run", .keep = 3, .run = run_of(job)});
//   if (auto failure = writer.save(300)) ...;    // also the failure of the one before
//   if (auto failure = writer.finish()) ...;

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/checkpoint/checkpoint_files.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/piece_sums.h"
#include "runtime/checkpoint/snapshot.h"
#include "runtime/checkpoint/state_memory.h"
#include "runtime/checkpoint/state_tensors.h"

namespace piper::runtime {

struct CheckpointOptions {
  std::string out_folder;
  std::uint64_t keep = 0;  // complete checkpoints that are left in the folder; 0: all
  bool best = false;       // the one with the lowest held-out loss is left beside them
  // The facts of the run, without its progress and files.
  Manifest run = {};
  // Updates of the parameters beyond the steps: nonzero after a resume with another batch.
  std::int64_t further_updates = 0;
  std::uint64_t max_file_bytes = kMaxFileBytes;
};

class CheckpointWriter {
 public:
  CheckpointWriter(StateMemory memory, CheckpointOptions options);
  /// Waits for the checkpoint that is being written.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Copies the state after `step` steps, between two runs, and begins to write it. Waits for the
  /// one before. With several processes all call it at the same steps.
  /// `held_out_loss`: of the state, for the manifest.
  std::optional<Failure> save(std::uint64_t step, std::optional<double> held_out_loss = {});
  /// Waits for the last one; with several processes until all have written it.
  std::optional<Failure> finish();

  /// The step of the last checkpoint that was begun.
  std::optional<std::uint64_t> last() const { return last_; }
  /// The folder of a checkpoint: `run/step-300`.
  std::string folder(std::uint64_t step) const;

 private:
  bool first() const;  // of the processes
  std::optional<Failure> wait();
  void write(const Manifest& manifest);
  std::optional<Failure> write_all(const Manifest& manifest);
  std::optional<Failure> write_parts(const PartialFolder& folder, std::vector<PartSum>& sums);
  std::optional<Failure> receive_parts(std::vector<PartSum>& sums);
  std::optional<Failure> commit(Manifest manifest, PartialFolder& folder,
                                std::vector<PartSum> sums);
  std::optional<Failure> write_text(const PartialFolder& folder, const std::string& name,
                                    const std::string& text);

  const StateMemory memory_;
  const CheckpointOptions options_;
  const RankParameters parameters_;
  const StateLayout layout_;
  Snapshot snapshot_;
  std::optional<std::uint64_t> last_;
  std::optional<Failure> failure_;  // of the thread, once it has been joined
  std::thread thread_;
};

}  // namespace piper::runtime
