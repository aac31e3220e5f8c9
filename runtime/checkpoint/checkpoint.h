#pragma once
// A checkpoint that was written before, by a run of any layout.
//
// Guarantees: files are trusted in nothing: sizes, names, types and checksums are verified before a
// byte reaches a rank. A checkpoint that is refused has changed nothing.
//
//   const auto path = find_checkpoint("run", {}, failure);
//   const auto checkpoint = Checkpoint::open(*path, failure);
//   if (auto differs = checkpoint->compare(parameters, run, Restored::all)) ...;
//   if (auto wrong = checkpoint->load(memory, Restored::all)) ...;

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/state_memory.h"
#include "runtime/checkpoint/state_tensors.h"

namespace piper::runtime {

/// The state that a run takes from a checkpoint: everything, as if it had never ended, or the values of
/// parameters, as the start of another training.
enum class Restored : std::uint8_t { all, weights };

/// The folder of a checkpoint, from the text of `--resume`: `run` (its latest one), `run:300`,
/// `run/step-300`. Empty, with the reason in `failure` (kCheckpointMissing).
struct FoundCheckpoint {
  std::string run;     // the folder that holds it
  std::string folder;  // its own
};
std::optional<FoundCheckpoint> find_checkpoint(const std::string& text, Failure& failure);

/// The step of the complete checkpoint with the lowest held-out loss in its manifest, the first of
/// several; nothing if no readable manifest has a loss. Other files are not read.
std::optional<std::uint64_t> best_checkpoint(const std::string& run);

class Checkpoint {
 public:
  struct Tensor {
    std::size_t file = 0;  // into manifest().files
    StoredTensor stored;
    std::uint64_t position = 0;  // of its first byte in the file
  };

  /// Reads the manifest and the headers. Null with the reason in `failure` (kCheckpointUnreadable).
  static std::unique_ptr<Checkpoint> open(const std::string& folder, Failure& failure);
  /// Reads the manifest alone, with the same failures.
  static std::optional<Manifest> manifest_of(const std::string& folder, Failure& failure);
  ~Checkpoint();
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  const std::string& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }
  /// By key: `gpt.wte`, `m/gpt.wte`.
  const std::map<std::string, Tensor, std::less<>>& tensors() const { return tensors_; }

  /// Compares it with a run, `run` with the facts of CheckpointOptions: kCheckpointDiffers, with
  /// all that differs, if the run cannot go on from it. Either may have moving averages alone.
  std::optional<Failure> compare(const RankParameters& parameters, const Manifest& run,
                                 Restored restored) const;

  /// Writes the state of all local ranks, whose other state is zero. It has been compared with the
  /// run. Moving averages that it lacks begin at the values. After a failure nothing may run.
  std::optional<Failure> load(const StateMemory& memory, Restored restored) const;

  /// Whether it has moving averages of parameters.
  bool has_averages() const;
  /// Whether a key is that of values of a parameter, and of no state of the optimizer.
  static bool is_weight(std::string_view key);
  /// Verifies the checksums of all files with weights, or with moving averages and the weights of
  /// parameters that have none, until `stopped` (empty: never).
  std::optional<Failure> verify_weights(const std::function<bool()>& stopped = {},
                                        bool averages = false) const;
  /// Reads bytes of a tensor, `first` counted from its own start, without their checksums.
  std::optional<Failure> read(const Tensor& tensor, std::uint64_t first, std::uint64_t bytes,
                              void* to) const;

 private:
  Checkpoint() = default;
  bool read_headers(Failure& failure);

  std::string folder_;
  Manifest manifest_;
  std::map<std::string, Tensor, std::less<>> tensors_;
  std::vector<int> files_;  // open ones, beside manifest().files
};

}  // namespace piper::runtime
