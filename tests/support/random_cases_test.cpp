#include "tests/support/random_cases.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <array>
#include <set>

namespace piper::test {
namespace {

TEST(Random, IsTheSameEverywhere) {
  Random random(0);
  EXPECT_EQ(random.next(), 0xe220a8397b1dcdafu);
  EXPECT_EQ(random.next(), 0x6e789e6aa1b965f4u);
}

TEST(Random, StaysInItsRangeAndReachesAllOfIt) {
  Random random(1);
  std::set<std::int64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random.between(-2, 3));
  EXPECT_EQ(seen, (std::set<std::int64_t>{-2, -1, 0, 1, 2, 3}));
  for (int i = 0; i < 1000; ++i) {
    const double value = random.unit();
    EXPECT_TRUE(value >= 0 && value < 1);
  }
  random.between(INT64_MIN, INT64_MAX);  // the whole range, whose size does not fit
}

TEST(Random, ShuffleKeepsTheValues) {
  Random random(2);
  std::vector<int> values = {1, 2, 3, 4, 5, 6, 7, 8};
  random.shuffle(values);
  EXPECT_NE(values, (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(std::set<int>(values.begin(), values.end()), (std::set<int>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(ForEachCase, CasesDifferAndRepeat) {
  static std::vector<std::uint64_t> seen;
  const auto collect = [] {
    seen.clear();
    for_each_case(20, [](Random& random) { seen.push_back(random.next()); });
    return seen;
  };
  const std::vector<std::uint64_t> first = collect();
  EXPECT_EQ(std::set<std::uint64_t>(first.begin(), first.end()).size(), first.size());
  EXPECT_EQ(collect(), first);
}

TEST(ForEachCase, FailureNamesTheSeed) {
  static int calls;
  calls = 0;
  const CaseOptions before = case_options();
  case_options() = {.seed = 100, .count = 0};
  EXPECT_NONFATAL_FAILURE(for_each_case(20,
                                        [](Random&) {
                                          if (++calls == 4) ADD_FAILURE();
                                        }),
                          "--seed=103 --cases=1");
  case_options() = before;
}

}  // namespace
}  // namespace piper::test
