#pragma once
// The order of training samples: a function of (seed, step, position in the batch) alone, so that
// neither layout nor timing changes it.
//
//   SampleOrder order(PIPER_EPOCH, rows, batch, seed, hash_of("row"));
//   const SampleOrder::Draw draw = order.draw(step, position);   // draw.sample < rows
//
// Sample g = step * batch + position of a run depends on g and not on the batch, so that a run which
// goes on with another batch neither repeats nor skips samples. With `replacement` it is drawn by
// itself. With `epoch` the samples of an epoch are a permutation, and it is sample g % n of epoch
// g / n.

#include <cstdint>

#include "runtime/abi.h"
#include "runtime/kernel_math.h"

namespace piper::runtime {

/// A number below `bound` from 64 random bits; even up to bound / 2^64.
std::uint64_t below(std::uint64_t bits, std::uint64_t bound);

/// A keyed permutation of the numbers below `size`: an unbalanced Feistel network over the next power
/// of two with Philox as its round function, walked until the number is below `size`. Walking
/// takes less than two passes on average.
class Permutation {
 public:
  /// `size` is at least 1.
  Permutation(std::uint64_t size, piper_random_key key);
  /// `position` is below the size, and so is the result.
  std::uint64_t at(std::uint64_t position) const;

 private:
  std::uint64_t pass(std::uint64_t value) const;

  std::uint64_t size_;
  std::uint32_t low_bits_ = 0, high_bits_ = 0;
  piper_random_key key_;
};

/// `in epochs`, `with replacement`: a part of the identity of training data.
const char* order_text(PiperSampling sampling);

class SampleOrder {
 public:
  /// `samples` (at least 1): of an epoch. `name`: the hash of a word, so that different data has
  /// different numbers.
  SampleOrder(PiperSampling sampling, std::uint64_t samples, std::uint64_t batch,
              std::uint64_t seed, std::uint64_t name);

  struct Draw {
    std::uint64_t epoch = 0;   // 0 with replacement
    std::uint64_t sample = 0;  // below the number of samples
  };
  Draw draw(std::uint64_t step, std::uint64_t position) const;
  /// The 64 bits that belong to sample step * batch + position, or to an epoch.
  std::uint64_t bits_of_sample(std::uint64_t step, std::uint64_t position) const;
  std::uint64_t bits_of_epoch(std::uint64_t epoch) const;

 private:
  PiperSampling sampling_;
  std::uint64_t samples_, batch_, seed_, name_;
};

/// The windows of a text: `seq` tokens and the one after them.
///
/// Training with replacement draws each window at random. An epoch has as many windows as lie side
/// by side in the text. They begin at a phase of the epoch, which is below `seq`, so that the same
/// tokens are cut at other places in every epoch. The last one may not fit behind the others. It is
/// then that at the start or at the end of the text, whichever reads more tokens that no other
/// window of the epoch reads.
class WindowOrder {
 public:
  /// `tokens` > `seq` >= 1.
  WindowOrder(PiperSampling sampling, std::uint64_t tokens, std::uint64_t seq, std::uint64_t batch,
              std::uint64_t seed);
  /// The first token of a window of training.
  std::uint64_t first_token(std::uint64_t step, std::uint64_t position) const;
  /// The number of windows side by side.
  std::uint64_t windows() const { return windows_; }

 private:
  PiperSampling sampling_;
  std::uint64_t tokens_, seq_, windows_;
  SampleOrder order_;
};

}  // namespace piper::runtime
