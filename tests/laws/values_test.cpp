// Law 1: a program computes what the unsplit model computes on one device, and the bits of the same microbatches on one device.
// Law 2, as far as running shows it: whatever the timing, it ends, with the same bits.

#include <gtest/gtest.h>

#include <limits>

#include "tests/laws/law_runs.h"
#include "tests/support/random_cases.h"
#include "tests/support/random_programs.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {
namespace {

constexpr double kRounding = 1e-10;

TEST(Values, RandomProgramsComputeWhatOneDeviceDoes) {
  int cases = 0, moved = 0;
  for_each_case(60, [&](Random& random) {
    Context context;
    const RandomProgram drawn = random_program(context, random);
    SCOPED_TRACE(drawn.source);
    LawProgram program(context, drawn.model, drawn.strategy);
    LawProgram unsplit(context, drawn.model, one_device(context, drawn.strategy));
    ASSERT_TRUE(program && unsplit);
    const LawRun run = program.run({}), whole = unsplit.run({});
    ASSERT_EQ(run.losses.size(), static_cast<std::size_t>(kLawSteps));
    ++cases;
    moved += run.losses.front() != run.losses.back();  // a model may squeeze its samples together until the loss is that of chance
    EXPECT_EQ(first_difference(run, whole, kRounding), "");
    EXPECT_EQ(first_bit_difference(run, program.run_sequential()), "");
  });
  EXPECT_GE(moved, cases * 9 / 10);
}

TEST(Values, ADelayOfAnyActionChangesNoBit) {
  for_each_case(12, [](Random& random) {
    Context context;
    const RandomProgram drawn = random_program(context, random);
    SCOPED_TRACE(drawn.source);
    LawProgram program(context, drawn.model, drawn.strategy);
    ASSERT_TRUE(program);
    const LawRun run = program.run({});
    for (int again = 0; again < 2; ++again) {
      LawRunOptions options;
      options.delays = {random.next(), 300};
      EXPECT_EQ(first_bit_difference(run, program.run(options)), "") << "delays of seed " << options.delays.seed;
    }
  });
}

TEST(Values, GeneratedCodeComputesTheInterpretersBits) {
  const TemporaryFolder cache;
  for_each_case(3, [&](Random& random) {
    Context context;
    const RandomProgram drawn = random_program(context, random);
    SCOPED_TRACE(drawn.source);
    LawProgram program(context, drawn.model, drawn.strategy);
    ASSERT_TRUE(program);
    LawRunOptions options;
    options.engine = backend::Engine::generated;
    options.cache_folder = cache.path();
    EXPECT_EQ(first_bit_difference(program.run(options), program.run({})), "");
  });
}

TEST(Values, ComparisonsSeeOneBit) {
  LawRun a;
  a.losses = {1, 2, 3};
  a.norms = {1, 1, 1};
  a.sums = {{1, 2}, {3}};
  a.gradients["w"] = {{1, 2, 3}};
  a.parameters["w"] = {{4, 5}};
  EXPECT_EQ(first_bit_difference(a, a), "");
  EXPECT_EQ(first_difference(a, a, 0), "");
  LawRun b = a;
  b.parameters["w"][0][1] = 5 + 1e-15;
  EXPECT_NE(first_bit_difference(a, b), "");
  EXPECT_EQ(first_difference(a, b, 1e-14), "");
  b.parameters["w"][0][1] = 5 + 1e-9;
  EXPECT_NE(first_difference(a, b, kRounding), "");
  b = a;
  b.gradients["w"][0][0] = -1;
  EXPECT_NE(first_bit_difference(a, b), "");
  EXPECT_NE(first_difference(a, b, kRounding), "");
  b = a;
  b.sums[1][0] = 4;
  EXPECT_NE(first_bit_difference(a, b), "");
  b = a;
  b.losses[2] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(first_difference(a, b, kRounding), "");
}

}  // namespace
}  // namespace piper::test
