#include <cstring>
#include <set>

#include "runtime/checkpoint/checked_pieces.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/read_at.h"

namespace piper::runtime {

bool Checkpoint::is_weight(std::string_view key) {
  return !key.starts_with("m/") && !key.starts_with("v/") && !key.starts_with(kAverageKey);
}

bool Checkpoint::has_averages() const {
  const auto found = tensors_.lower_bound(kAverageKey);
  return found != tensors_.end() && found->first.starts_with(kAverageKey);
}

std::optional<Failure> Checkpoint::verify_weights(const std::function<bool()>& stopped,
                                                  bool averages) const {
  std::set<std::size_t> files;
  for (const auto& [key, tensor] : tensors_) {
    if (is_weight(key) || (averages && key.starts_with(kAverageKey))) files.insert(tensor.file);
  }
  for (const std::size_t file : files) {
    const ManifestFile& described = manifest_.files[file];
    CheckedPieces pieces(folder_ + "/" + described.name, files_[file], described);
    if (auto damaged = pieces.verify(described.bytes, stopped)) return damaged;
  }
  return std::nullopt;
}

std::optional<Failure> Checkpoint::read(const Tensor& tensor, std::uint64_t first,
                                        std::uint64_t bytes, void* to) const {
  const ReadCount read = read_at(files_[tensor.file], tensor.position + first, bytes, to);
  if (read.bytes == bytes) return std::nullopt;
  return unreadable_checkpoint(folder_ + "/" + manifest_.files[tensor.file].name,
                               read.error != 0 ? std::strerror(read.error) : "it ends too early");
}

}  // namespace piper::runtime
