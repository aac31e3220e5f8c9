#pragma once
// A walk through an order, operation by operation.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "frontend/pictures/picture.h"

namespace piper::repl {

class Stepper {
 public:
  /// From the beginning of another order.
  void begin(pictures::Picture picture);
  /// Forgets the order, which has changed.
  void forget() { picture_.reset(); }
  bool is_of(const std::string& title) const { return picture_ && picture_->title == title; }

  /// Moves by a number of operations, forwards or back, at most to the ends.
  void move(long long by);
  std::size_t size() const { return order_.size(); }

  /// The operation that starts now; what each rank holds, runs and waits for.
  std::string text() const;

 private:
  std::string rank_state(const passes::Timeline::Rank& rank, double now) const;

  std::optional<pictures::Picture> picture_;
  std::vector<std::uint32_t> order_;  // entries of compute lanes by their start
  std::size_t at_ = 0;                // into `order_`; its size: all have run
};

/// The reason why a rank is idle at a time, or the operation that runs then: the chain of waits up
/// to the beginning of the idle time, with lines. Nothing if there is no such rank.
std::optional<std::string> why_text(const pictures::Picture& picture, std::uint32_t rank,
                                    double time);

}  // namespace piper::repl
