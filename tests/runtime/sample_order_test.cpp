// The order of training samples: epochs are permutations, and the samples before a resume with
// another batch are those of the run.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <vector>

#include "runtime/data/sample_order.h"

namespace piper::runtime {
namespace {

std::vector<std::uint64_t> permuted(std::uint64_t size, std::uint64_t seed) {
  const Permutation permutation(size, piper_stream_key(seed, PIPER_RANDOM_DATA, 0, 0, 0));
  std::vector<std::uint64_t> out;
  for (std::uint64_t i = 0; i < size; ++i) out.push_back(permutation.at(i));
  return out;
}

TEST(Permutations, AreBijections) {
  for (std::uint64_t size = 1; size <= 2000; ++size) {
    std::vector<bool> seen(size);
    for (const std::uint64_t value : permuted(size, size)) {
      ASSERT_LT(value, size);
      ASSERT_FALSE(seen[value]) << size;
      seen[value] = true;
    }
  }
}

// Sizes beyond memory have the same property: different positions have different numbers below the
// size.
TEST(Permutations, StayBelowLargeSizes) {
  for (const std::uint64_t size :
       {(std::uint64_t{1} << 32) + 1, std::uint64_t{3} << 40, (std::uint64_t{1} << 62) - 5}) {
    const Permutation permutation(size, {7, 9});
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < 1000; ++i) {
      for (const std::uint64_t position : {i, size - 1 - i, size / 3 + i}) {
        const std::uint64_t value = permutation.at(position);
        EXPECT_LT(value, size);
        EXPECT_TRUE(seen.insert(value).second);
      }
    }
  }
}

// Each position has each number about as often as any other, over many keys.
TEST(Permutations, AreEven) {
  for (const std::uint64_t size : {2u, 3u, 5u, 7u, 13u, 33u}) {
    std::vector<std::vector<int>> counts(size, std::vector<int>(size));
    constexpr int kKeys = 4000;
    for (int key = 0; key < kKeys; ++key) {
      const auto order = permuted(size, static_cast<std::uint64_t>(key));
      for (std::uint64_t i = 0; i < size; ++i) ++counts[i][order[i]];
    }
    const double expected = static_cast<double>(kKeys) / static_cast<double>(size);
    double chi = 0;
    for (const auto& row : counts) {
      for (const int count : row) chi += (count - expected) * (count - expected) / expected;
    }
    // The mean of the statistic is (size - 1)^2, and its deviation about 1.4 (size - 1).
    const double freedom = static_cast<double>((size - 1) * (size - 1));
    EXPECT_LT(chi, freedom + 6 * 1.5 * static_cast<double>(size)) << size;
  }
}

SampleOrder epochs(std::uint64_t samples, std::uint64_t batch, std::uint64_t seed = 1) {
  return {PIPER_EPOCH, samples, batch, seed, 42};
}

std::vector<std::uint64_t> drawn(const SampleOrder& order, std::uint64_t first, std::uint64_t count,
                                 std::uint64_t batch) {
  std::vector<std::uint64_t> samples;
  for (std::uint64_t g = first; g < first + count; ++g)
    samples.push_back(order.draw(g / batch, g % batch).sample);
  return samples;
}

TEST(Epochs, HaveEachSampleOnceAndOrdersOfTheirOwn) {
  for (const std::uint64_t samples : {1u, 2u, 10u, 97u}) {
    for (const std::uint64_t batch : {1u, 3u, 10u, 128u}) {
      const SampleOrder order = epochs(samples, batch);
      std::set<std::vector<std::uint64_t>> orders;
      for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
        auto list = drawn(order, epoch * samples, samples, batch);
        orders.insert(list);
        std::sort(list.begin(), list.end());
        for (std::uint64_t i = 0; i < samples; ++i) ASSERT_EQ(list[i], i);
        EXPECT_EQ(order.draw(epoch * samples / batch, epoch * samples % batch).epoch, epoch);
      }
      if (samples >= 10) {
        EXPECT_EQ(orders.size(), 5u);
      }
    }
  }
}

// A run that goes on at samples / batch with another batch has the samples that follow.
TEST(Epochs, DoNotDependOnTheBatch) {
  const auto all = drawn(epochs(50, 8), 0, 400, 8);
  for (const std::uint64_t batch : {1u, 4u, 5u, 16u, 400u})
    EXPECT_EQ(drawn(epochs(50, batch), 0, 400, batch), all) << batch;
  EXPECT_NE(drawn(epochs(50, 8, 2), 0, 400, 8), all) << "another seed";
}

TEST(Epochs, HaveWindowsSideBySideFromAPhase) {
  constexpr std::uint64_t kSeq = 8;
  std::set<std::uint64_t> phases;
  for (const std::uint64_t tokens : {9u, 16u, 17u, 18u, 100u, 801u}) {
    const WindowOrder order(PIPER_EPOCH, tokens, kSeq, 4, 3);
    const std::uint64_t windows = (tokens - 1) / kSeq, last = tokens - 1 - kSeq;
    EXPECT_EQ(order.windows(), windows);
    for (std::uint64_t epoch = 0; epoch < 40; ++epoch) {
      std::vector<std::uint64_t> firsts;
      for (std::uint64_t g = epoch * windows; g < (epoch + 1) * windows; ++g)
        firsts.push_back(order.first_token(g / 4, g % 4));
      std::sort(firsts.begin(), firsts.end());
      EXPECT_LE(firsts.back(), last);
      // At most one of them, at an end, overlaps its neighbour.
      std::size_t overlaps = 0;
      for (std::size_t i = 1; i < firsts.size(); ++i) {
        const std::uint64_t apart = firsts[i] - firsts[i - 1];
        EXPECT_LE(apart, kSeq);
        EXPECT_GT(apart, 0u);
        if (apart == kSeq) continue;
        ++overlaps;
        EXPECT_TRUE(firsts[i - 1] == 0 || firsts[i] == last) << tokens << ", " << firsts[i];
      }
      EXPECT_LE(overlaps, 1u);
      EXPECT_LT(firsts.front() + last - firsts.back(), kSeq) << "tokens that no window reads";
      if (tokens == 801) phases.insert(firsts.size() > 1 ? firsts[1] % kSeq : 0);
    }
  }
  EXPECT_EQ(phases.size(), kSeq);
}

// Over many epochs no end of a text is read more than the other, in texts of any length.
TEST(Epochs, ReadBothEndsOfATextAlike) {
  constexpr std::uint64_t kSeq = 16, kEpochs = 400;
  for (std::uint64_t tokens = kSeq + 1; tokens < 5 * kSeq; ++tokens) {
    const WindowOrder order(PIPER_EPOCH, tokens, kSeq, 4, tokens);
    std::vector<std::int64_t> reads(tokens - 1);
    for (std::uint64_t g = 0; g < kEpochs * order.windows(); ++g) {
      for (std::uint64_t i = 0; i < kSeq; ++i) ++reads[order.first_token(g / 4, g % 4) + i];
    }
    EXPECT_LT(std::abs(reads.front() - reads.back()), 100) << tokens;
    if ((tokens - 1) % kSeq != 0) continue;
    // The windows of most epochs do not end with the text: one of them takes either end.
    EXPECT_GT(reads.front(), 150) << tokens;
    EXPECT_GT(reads.back(), 150) << tokens;
  }
}

TEST(Replacement, DrawsAllWindows) {
  const WindowOrder order(PIPER_REPLACEMENT, 40, 8, 4, 3);
  std::set<std::uint64_t> firsts;
  for (std::uint64_t step = 0; step < 200; ++step) {
    for (std::uint64_t s = 0; s < 4; ++s) firsts.insert(order.first_token(step, s));
  }
  EXPECT_EQ(firsts.size(), 32u);
  EXPECT_EQ(*firsts.rbegin(), 31u);
}

// A run that goes on with another batch has the windows that follow, and none a second time.
TEST(Replacement, DoesNotDependOnTheBatch) {
  const auto drawn_by = [](std::uint64_t batch) {
    const WindowOrder order(PIPER_REPLACEMENT, 4000, 8, batch, 3);
    std::vector<std::uint64_t> firsts;
    for (std::uint64_t g = 0; g < 400; ++g)
      firsts.push_back(order.first_token(g / batch, g % batch));
    return firsts;
  };
  const auto all = drawn_by(8);
  for (const std::uint64_t batch : {1u, 4u, 5u, 16u, 400u})
    EXPECT_EQ(drawn_by(batch), all) << batch;
}

}  // namespace
}  // namespace piper::runtime
