// What the CUDA executor asks of a device, checked for hazards: every program that run_test.cpp runs, step by step, captured and timed; and that any wait that is left out shows.

#include <gtest/gtest.h>

#include <set>

#include "tests/cuda/cuda_laws.h"
#include "tests/cuda/hazards.h"
#include "tests/laws/library_cases.h"

namespace piper::test {
namespace {

enum class Steps : std::uint8_t { plain, captured, timed };
constexpr Steps kAllSteps[] = {Steps::plain, Steps::captured, Steps::timed};

const char* name_of(Steps steps) { return steps == Steps::plain ? "plain" : steps == Steps::captured ? "captured" : "timed"; }

/// The job of a program, and the kernels that it launches.
class Planned {
 public:
  Planned(std::string what, const std::string& text, tensor::DType dtype) : what_(std::move(what) + " in " + std::string(tensor::dtype_name(dtype))), law_(text, dtype) {
    LawRunOptions options;
    options.held_out_steps = 1;
    if (law_.program && *law_.program) job_ = law_.program->make_job(options);
    EXPECT_TRUE(job_) << what_;
    if (job_) operands_ = operands_of(*job_);
  }
  const std::string& what() const { return what_; }

  /// Each phase for enough steps that graphs of both parities are launched twice.
  Trace trace(Steps steps, const std::vector<runtime::Phase>& phases) const {
    Trace made;
    runtime::ExecutorOptions settings = with_graphs(steps == Steps::captured);
    settings.record = steps == Steps::timed;
    settings.max_evaluation_steps = kSteps;
    runtime::Failure failure;
    const auto executor = executors_on({""}, [&] { return std::make_unique<RecordingDriver>(operands_, made); })(*job_, settings, failure);
    EXPECT_TRUE(executor) << describe(failure);
    if (!executor) return made;
    for (const runtime::Phase phase : phases) {
      const auto result = executor->run(phase, steps == Steps::captured ? kSteps : 3);
      EXPECT_EQ(result.ended, runtime::Ended::finished) << (result.failure ? describe(*result.failure) : "");
    }
    const std::size_t graphs = 2 * std::set<runtime::Phase>(phases.begin(), phases.end()).size();
    EXPECT_EQ(made.graphs.size(), steps == Steps::captured ? graphs : 0u);
    return made;
  }

 private:
  static constexpr std::uint64_t kSteps = 6;
  const std::string what_;
  CudaLaw law_;
  std::unique_ptr<backend::Job> job_;
  KernelOperands operands_;
};

std::vector<std::unique_ptr<Planned>> line_programs(tensor::DType dtype) {
  std::vector<std::unique_ptr<Planned>> made;
  for (const auto& [name, lines] : kNoisyLines) made.push_back(std::make_unique<Planned>(name, noisy_source(lines), dtype));
  return made;
}

std::vector<std::unique_ptr<Planned>> library_programs(tensor::DType dtype) {
  std::vector<std::unique_ptr<Planned>> made;
  for (const LibraryCase& each : library_cases()) {
    for (const char* zero : {"zero: 1", "zero: 2", "zero: 3, prefetch: 1"}) {
      if (each.replicates && zero != std::string("zero: 1")) continue;
      made.push_back(std::make_unique<Planned>(each.call + ", " + zero, gpt_source(each, zero), dtype));
    }
  }
  return made;
}

void expect_none(const Planned& planned) {
  for (const Steps steps : kAllSteps) {
    const std::vector<std::string> hazards = find_hazards(planned.trace(steps, {runtime::Phase::training, runtime::Phase::evaluation, runtime::Phase::training}));
    EXPECT_TRUE(hazards.empty()) << planned.what() << ", " << name_of(steps) << ": " << hazards.size() << " hazards, the first: " << hazards.front();
  }
}

class Hazards : public testing::TestWithParam<tensor::DType> {};

TEST_P(Hazards, NoneOnOneRankOrInAttention) {
  expect_none(Planned("mlp", kMlp, GetParam()));
  expect_none(Planned("attention", kAttention, tensor::DType::f32));
}

TEST_P(Hazards, NoneInAnyWayToCut) {
  for (const auto& each : line_programs(GetParam())) expect_none(*each);
}

TEST_P(Hazards, NoneInAnyScheduleOfTheLibrary) {
  for (const auto& each : library_programs(GetParam())) expect_none(*each);
}

/// Of the ways to cut, every wait of some and each seventh of the others. What is not caught follows from the other waits, as the order of all operations says, but for a very few.
TEST_P(Hazards, AnyWaitThatIsLeftOutShows) {
  for (const auto& each : line_programs(GetParam())) {
    const bool all = GetParam() == tensor::DType::f64 && (each->what().starts_with("zero 3") || each->what().starts_with("recompute") || each->what().starts_with("offload"));
    for (const Steps steps : {Steps::plain, Steps::captured}) {
      const WaitsLeftOut left_out = leave_out_waits(each->trace(steps, {runtime::Phase::training}), all ? 1 : 7);
      // A plan keeps more apart than is touched, as the slack of a workspace that is aligned: a few waits order operations that have no bytes in common.
      EXPECT_LE(left_out.missed.size() * 20, left_out.waits) << each->what() << ", " << name_of(steps) << ": nothing notices that " << left_out.missed.front() << " is left out";
      EXPECT_EQ(left_out.caught + left_out.implied + left_out.missed.size(), left_out.waits);
      EXPECT_GT(left_out.caught, left_out.waits * 2 / 3) << each->what() << ", " << name_of(steps);
      RecordProperty(each->what() + ", " + name_of(steps), std::to_string(left_out.waits) + " waits, " + std::to_string(left_out.caught) + " caught");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Hazards, testing::Values(tensor::DType::f64, tensor::DType::bf16), [](const auto& type) { return std::string(tensor::dtype_name(type.param)); });

}  // namespace
}  // namespace piper::test
