#pragma once
// Draws the next token from logits: temperature, top-k, top-p, in this order.
//
// Guarantees: the token is a function of the logits, the choice, and the position; ties go to the
// smaller token.
//
//   draw_token(run.logits(), 256, {.temperature = 0.8, .top_p = 0.9, .seed = 1}, run.position())

#include <cstdint>
#include <optional>
#include <span>

namespace piper::tools {

struct TokenChoice {
  double temperature = 0.8;                 // logits are divided by it; 0: the largest logit
  std::optional<std::uint64_t> top_k = {};  // only the k largest logits; at least 1
  // Only the most probable tokens whose probabilities, after top_k, sum to at least this; in (0, 1].
  double top_p = 1;
  std::uint64_t seed = 0;
};

/// One of the first `tokens` tokens. Nothing if one of their logits is not finite.
std::optional<std::int64_t> draw_token(std::span<const double> logits, std::int64_t tokens,
                                       const TokenChoice& choice, std::int64_t position);

}  // namespace piper::tools
