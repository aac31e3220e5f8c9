#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "runtime/checkpoint/checked_pieces.h"
#include "runtime/checkpoint/checkpoint.h"

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
    std::optional<Failure> failure;
    for (std::uint64_t piece = 0; piece < described.crc32.size(); ++piece) {
      if (stopped && stopped()) return std::nullopt;
      if (pieces.read(piece, failure) == nullptr) return failure;
    }
  }
  return std::nullopt;
}

std::optional<Failure> Checkpoint::read(const Tensor& tensor, std::uint64_t first,
                                        std::uint64_t bytes, void* to) const {
  for (std::uint64_t read = 0; read < bytes;) {
    const ssize_t count = pread(files_[tensor.file], static_cast<char*>(to) + read, bytes - read,
                                static_cast<off_t>(tensor.position + first + read));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      return unreadable_checkpoint(folder_ + "/" + manifest_.files[tensor.file].name,
                                   count < 0 ? std::strerror(errno) : "it ends too early");
    read += static_cast<std::uint64_t>(count);
  }
  return std::nullopt;
}

}  // namespace piper::runtime
