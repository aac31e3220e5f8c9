#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/transport/local.h"
#include "runtime/transport/recording.h"
#include "tests/runtime/sample_jobs.h"

namespace piper::runtime {
namespace {

float contribution(std::uint32_t rank, std::uint64_t i) {
  return std::sin(static_cast<float>(i + 1)) * std::pow(10.0f, static_cast<float>(rank * 2));
}

TEST(Transport, AllReduceAddsInMemberOrder) {
  constexpr std::uint64_t kElements = 150'001;  // several slices and an odd end
  const std::vector<std::uint32_t> members = {2, 0, 3, 1};
  std::vector<std::vector<float>> values(4, std::vector<float>(kElements));
  std::vector<float> expected(kElements);
  for (std::uint32_t r = 0; r < 4; ++r) {
    for (std::uint64_t i = 0; i < kElements; ++i) values[r][i] = contribution(r, i);
  }
  for (std::uint64_t i = 0; i < kElements; ++i)
    expected[i] = ((values[2][i] + values[0][i]) + values[3][i]) + values[1][i];
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    HandJob job(4);
    const std::uint32_t group = job.group(members);
    std::vector<double> wrong(4, -1);
    for (std::uint32_t r = 0; r < 4; ++r) {
      HandProgram& program = job.rank(r);
      const std::uint64_t x = program.allocate<float>(kElements);
      const std::uint64_t sum = r < 2 ? x : program.allocate<float>(kElements);  // in place and not
      const Spot make = program.compute("make", {}, [=, &values](Step& step) {
        std::copy(values[r].begin(), values[r].end(), step.at<float>(x));
        return 0;
      });
      const Spot reduce = program.communicate("grads", PIPER_ALL_REDUCE, group, 9,
                                              {HandProgram::part<float>(x, sum, kElements)},
                                              {HandProgram::after(make)});
      program.compute("check", {HandProgram::after(reduce)}, [=, &wrong, &expected](Step& step) {
        wrong[r] = !std::equal(expected.begin(), expected.end(), step.at<float>(sum));
        return 0;
      });
    }
    EXPECT_EQ(create(job.finish(), {}, {.delays = {.seed = seed, .max_us = seed ? 300u : 0u}})
                  ->run(Phase::training, 2)
                  .ended,
              Ended::finished);
    EXPECT_EQ(wrong, std::vector<double>(4, 0));
  }
}

TEST(Transport, MembersWithoutATermReceiveTheSum) {
  HandJob job(3);
  const std::uint32_t group = job.group({0, 1, 2});
  std::vector<double> seen(3, 0);
  for (std::uint32_t r = 0; r < 3; ++r) {
    HandProgram& program = job.rank(r);
    const std::uint64_t x = program.allocate<double>(1);
    const Spot make = program.compute("make", {}, [=](Step& step) {
      *step.at<double>(x) = 10.0 + r;
      return 0;
    });
    const Spot reduce =
        program.communicate("grads", PIPER_ALL_REDUCE, group, 1,
                            {HandProgram::part<double>(r == 0 ? PIPER_NO_OFFSET : x, x, 1)},
                            {HandProgram::after(make)});
    program.compute("check", {HandProgram::after(reduce)}, [=, &seen](Step& step) {
      seen[r] = *step.at<double>(x);
      return 0;
    });
  }
  EXPECT_EQ(create(job.finish())->run(Phase::training, 1).ended, Ended::finished);
  EXPECT_EQ(seen, (std::vector<double>{23, 23, 23}));
}

TEST(Transport, AllGatherVPutsMembersOneAfterTheOther) {
  // Two sets of two replicas: set 0 contributes two values, set 1 one; replicas hold equal values.
  HandJob job(4);
  const std::uint32_t group = job.group({0, 1, 2, 3}, 2);
  std::vector<std::vector<double>> seen(4);
  for (std::uint32_t r = 0; r < 4; ++r) {
    HandProgram& program = job.rank(r);
    const std::uint64_t own = program.allocate<double>(2), all = program.allocate<double>(3);
    const bool head = r < 2;
    const Spot make = program.compute("make", {}, [=](Step& step) {
      step.at<double>(own)[0] = head ? 1 : 3;
      step.at<double>(own)[1] = 2;
      return 0;
    });
    std::vector<PiperMessagePart> parts;
    for (std::uint32_t i = 0; i < 3; ++i) {
      const bool mine = head == (i < 2);
      parts.push_back(HandProgram::part<double>(mine ? own + 8 * (head ? i : 0) : PIPER_NO_OFFSET,
                                                all + 8 * i, 1));
    }
    const Spot gather = program.communicate("norm", PIPER_ALL_GATHER_V, group, 1, parts,
                                            {HandProgram::after(make)});
    program.compute("check", {HandProgram::after(gather)}, [=, &seen](Step& step) {
      seen[r].assign(step.at<double>(all), step.at<double>(all) + 3);
      return 0;
    });
  }
  EXPECT_EQ(create(job.finish())->run(Phase::training, 1).ended, Ended::finished);
  for (const auto& values : seen) EXPECT_EQ(values, (std::vector<double>{1, 2, 3}));
}

/// Three members with shards longer than one slice; sums in member order, and then each member's
/// shard of them.
TEST(Transport, ReduceScatterAndAllGatherMoveShards) {
  constexpr std::uint64_t kMembers = 3, kBlock = 40'000, kAll = kMembers * kBlock;
  HandJob job(kMembers);
  const std::uint32_t sums = job.group({0, 1, 2}, 1), blocks = job.group({0, 1, 2}, 1);
  std::vector<int> right(kMembers, 0);
  for (std::uint32_t r = 0; r < kMembers; ++r) {
    HandProgram& program = job.rank(r);
    const std::uint64_t x = program.allocate<float>(kAll);
    const Spot make = program.compute("make", {}, [=](Step& step) {
      for (std::uint64_t i = 0; i < kAll; ++i)
        step.at<float>(x)[i] = static_cast<float>(i % 1000 + 1000 * (r + 1));
      return 0;
    });
    const Spot reduce =
        program.communicate("grads", PIPER_REDUCE_SCATTER, sums, 1,
                            {HandProgram::part<float>(x, x, kAll)}, {HandProgram::after(make)});
    const Spot own = program.compute("own", {HandProgram::after(reduce)}, [=, &right](Step& step) {
      for (std::uint64_t i = 0; i < kAll; ++i) {
        const bool mine = i / kBlock == r;
        const auto before = static_cast<float>(i % 1000 + 1000 * (r + 1)),
                   sum = static_cast<float>(3 * (i % 1000) + 6000);
        if (step.at<float>(x)[i] != (mine ? sum : before)) return 0;
      }
      ++right[r];
      return 0;
    });
    const Spot gather =
        program.communicate("params", PIPER_ALL_GATHER, blocks, 2,
                            {HandProgram::part<float>(x, x, kAll)}, {HandProgram::after(own)});
    program.compute("check", {HandProgram::after(gather)}, [=, &right](Step& step) {
      for (std::uint64_t i = 0; i < kAll; ++i) {
        if (step.at<float>(x)[i] != static_cast<float>(3 * (i % 1000) + 6000)) return 0;
      }
      ++right[r];
      return 0;
    });
  }
  EXPECT_EQ(create(job.finish())->run(Phase::training, 1).ended, Ended::finished);
  EXPECT_EQ(right, (std::vector<int>{2, 2, 2}));
}

/// Members keep only their shards: sums are added to them, padding is cleared before, and gathers
/// make complete copies.
TEST(Transport, BlocksMayBeAllThatAMemberKeeps) {
  constexpr std::uint64_t kMembers = 3, kBlock = 40'000, kAll = kMembers * kBlock,
                          kFilled = kAll - 5;
  HandJob job(kMembers);
  const std::uint32_t sums = job.group({0, 1, 2}, 1), blocks = job.group({0, 1, 2}, 1);
  std::vector<int> right(kMembers, 0);
  for (std::uint32_t r = 0; r < kMembers; ++r) {
    HandProgram& program = job.rank(r);
    const std::uint64_t whole = program.allocate<float>(kAll),
                        own = program.allocate<float>(kBlock), copy = program.allocate<float>(kAll);
    PiperMessagePart sum = HandProgram::part<float>(whole, own, kAll),
                     padding = HandProgram::part<float>(
                         PIPER_NO_OFFSET, whole + kFilled * sizeof(float), kAll - kFilled);
    PiperMessagePart block = HandProgram::part<float>(own, copy, kAll);
    sum.flags = PIPER_SHARD_ONLY;
    padding.flags = PIPER_ZERO_FILL;
    block.flags = PIPER_SHARD_ONLY;
    Spot last{};
    for (std::uint32_t round = 1; round <= 2; ++round) {
      const auto fill = [=](Step& step) {
        for (std::uint64_t i = 0; i < kAll; ++i)
          step.at<float>(whole)[i] = static_cast<float>(i % 1000 + round);
        return 0;
      };
      const Spot make = round == 1
                            ? program.compute("make", {}, fill)
                            : program.compute("make again", {HandProgram::after(last)}, fill);
      last = program.communicate("grads", PIPER_REDUCE_SCATTER, sums, round, {sum, padding},
                                 {HandProgram::after(make)});
      sum.flags |= PIPER_ACCUMULATE;
    }
    const Spot gather = program.communicate("params", PIPER_ALL_GATHER, blocks, 3, {block},
                                            {HandProgram::after(last)});
    program.compute("check", {HandProgram::after(gather)}, [=, &right](Step& step) {
      for (std::uint64_t i = 0; i < kAll; ++i) {
        const float wanted = i < kFilled ? static_cast<float>(3 * (2 * (i % 1000) + 3)) : 0;
        if (step.at<float>(copy)[i] != wanted) return 0;
        if (i / kBlock == r && step.at<float>(own)[i % kBlock] != wanted) return 0;
      }
      ++right[r];
      return 0;
    });
  }
  EXPECT_EQ(create(job.finish())->run(Phase::training, 1).ended, Ended::finished);
  EXPECT_EQ(right, (std::vector<int>{1, 1, 1}));
}

TEST(Transport, SeveralValuesOfAMessageArriveTogether) {
  HandJob job(2);
  const std::uint32_t pair = job.pair(1, 0);
  HandProgram& from = job.rank(1);
  HandProgram& to = job.rank(0);
  constexpr std::uint64_t kLong = 100'000;
  const std::uint64_t a = from.allocate<double>(kLong), b = from.allocate<float>(3),
                      c = from.allocate<std::int64_t>(1);
  const std::uint64_t x = to.allocate<double>(kLong), y = to.allocate<float>(3),
                      z = to.allocate<std::int64_t>(1);
  const Spot make = from.compute("make", {}, [=](Step& step) {
    for (std::uint64_t i = 0; i < kLong; ++i) step.at<double>(a)[i] = static_cast<double>(i);
    for (int i = 0; i < 3; ++i) step.at<float>(b)[i] = static_cast<float>(-i);
    *step.at<std::int64_t>(c) = 77;
    return 0;
  });
  from.communicate("p2p", PIPER_SEND, pair, 3,
                   {HandProgram::part<double>(a, 0, kLong), HandProgram::part<float>(b, 0, 3),
                    HandProgram::part<float>(b, 0, 0), HandProgram::part<std::int64_t>(c, 0, 1)},
                   {HandProgram::after(make)});
  const Spot got =
      to.communicate("p2p", PIPER_RECV, pair, 3,
                     {HandProgram::part<double>(0, x, kLong), HandProgram::part<float>(0, y, 3),
                      HandProgram::part<float>(0, y, 0), HandProgram::part<std::int64_t>(0, z, 1)},
                     {});
  int checked = 0;
  to.compute("check", {HandProgram::after(got)}, [=, &checked](Step& step) {
    for (std::uint64_t i = 0; i < kLong; ++i) {
      if (step.at<double>(x)[i] != static_cast<double>(i)) return 1;
    }
    checked = step.at<float>(y)[2] == -2.0f && *step.at<std::int64_t>(z) == 77;
    return 0;
  });
  EXPECT_EQ(create(job.finish())->run(Phase::training, 1).ended, Ended::finished);
  EXPECT_EQ(checked, 1);
}

/// Both messages are ready at once; the short one is on another stream. Whether it has arrived
/// before the long one.
bool short_one_is_first() {
  HandJob job(2);
  const std::uint32_t big = job.pair(0, 1), small = job.pair(0, 1);
  constexpr std::uint64_t kLong = 8'000'000;
  HandProgram& a = job.rank(0);
  HandProgram& b = job.rank(1);
  const std::uint64_t x = a.allocate<double>(kLong), s = a.allocate<double>(1),
                      y = b.allocate<double>(kLong), t = b.allocate<double>(1);
  const Spot make = a.compute("make", {}, [=](Step& step) {
    step.at<double>(x)[kLong - 1] = 5;
    return 0;
  });
  a.communicate("big", PIPER_SEND, big, 1, {HandProgram::part<double>(x, 0, kLong)},
                {HandProgram::after(make)});
  a.communicate("small", PIPER_SEND, small, 2, {HandProgram::part<double>(s, 0, 1)},
                {HandProgram::after(make)});
  const Spot long_got =
      b.communicate("big", PIPER_RECV, big, 1, {HandProgram::part<double>(0, y, kLong)}, {});
  const Spot short_got =
      b.communicate("small", PIPER_RECV, small, 2, {HandProgram::part<double>(0, t, 1)}, {});
  bool early = false;
  b.compute("short", {HandProgram::after(short_got)}, [&early](Step& step) {
    early = __atomic_load_n(&step.rank->completed[1 * PIPER_COUNTER_STRIDE], __ATOMIC_SEQ_CST) == 0;
    return 0;
  });
  b.compute("long", {HandProgram::after(long_got)},
            [=](Step& step) { return step.at<double>(y)[kLong - 1] == 5 ? 0 : 1; });
  EXPECT_EQ(create(job.finish())->run(Phase::training, 1).ended, Ended::finished);
  return early;
}

TEST(Transport, ALongMessageDoesNotHoldUpAShortOne) {
  // It arrives while the long one moves, unless a busy machine lets its reader wait that long.
  bool first = false;
  for (int attempt = 0; attempt < 20 && !first; ++attempt) first = short_one_is_first();
  EXPECT_TRUE(first);
}

TEST(Transport, ValuesWaitOnTheHostAndComeBack) {
  constexpr std::uint64_t kCount = 300'000;  // several slices
  HandJob job(2);
  for (std::uint32_t r = 0; r < 2; ++r) {
    HandProgram& program = job.rank(r);
    const std::uint64_t x = program.allocate<float>(kCount),
                        padding = program.allocate_on_host<float>(5),
                        there = program.allocate_on_host<float>(kCount);
    EXPECT_LT(padding, there);
    const std::uint32_t alone = job.group({r}, 1);
    const Spot make = program.compute("make", {}, [=](Step& step) {
      for (std::uint64_t i = 0; i < kCount; ++i)
        step.at<float>(x)[i] = static_cast<float>(i % 1000 + r);
      return 0;
    });
    const Spot out = program.communicate("copy", PIPER_OFFLOAD, alone, 7,
                                         {HandProgram::part<float>(x, there, kCount)},
                                         {HandProgram::after(make)});
    const Spot reuse = program.compute("reuse", {HandProgram::after(out)}, [=](Step& step) {
      std::fill_n(step.at<float>(x), kCount, -1.0f);
      return 0;
    });
    const Spot back = program.communicate("copy", PIPER_FETCH, alone, 8,
                                          {HandProgram::part<float>(there, x, kCount)},
                                          {HandProgram::after(reuse)});
    program.compute("check", {HandProgram::after(back)}, [=](Step& step) {
      for (std::uint64_t i = 0; i < kCount; ++i) {
        if (step.at<float>(x)[i] != static_cast<float>(i % 1000 + r)) return 1;
      }
      return 0;
    });
  }
  EXPECT_EQ(create(job.finish())->run(Phase::training, 3).ended, Ended::finished);
}

TEST(Transport, ARecordingIsIndependentOfTiming) {
  std::vector<std::string> first;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    HandJob job(2);
    add_pipeline(job);
    const auto recording = std::make_shared<RecordingTransport>(make_local_transport());
    const CpuOptions cpu{.delays = {.seed = seed, .max_us = seed ? 100u : 0u},
                         .transport = recording};
    EXPECT_EQ(create(job.finish(), {}, cpu)->run(Phase::training, 1).ended, Ended::finished);
    if (seed == 0) first = recording->lines(0);
    EXPECT_EQ(recording->lines(0), first);
  }
  EXPECT_EQ(first, (std::vector<std::string>{
                       "communicator 0: send 0 f64[50]", "communicator 0: send 1 f64[50]",
                       "communicator 0: send 2 f64[50]", "communicator 0: send 3 f64[50]",
                       "communicator 0: send 4 f64[50]", "communicator 0: send 5 f64[50]",
                       "communicator 1: recv 100 f64[50]", "communicator 1: recv 101 f64[50]",
                       "communicator 1: recv 102 f64[50]", "communicator 1: recv 103 f64[50]",
                       "communicator 1: recv 104 f64[50]", "communicator 1: recv 105 f64[50]"}));
}

}  // namespace
}  // namespace piper::runtime
