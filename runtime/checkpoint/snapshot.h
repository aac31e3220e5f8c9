#pragma once
// A copy of the state that this process writes of a checkpoint. It is taken between two steps, so
// that training goes on while the copy is written.
//
//   Snapshot snapshot(parameters, layout, memory);
//   if (auto failure = snapshot.take()) ...;
//   for (const Snapshot::Segment& segment : snapshot.segments()) write(segment, snapshot.data(segment));

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/checkpoint/state_memory.h"
#include "runtime/checkpoint/state_tensors.h"

namespace piper::runtime {

class Snapshot {
 public:
  /// Bytes of a file that lie end to end in the copy.
  struct Segment {
    std::size_t file = 0;  // into StateLayout::files
    std::uint64_t position = 0, bytes = 0;
    std::uint64_t at = 0;  // in the copy
  };

  /// Plans the copy; all arguments must outlive it.
  Snapshot(const RankParameters& parameters, const StateLayout& layout, const StateMemory& memory);

  /// Copies the state; the memory for it is allocated with the first copy.
  std::optional<Failure> take();

  /// Sorted by file and position.
  std::span<const Segment> segments() const { return segments_; }
  const unsigned char* data(const Segment& segment) const { return copy_.get() + segment.at; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Source {
    std::size_t rank = 0;  // among the local ones
    bool on_host = false;
    std::uint64_t offset = 0, bytes = 0, at = 0;
  };
  void add(const StateRange& range, std::size_t local, const StateTensor& tensor,
           std::uint64_t position);

  const StateMemory& memory_;
  std::vector<Source> sources_;
  std::vector<Segment> segments_;
  std::uint64_t bytes_ = 0;
  std::unique_ptr<unsigned char[]> copy_;
};

}  // namespace piper::runtime
