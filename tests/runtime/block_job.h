#pragma once
// Reduce_scatters and gathers of every size as a job of hand-written programs, with the expected
// memory of its ranks: for every transport.
//
// The memory of a rank is four parameters, one per element type, and all parts lie in it: their
// first values are those of every run, and results of a step are read as parameters.
//
//   BlockJob job(3);
//   const auto executor = create(job.tables());
//   executor->run(Phase::training, 1);
//   EXPECT_EQ(job.difference(*executor, true), "");

#include <string>
#include <vector>

#include "runtime/executor/executor.h"
#include "tests/runtime/hand_program.h"

namespace piper::runtime {

/// A communication of one range of elements, at the same positions on all ranks.
struct BlockPiece {
  PiperCommOp op = PIPER_REDUCE_SCATTER;
  std::uint32_t dtype = PIPER_F32;
  std::uint64_t elements = 0;
  bool in_place = false;          // `out` is `in`; else a separate range
  bool own = false;               // the member's own buffer holds its shard alone
  bool adds = false;              // the sum is added to `out`
  bool silent = false;            // the last member adds nothing
  std::uint64_t cleared = 0;      // elements at the end of `in` that are cleared before
  std::uint64_t in = 0, out = 0;  // elements from the start of the memory of that type
};

class BlockJob {
 public:
  explicit BlockJob(std::uint32_t members);

  const PiperJob& tables() { return job_.tables(); }
  /// Each is a list of the pieces of one communication.
  const std::vector<std::vector<BlockPiece>>& communications() const { return communications_; }
  /// The first wrong value after one step, or empty; all parameters are read, in one order.
  /// `exact`: sums of floating numbers are those in member order, else close to them. `has_all`: a
  /// parameter that cannot be read is an error; with several processes the first reads.
  std::string difference(const Executor& executor, bool exact, bool has_all = true) const;

 private:
  using Memory = std::vector<std::vector<unsigned char>>;  // of a rank, by type
  void choose();
  void place();
  Memory first_values(std::uint32_t rank) const;
  std::vector<Memory> last_values() const;

  const std::uint32_t members_;
  std::vector<std::vector<BlockPiece>> communications_;
  std::uint64_t sizes_[4] = {};    // elements by type
  std::uint64_t offsets_[4] = {};  // of each in the arena
  HandJob job_;
};

}  // namespace piper::runtime
