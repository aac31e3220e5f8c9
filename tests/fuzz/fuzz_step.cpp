#include "tests/fuzz/fuzz_step.h"

#include <gtest/gtest.h>

#include "runtime/cpu/cpu_device.h"
#include "runtime/executor/executor.h"
#include "tests/support/run_options.h"

namespace piper::test {

bool runs_quickly(const dag::Dag& plan) {
  if (!plan.settings.data || plan.settings.data->kind != directive::Data::Kind::synthetic ||
      plan.mesh.devices() > 16)
    return false;
  std::int64_t bytes = 0;
  for (const dag::Role& role : plan.plan->roles) bytes += role.arena_bytes;
  return bytes <= 1 << 20;
}

bool run_a_step(const backend::Job& job) {
  runtime::ExecutorOptions settings;
  settings.runtime = checked_run(30);
  runtime::Failure failure;
  const auto executor =
      runtime::Executor::create(job.tables(), runtime::make_cpu_device(), settings, failure);
  if (!executor) {
    EXPECT_FALSE(failure.message.empty());
    return false;
  }
  const runtime::RunResult result = executor->run(runtime::Phase::training, 1);
  if (result.failure) {
    EXPECT_TRUE(result.failure->code == runtime::kNonFinite ||
                result.failure->code == runtime::kActionFailed)
        << describe(*result.failure);
  }
  return true;
}

}  // namespace piper::test
