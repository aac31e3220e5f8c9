#include "tests/support/random_cases.h"

#include <gtest/gtest.h>

namespace piper::test {

std::uint64_t Random::next() {
  state_ += 0x9e3779b97f4a7c15u;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::uint64_t Random::below(std::uint64_t bound) {
  assert(bound > 0);
  // Values of the last, incomplete run of `bound` would favour small results.
  const std::uint64_t unfair = (0 - bound) % bound;
  std::uint64_t value = next();
  while (value < unfair) value = next();
  return value % bound;
}

std::int64_t Random::between(std::int64_t low, std::int64_t high) {
  assert(low <= high);
  const std::uint64_t span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  const std::uint64_t offset = span == ~std::uint64_t{0} ? next() : below(span + 1);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + offset);
}

double Random::unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

CaseOptions& case_options() {
  static CaseOptions options;
  return options;
}

void for_each_case(int count, const std::function<void(Random&)>& body) {
  const CaseOptions& options = case_options();
  const int cases = options.count > 0 ? options.count : count;
  for (int i = 0; i < cases; ++i) {
    const std::uint64_t seed = options.seed + static_cast<std::uint64_t>(i);
    SCOPED_TRACE(testing::Message()
                 << "case " << i << "; to repeat it alone: --seed=" << seed << " --cases=1");
    // Neighbouring seeds give streams that have nothing in common.
    Random random(Random(seed).next());
    body(random);
    if (testing::Test::HasFailure() || testing::Test::IsSkipped()) return;
  }
}

}  // namespace piper::test
