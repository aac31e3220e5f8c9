#include "frontend/tools/next_token.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/kernel_math.h"

namespace piper::tools {
namespace {

/// The purpose of these random numbers, beside those of programs.
constexpr piper_u32 kRandomText = 3;
static_assert(kRandomText > PIPER_RANDOM_DATA);

/// [0, 1), by the position of the token.
double uniform(std::uint64_t seed, std::int64_t position) {
  return piper_random_uniform(piper_stream_key(seed, kRandomText, 0, 0, 0),
                              static_cast<piper_u64>(position));
}

}  // namespace

std::optional<std::int64_t> draw_token(std::span<const double> logits, std::int64_t tokens,
                                       const TokenChoice& choice, std::int64_t position) {
  logits = logits.first(static_cast<std::size_t>(tokens));
  if (!std::all_of(logits.begin(), logits.end(), [](double x) { return std::isfinite(x); }))
    return std::nullopt;
  const auto largest = std::max_element(logits.begin(), logits.end());
  if (choice.temperature == 0) return largest - logits.begin();

  std::vector<std::size_t> order(logits.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  if (choice.top_k && *choice.top_k < order.size())
    order.resize(static_cast<std::size_t>(*choice.top_k));
  std::vector<double> weights;
  double sum = 0;
  for (const std::size_t token : order) {
    weights.push_back(piper_exp((logits[token] - *largest) / choice.temperature));
    sum += weights.back();
  }
  std::size_t candidates = 0;
  double candidate_sum = 0;
  do {
    candidate_sum += weights[candidates++];
  } while (candidates < weights.size() && candidate_sum < choice.top_p * sum);
  const double drawn = uniform(choice.seed, position) * candidate_sum;
  double passed = 0;
  for (std::size_t i = 0; i + 1 < candidates; ++i) {
    passed += weights[i];
    if (drawn < passed) return static_cast<std::int64_t>(order[i]);
  }
  return static_cast<std::int64_t>(order[candidates - 1]);
}

}  // namespace piper::tools
