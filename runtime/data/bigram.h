#pragma once
// A bigram model over bytes, as a baseline for a trained model: the next byte given the one before,
// counted with add-one smoothing.
//
//   Bigram bigram(train_text);
//   double loss = bigram.loss(held_out_text);   // mean nats per byte; ln 256 = 5.545 for uniform guesses

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "runtime/failure.h"

namespace piper::runtime {

class TextFiles;

class Bigram {
 public:
  explicit Bigram(std::span<const unsigned char> text);
  /// Mean negative log probability of every byte but the first, given the one before; nan for less
  /// than two bytes.
  double loss(std::span<const unsigned char> text) const;

 private:
  std::unique_ptr<std::array<double, 65536>> cost_;  // -log p(next | before), [before * 256 + next]
};

/// Trains on one file or folder and gives the loss on another, both out of `texts`; empty, with the
/// reason in `failure`, if one cannot be read or is too short.
std::optional<double> bigram_loss(const std::string& train_path, const std::string& held_out_path,
                                  TextFiles& texts, Failure& failure);

}  // namespace piper::runtime
