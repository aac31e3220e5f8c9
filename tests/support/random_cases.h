#pragma once
// Random cases for tests of laws: each case has its own seed, and a failure names the one that
// repeats it.
//
// Guarantees: the same seed gives the same case on every machine (no distribution of the standard
// library is used). The first case that fails ends the test. Without flags the cases are the same
// in every run; `--seed=N` starts elsewhere, `--cases=N` replaces the number of cases.
//
//   for_each_case(200, [](Random& random) {
//     const Program program = random_program(random);
//     SCOPED_TRACE(print(program));  // shown when the case fails
//     EXPECT_TRUE(verify(program));
//   });

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace piper::test {

/// A SplitMix64 stream.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next();
  /// Uniform in [0, bound); `bound` > 0.
  std::uint64_t below(std::uint64_t bound);
  /// Uniform in [low, high], both included.
  std::int64_t between(std::int64_t low, std::int64_t high);
  /// Uniform in [0, 1).
  double unit();
  bool chance(double probability) { return unit() < probability; }

  template <typename T>
  const T& pick(const std::vector<T>& choices) {
    assert(!choices.empty());
    return choices[below(choices.size())];
  }
  template <typename T>
  void shuffle(std::vector<T>& values) {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

 private:
  std::uint64_t state_;
};

/// Runs `body` on `count` cases; a failure shows the case's number and the flags that repeat it
/// alone.
void for_each_case(int count, const std::function<void(Random&)>& body);

/// The start and the number of the cases, from the command line. `count` 0: the number in the test.
struct CaseOptions {
  std::uint64_t seed = 0;
  int count = 0;
};
CaseOptions& case_options();

}  // namespace piper::test
