#pragma once
// A log of a run: a file that gets the numbers of every step. `train` writes to several at once.
//
// Guarantees of each: a step is in the file, for readers of other processes too, when `write`
// returns; a failure leaves no part of a record behind.

#include <cstdint>
#include <optional>

#include "runtime/executor/executor.h"

namespace piper::runtime {

class StepLog {
 public:
  StepLog() = default;
  virtual ~StepLog() = default;
  StepLog(const StepLog&) = delete;
  StepLog& operator=(const StepLog&) = delete;

  /// Takes a step of training, or a batch of held-out data after `after` steps of training. The
  /// failure names the first step that is missing in the file.
  virtual std::optional<Failure> write(const StepRecord& step, std::uint64_t after = 0) = 0;
  /// Takes the loss over all held-out data after `after` steps of training.
  virtual std::optional<Failure> write_held_out(std::uint64_t after, double loss) = 0;
};

}  // namespace piper::runtime
