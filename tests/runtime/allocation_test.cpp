// Law 3 at run time: in steady state nothing is allocated, on any thread.
#include <gtest/gtest.h>

#include "tests/runtime/counting_new.h"
#include "tests/runtime/sample_jobs.h"

namespace piper::runtime {
namespace {

TEST(Allocation, TheStepLoopAllocatesNothing) {
  for (const bool record : {false, true}) {
    HandJob job(2);
    add_pipeline(job);
    ExecutorOptions options;
    options.record = record;
    auto executor = create(job.finish(), options);
    const std::uint64_t before = allocations();
    std::uint64_t after_warm_up = 0, at_the_end = 0;
    const RunResult result = executor->run(Phase::training, 500, [&](const StepRecord& step) {
      if (step.local_step == 10) after_warm_up = allocations();
      if (step.local_step == 499) at_the_end = allocations();
      return std::nullopt;
    });
    EXPECT_EQ(result.ended, Ended::finished);
    EXPECT_GT(after_warm_up, before);
    EXPECT_EQ(at_the_end, after_warm_up);
  }
}

}  // namespace
}  // namespace piper::runtime
