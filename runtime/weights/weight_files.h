#pragma once
// Weights in safetensors files: one file, or a folder with `model.safetensors`, or with
// `model.safetensors.index.json` and the files that it names, as Hugging Face writes them.
//
// Guarantees: files are trusted in nothing. Names in an index are never paths, and every tensor is
// in exactly the file that the index says.
//
//   Failure failure;
//   const auto files = WeightFiles::open("llama", failure);
//   if (!files) report(failure);
//   files->tensors().find("lm_head.weight");

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/checkpoint/safetensors.h"
#include "runtime/failure.h"

namespace piper::runtime {

class WeightFiles {
 public:
  struct Tensor {
    std::size_t file = 0;  // into the files, in the order of their names
    StoredTensor stored = {};
    std::uint64_t position = 0;  // of its first byte in the file
  };

  /// Opens the files and reads their headers. `model.safetensors` is taken before an index. Null
  /// with the reason in `failure` (kWeightsUnreadable).
  static std::unique_ptr<WeightFiles> open(const std::string& path, Failure& failure);
  ~WeightFiles();
  WeightFiles(const WeightFiles&) = delete;
  WeightFiles& operator=(const WeightFiles&) = delete;

  /// The file or folder, as it was given.
  const std::string& path() const { return path_; }
  /// Whether that is a folder.
  bool is_folder() const { return is_folder_; }
  const std::map<std::string, Tensor, std::less<>>& tensors() const { return tensors_; }
  /// CRC-32 of the names, types, shapes and positions of all tensors: equal files have equal ones.
  std::uint32_t fingerprint() const;

  /// Reads bytes of a file from `position` on; a failure if it has become shorter.
  std::optional<Failure> read(std::size_t file, std::uint64_t position, std::uint64_t bytes,
                              void* to) const;

 private:
  struct File {
    std::string path;
    int descriptor = -1;
  };
  // The file of each tensor.
  using Index = std::map<std::string, std::string, std::less<>>;

  explicit WeightFiles(std::string path) : path_(std::move(path)) {}
  bool open_folder(Failure& failure);
  bool read_index(const std::string& path, Index& index, Failure& failure);
  bool open_files(const Index& index, Failure& failure);
  bool add_file(const std::string& path, const std::string& name, const Index* index,
                Failure& failure);

  const std::string path_;
  bool is_folder_ = false;
  std::vector<File> files_;
  std::map<std::string, Tensor, std::less<>> tensors_;
};

/// A whole plain file of at most `max_bytes`; a FIFO is not waited for. Empty with the reason in
/// `reason`.
std::optional<std::string> read_plain_file(const std::string& path, std::uint64_t max_bytes,
                                           std::string& reason);

/// The failure of a file of weights: kWeightsUnreadable.
Failure unreadable_weights(const std::string& path, const std::string& reason);

/// A name of a file for a message: its beginning, in backticks, without bytes that a terminal
/// interprets.
std::string shown_name(std::string_view name);

}  // namespace piper::runtime
