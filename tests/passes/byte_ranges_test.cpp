// Ranges of bytes against a table of every byte.

#include "passes/byte_ranges.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "tests/support/random_cases.h"

namespace piper::passes {
namespace {

using Holder = ByteRanges::Holder;

TEST(ByteRanges, TellWhoHadTheBytesLast) {
  test::for_each_case(200, [](test::Random& random) {
    ByteRanges ranges;
    std::vector<std::optional<Holder>> bytes(64);
    for (std::uint32_t value = 0; value < 60; ++value) {
      const std::int64_t begin = random.between(0, 63), end = random.between(begin, 64);
      std::vector<Holder> expected, found;
      for (std::int64_t byte = begin; byte < end; ++byte) {
        std::optional<Holder>& at = bytes[static_cast<std::size_t>(byte)];
        if (at && (expected.empty() || expected.back() != *at)) expected.push_back(*at);
        at = Holder{value, value % 2 == 1};
      }
      ranges.take(begin, end, {value, value % 2 == 1}, [&](Holder holder) {
        if (found.empty() || found.back() != holder) found.push_back(holder);
      });
      EXPECT_EQ(found, expected);
    }
  });
}

}  // namespace
}  // namespace piper::passes
