// The contents of a recorded run: the times of the actions of its last step, on every stream.
#include <gtest/gtest.h>

#include "tests/runtime/sample_jobs.h"

namespace piper::runtime {
namespace {

TEST(Recorder, KeepsTheLastStep) {
  for (const std::uint64_t steps : {1, 2, 3, 40}) {
    HandJob job(2);
    add_pipeline(job);
    ExecutorOptions options;
    options.record = true;
    const PiperJob& tables = job.finish();
    auto executor = create(tables, options);
    std::uint64_t before = 0;  // when the step before the last one ended
    for (const std::uint64_t run : {steps, std::uint64_t{1}}) {
      ASSERT_EQ(executor->run(Phase::training, run).ended, Ended::finished);
      const std::vector<RecordedRank> ranks = executor->recorded();
      ASSERT_EQ(ranks.size(), 2u);
      std::uint64_t last = 0;
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        EXPECT_EQ(ranks[r].rank, r);
        const PiperProgram& program = *tables.ranks[r].program;
        std::size_t at = 0;
        for (std::uint32_t stream = 0; stream < program.num_streams; ++stream) {
          std::uint64_t end = before;
          for (std::uint32_t position = 0; position < program.streams[stream].num_actions;
               ++position, ++at) {
            ASSERT_LT(at, ranks[r].actions.size());
            const RecordedAction& action = ranks[r].actions[at];
            EXPECT_EQ(action.stream, stream);
            EXPECT_EQ(action.position, position);
            EXPECT_GE(action.begin_ns, end);
            EXPECT_GE(action.end_ns, action.begin_ns);
            EXPECT_LE(action.product_ns + action.attention_ns, action.end_ns - action.begin_ns);
            EXPECT_LE(action.least_ns, action.end_ns - action.begin_ns);
            // The first of several steps does not count.
            if (run <= 2) {
              EXPECT_EQ(action.least_ns, action.end_ns - action.begin_ns);
            }
            end = action.end_ns;
            last = std::max(last, end);
          }
        }
        EXPECT_EQ(at, ranks[r].actions.size());
      }
      before = last;
    }
  }
}

TEST(Recorder, KeepsNothingWhereNobodyAsked) {
  HandJob job(2);
  add_pipeline(job);
  auto executor = create(job.finish());
  ASSERT_EQ(executor->run(Phase::training, 2).ended, Ended::finished);
  for (const RecordedRank& rank : executor->recorded()) EXPECT_TRUE(rank.actions.empty());
}

}  // namespace
}  // namespace piper::runtime
