#include "runtime/checkpoint/snapshot.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace piper::runtime {

Snapshot::Snapshot(const RankParameters& parameters, const StateLayout& layout,
                   const StateMemory& memory)
    : memory_(memory) {
  for (const StateTensor& tensor : layout.tensors) {
    for (const StateRange& range : written_ranges(parameters, tensor)) {
      if (const auto local = memory.local(range.rank))
        add(range, *local, tensor, layout.position(tensor));
    }
  }
}

void Snapshot::add(const StateRange& range, std::size_t local, const StateTensor& tensor,
                   std::uint64_t position) {
  const std::uint64_t element = stored_type_bytes(tensor.stored.type);
  const std::uint64_t bytes = (range.end - range.first) * element;
  position += range.first * element;
  sources_.push_back({local, range.on_host, range.offset, bytes, bytes_});
  const bool continues = !segments_.empty() && segments_.back().file == tensor.file &&
                         segments_.back().position + segments_.back().bytes == position;
  if (continues) {
    segments_.back().bytes += bytes;
  } else {
    segments_.push_back({tensor.file, position, bytes, bytes_});
  }
  bytes_ += bytes;
}

std::optional<Failure> Snapshot::take() {
  if (!copy_) {
    copy_.reset(new (std::nothrow) unsigned char[std::max<std::uint64_t>(bytes_, 1)]);
    if (!copy_)
      return Failure{.code = kOutOfMemory,
                     .message =
                         "no memory for the copy of the state that a checkpoint is written "
                         "from: `" +
                         std::to_string(bytes_) + "` bytes"};
  }
  for (const Source& source : sources_) {
    const unsigned char* const from =
        memory_.read(source.rank, source.on_host, source.offset, source.bytes);
    if (from == nullptr)
      return memory_.failure().value_or(
          Failure{.code = kBadJob, .message = "the state of a rank cannot be read"});
    std::memcpy(copy_.get() + source.at, from, source.bytes);
  }
  return std::nullopt;
}

}  // namespace piper::runtime
