// The requests to a device for the streams of a step: their priorities, and the number of nodes in
// a captured step.

#include <gtest/gtest.h>

#include "tests/cuda/cuda_laws.h"
#include "tests/cuda/recording_driver.h"
#include "tests/support/golden.h"

namespace piper::test {
namespace {

/// With enough steps for graphs to be made.
Trace trace_of(const std::string& text, std::uint32_t* actions = nullptr) {
  Trace made;
  CudaLaw law(text);
  LawRunOptions options;
  const auto job = law.program && *law.program ? law.program->make_job(options) : nullptr;
  EXPECT_TRUE(job);
  if (!job) return made;
  const KernelOperands operands = operands_of(*job);
  runtime::Failure failure;
  const auto executor = executors_on({""}, [&] {
    return std::make_unique<RecordingDriver>(operands, made);
  })(*job, with_graphs(true), failure);
  EXPECT_TRUE(executor) << describe(failure);
  if (executor) executor->run(runtime::Phase::training, 4);
  if (actions != nullptr) *actions = job->tables().ranks[0].program->num_actions;
  return made;
}

TEST(Queues, HaveThePrioritiesOfThePlan) {
  using runtime::cuda::Priority;
  const Trace trace = trace_of(
      noisy_source("replicate model over dp\n    stream sums: model.reduce with priority: high"));
  const auto count = [&](Priority priority) {
    return std::count(trace.priorities.begin(), trace.priorities.end(), priority);
  };
  EXPECT_EQ(count(Priority::compute), 4) << "one of each rank";
  EXPECT_EQ(count(Priority::high), 4);
  EXPECT_GT(count(Priority::communication), 0);
}

/// For a sequence of many short actions, progress signals take little beside them.
TEST(Queues, ShortActionsOfAGraphHaveFewNodes) {
  std::string text = read_text("tests/gpu/bench/launches.pipe").value_or("");
  text.replace(text.find("train many"), 10, "train small");
  std::uint32_t actions = 0;
  const Trace trace = trace_of(text, &actions);
  ASSERT_EQ(trace.graphs.size(), 2u);
  std::size_t nodes = 0, tells = 0, copies = 0;
  for (const TraceCall& call : trace.graphs.front().calls) {
    nodes += call.kind == TraceCall::Kind::work;
    tells += std::string(call.what) == "piper_advance";
    copies += std::string(call.what) == "copy";
  }
  EXPECT_EQ(copies, 1u) << "the data of a step comes in one copy";
  EXPECT_EQ(actions, 291u);
  EXPECT_LE(tells * 15, nodes) << nodes << " nodes of " << actions << " actions, " << tells
                               << " of them tell how far it is";
  EXPECT_LE(static_cast<double>(nodes), 1.55 * actions);
  RecordProperty("nodes", std::to_string(nodes));
  RecordProperty("tells", std::to_string(tells));
}

}  // namespace
}  // namespace piper::test
