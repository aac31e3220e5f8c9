#pragma once
// The folders and files of checkpoints: `OUT/step-300` is a complete one, `OUT/.step-300.partial`
// one that is being written.
//
// Guarantees: a folder `step-N` with a manifest is complete, also after the machine has lost power.
// Nothing follows links out of OUT.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/failure.h"

namespace piper::runtime {

inline constexpr const char* kManifestName = "manifest.json";
inline constexpr const char* kIndexName = "model.safetensors.index.json";

/// `step-300`.
std::string step_folder(std::uint64_t step);
/// `.step-300.partial`.
std::string partial_folder(std::uint64_t step);

/// The steps of all complete checkpoints in a folder, ascending; none if there is no such folder.
std::vector<std::uint64_t> complete_steps(const std::string& out_folder);

/// Removes what runs that were killed have left behind. No other process may write to the folder.
std::optional<Failure> remove_partial_checkpoints(const std::string& out_folder);
/// Moves complete checkpoints of later steps than `after` to OUT/checkpoints.1, or the first number
/// that is free; without `after` all of them. `kept_as` is the new folder, empty if there were none.
std::optional<Failure> move_checkpoints_aside(const std::string& out_folder,
                                              std::optional<std::uint64_t> after,
                                              std::string& kept_as);
/// Removes the oldest complete checkpoints until `keep` are left; 0: removes none.
std::optional<Failure> remove_old_checkpoints(const std::string& out_folder, std::uint64_t keep);

/// A file under --out could not be written: kOutputUnwritable, with the reason of `error`, an errno.
Failure unwritable_checkpoint(const std::string& path, int error);

/// A file that is written at given positions, by several processes at once. Each function returns
/// the errno of a failure, or 0.
class WrittenFile {
 public:
  WrittenFile() = default;
  WrittenFile(const WrittenFile&) = delete;
  WrittenFile& operator=(const WrittenFile&) = delete;
  ~WrittenFile();

  /// Creates the file if it does not exist.
  int open(const std::string& path);
  int write(std::uint64_t position, const void* from, std::uint64_t bytes);
  /// Makes the bytes durable, and closes the file.
  int finish();

 private:
  int file_ = -1;
};

/// Makes the entries of a folder durable. Returns an errno, or 0.
int sync_folder(const std::string& path);

}  // namespace piper::runtime
