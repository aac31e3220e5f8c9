#pragma once
// The folders and files of checkpoints: `OUT/step-300` is a complete one, `OUT/.step-300.partial`
// one that is being written.
//
// Guarantees: a folder `step-N` with a manifest is complete, also after the machine has lost power.
// Nothing follows links out of OUT: a link in place of a folder or file of a checkpoint is refused,
// or removed itself. Links in the path of OUT are followed.

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
/// Moves checkpoints of later steps than `after` to OUT/checkpoints.1, or the first number that is
/// free; without `after` all of them. An incomplete one is moved, too, because the run writes
/// there. `kept_as` is the new folder, empty if there were none.
std::optional<Failure> move_checkpoints_aside(const std::string& out_folder,
                                              std::optional<std::uint64_t> after,
                                              std::string& kept_as);
/// Removes the oldest complete checkpoints until `keep` are left; 0: removes none. The one of step
/// `best` is left beside them.
std::optional<Failure> remove_old_checkpoints(const std::string& out_folder, std::uint64_t keep,
                                              std::optional<std::uint64_t> best = {});

/// A file under --out could not be written: kOutputUnwritable, with the reason of `error`, an errno.
Failure unwritable_checkpoint(const std::string& path, int error);

/// The folder `.step-N.partial`, which several processes write at once. It is held open, so that
/// its files stay in it, whatever takes its name.
class PartialFolder {
 public:
  PartialFolder() = default;
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;
  ~PartialFolder();

  /// Makes the folder if it does not exist; refuses a link.
  std::optional<Failure> open(const std::string& out_folder, std::uint64_t step);
  const std::string& path() const { return path_; }
  int descriptor() const { return folder_; }
  /// Makes its entries durable, and renames it to `complete`.
  std::optional<Failure> commit(const std::string& complete);

 private:
  std::string path_;
  int folder_ = -1;
};

/// A file that is written at given positions. Each function returns the errno of a failure, or 0:
/// ELOOP for a link, EMLINK for a file with a second name, ENXIO for no plain file.
class WrittenFile {
 public:
  WrittenFile() = default;
  WrittenFile(const WrittenFile&) = delete;
  WrittenFile& operator=(const WrittenFile&) = delete;
  ~WrittenFile();

  /// Creates a file; EEXIST if there is one.
  int create(const std::string& path);
  /// Opens a file of a checkpoint, which other processes write, too, and creates it if it does not
  /// exist. It then has `bytes` bytes, whatever a killed run has left.
  int open(const PartialFolder& folder, const std::string& name, std::uint64_t bytes);
  int write(std::uint64_t position, const void* from, std::uint64_t bytes);
  /// Makes the bytes durable, and closes the file.
  int finish();

 private:
  int file_ = -1;
};

/// Makes the entries of a folder durable. Returns an errno, or 0.
int sync_folder(const std::string& path);

}  // namespace piper::runtime
