// Law 3 at run time: in steady state nothing is allocated, on any thread.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/runtime/sample_jobs.h"

namespace {
std::atomic<std::uint64_t> allocations{0};

void* count(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
}  // namespace

void* operator new(std::size_t bytes) { return count(bytes); }
void* operator new[](std::size_t bytes) { return count(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace piper::runtime {
namespace {

TEST(Allocation, TheStepLoopAllocatesNothing) {
  HandJob job(2);
  add_pipeline(job);
  auto executor = create(job.finish());
  std::uint64_t after_warm_up = 0, at_the_end = 0;
  const RunResult result = executor->run(Phase::training, 500, [&](const StepRecord& step) {
    if (step.local_step == 10) after_warm_up = allocations.load();
    if (step.local_step == 499) at_the_end = allocations.load();
    return std::nullopt;
  });
  EXPECT_EQ(result.ended, Ended::finished);
  EXPECT_GT(after_warm_up, 0u);
  EXPECT_EQ(at_the_end, after_warm_up);
}

}  // namespace
}  // namespace piper::runtime
