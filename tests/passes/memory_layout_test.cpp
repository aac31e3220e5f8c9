#include "passes/plan/memory_layout.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/random_cases.h"

namespace piper::passes {
namespace {

using test::for_each_case;
using test::Random;

/// Values of one step of a pipeline rank: kept ones that are freed in the order of the backwards,
/// and short ones.
std::vector<LiveRange> random_values(Random& random, std::size_t count, std::uint32_t steps,
                                     std::int64_t sizes) {
  std::vector<LiveRange> values;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t first = static_cast<std::uint32_t>(random.below(steps));
    const std::uint32_t length =
        static_cast<std::uint32_t>(random.chance(0.5) ? random.below(3) : random.below(steps));
    values.push_back({random.between(1, sizes) * (random.chance(0.3) ? 1000 : 60), first,
                      std::min(first + length, steps - 1), -1});
  }
  std::sort(values.begin(), values.end(),
            [](const LiveRange& a, const LiveRange& b) { return a.first < b.first; });
  return values;
}

TEST(memory_layout, shares_bytes_between_values_that_do_not_meet) {
  std::vector<LiveRange> values = {{1024, 0, 3, -1}, {2048, 1, 5, -1}, {1024, 4, 6, -1}};
  const LayoutSize size = lay_out(values);
  EXPECT_EQ(size.bytes, 3072);
  EXPECT_EQ(size.live, 3072);
  EXPECT_EQ(values[0].offset, 0);
  EXPECT_EQ(values[2].offset, 0);
}

TEST(memory_layout, keeps_values_apart_that_end_and_begin_at_one_time) {
  std::vector<LiveRange> values = {{64, 0, 2, -1}, {64, 2, 3, -1}};
  EXPECT_EQ(lay_out(values).bytes, 128);
}

TEST(memory_layout, gives_kept_bytes_to_nobody_and_does_not_count_them) {
  std::vector<LiveRange> values = {{64, 0, 1, -1, 2}, {64, 2, 3, -1}, {64, 4, 5, -1}};
  const LayoutSize size = lay_out(values);
  EXPECT_EQ(size.bytes, 128);
  EXPECT_EQ(size.live, 64);
  EXPECT_EQ(values[2].offset, 0);
}

TEST(memory_layout, has_nothing_to_do_without_values) { EXPECT_EQ(lay_out({}).bytes, 0); }

TEST(memory_layout, no_two_living_values_overlap) {
  for_each_case(200, [](Random& random) {
    std::vector<LiveRange> values =
        random_values(random, random.below(200), 40, random.between(1, 8));
    for (LiveRange& value : values)
      value.kept_until = random.below(4) == 0 ? static_cast<std::uint32_t>(random.below(50)) : 0;
    const LayoutSize size = lay_out(values);
    std::int64_t end = 0, live = 0;
    for (std::size_t a = 0; a < values.size(); ++a) {
      ASSERT_EQ(values[a].offset % kAlignment, 0);
      ASSERT_GE(values[a].offset, 0);
      end = std::max(end, values[a].offset + aligned(values[a].bytes));
      for (std::size_t b = 0; b < a; ++b) {
        if (values[a].given() < values[b].first || values[b].given() < values[a].first) continue;
        const bool apart = values[a].offset + values[a].bytes <= values[b].offset ||
                           values[b].offset + values[b].bytes <= values[a].offset;
        ASSERT_TRUE(apart) << a << " and " << b;
      }
    }
    for (std::uint32_t time = 0; time < 40; ++time) {
      std::int64_t now = 0;
      for (const LiveRange& value : values) {
        if (value.first <= time && time <= value.last) now += aligned(value.bytes);
      }
      live = std::max(live, now);
    }
    EXPECT_EQ(size.bytes, end);
    EXPECT_EQ(size.live, live);
    EXPECT_GE(size.bytes, size.live);
  });
}

TEST(memory_layout, wastes_little) {
  std::int64_t bytes = 0, live = 0;
  for_each_case(100, [&](Random& random) {
    std::vector<LiveRange> values = random_values(random, 150, 40, 8);
    const LayoutSize size = lay_out(values);
    EXPECT_LE(size.bytes, size.live + size.live / 4);
    bytes += size.bytes;
    live += size.live;
  });
  EXPECT_LE(static_cast<double>(bytes), 1.05 * static_cast<double>(live));
}

/// Every second value is freed at once, and the holes are filled by size: more free blocks than a
/// list is good for.
TEST(memory_layout, keeps_many_holes_apart) {
  for_each_case(10, [](Random& random) {
    constexpr std::uint32_t kCount = 3000;
    std::vector<LiveRange> values;
    for (std::uint32_t i = 0; i < kCount; ++i)
      values.push_back(
          {random.between(1, 30) * 64, i, i % 2 == 0 ? 4 * kCount : kCount + i / 2, -1});
    for (std::uint32_t i = 0; i < 2 * kCount; ++i)
      values.push_back({random.between(1, 30) * 64, kCount + i,
                        kCount + i + static_cast<std::uint32_t>(random.below(kCount)), -1});
    const LayoutSize size = lay_out(values);
    // Values come by their first use, so each block of 64 bytes needs only the end of the last that
    // held it.
    std::vector<std::uint32_t> busy(static_cast<std::size_t>(size.bytes / kAlignment), 0);
    for (const LiveRange& value : values) {
      for (std::int64_t at = value.offset / kAlignment;
           at < (value.offset + aligned(value.bytes)) / kAlignment; ++at) {
        std::uint32_t& until = busy.at(static_cast<std::size_t>(at));
        ASSERT_LE(until, value.first);
        until = value.last + 1;
      }
    }
    EXPECT_LE(static_cast<double>(size.bytes), 1.3 * static_cast<double>(size.live));
  });
}

// A quadratic number of steps would not end.
TEST(memory_layout, takes_many_values_that_leave_holes) {
  constexpr std::uint32_t kCount = 300'000;
  std::vector<LiveRange> values;
  for (std::uint32_t i = 0; i < kCount; ++i)
    values.push_back({64 * (1 + i % 2), i, kCount + i, -1});
  for (std::uint32_t i = 0; i < kCount; ++i)
    values.push_back({64 * 5, kCount + i, 2 * kCount + i % 7, -1});
  const LayoutSize size = lay_out(values);
  EXPECT_LE(static_cast<double>(size.bytes), 1.5 * static_cast<double>(size.live));
}

TEST(memory_layout, takes_a_million_values) {
  Random random(7);
  std::vector<LiveRange> values;
  for (std::uint32_t i = 0; i < 1'000'000; ++i) {
    const std::uint32_t length = random.chance(0.1) ? static_cast<std::uint32_t>(random.below(400))
                                                    : static_cast<std::uint32_t>(random.below(4));
    values.push_back({random.between(1, 8) * 4096, i, i + length, -1});
  }
  const LayoutSize size = lay_out(values);
  EXPECT_LE(static_cast<double>(size.bytes), 1.5 * static_cast<double>(size.live));
}

}  // namespace
}  // namespace piper::passes
