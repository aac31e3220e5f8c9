// bf16 beside f64 and f32: the distance of losses and gradients from those of f64, updates of
// master weights below the resolution of bf16, and the same final loss as in f32. The bounds: bf16
// keeps 8 bits, so each operation rounds by 2^-9 at most, relative to its result. Errors of the
// operations that follow each other from an input to a loss and back add up like a random walk,
// some 50 operations in these models: 7 * 2^-9, about 1.4 %. A loss is a mean over many samples,
// whose errors cancel further. The bounds follow from this; they were not fitted.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/laws/law_runs.h"
#include "tests/support/run_options.h"

namespace piper::test {
namespace {

constexpr double kLossBound = 0.01, kGradientBound = 0.06;

std::string gpt(const std::string& dtype, const std::string& optimizer, int seed,
                const std::string& lines) {
  return "use std.models.gpt\nmesh cluster(pp: 2, dp: 2)\ntrain drawn = gpt(layers: 2, dim: 16, heads: 2, vocab: 17) on cluster {\n"
         "    data:  synthetic(batch: 16, seq: 8, classes: 17)\n    optim: " +
         optimizer + "\n    steps: 3\n    dtype: " + dtype + "\n    seed: " + std::to_string(seed) +
         "\n" + lines + "}\n";
}

constexpr const char* kPipeline =
    "    partition model into stage: 2\n    split batch into mb: 4\n    for s in 0..2 { place stage[s] on pp[s] }\n";

LawRun run_of(const std::string& text) {
  Context context;
  const RandomProgram drawn = read_program(context, text);
  LawProgram program(context, drawn.model, drawn.strategy);
  EXPECT_TRUE(program);
  return program ? program.run({}) : LawRun();
}

double relative(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return std::sqrt(difference / norm);
}

TEST(Bf16, LossAndGradientsAreThoseOfF64WithinBounds) {
  double loss = 0, gradient = 0;
  for (const int seed : {1, 2, 3}) {
    SCOPED_TRACE(seed);
    const std::string zero = std::string(kPipeline) +
                             "    replicate model over dp with zero: " + std::to_string(seed) +
                             "\n";
    const LawRun narrow = run_of(gpt("bf16", "sgd(lr: 1e-3)", seed, zero));
    const LawRun wide = run_of(gpt("f64", "sgd(lr: 1e-3)", seed, ""));
    ASSERT_EQ(narrow.losses.size(), wide.losses.size());
    for (std::size_t step = 0; step < wide.losses.size(); ++step) {
      loss = std::max(loss, std::abs(narrow.losses[step] - wide.losses[step]) / wide.losses[step]);
      for (const auto& [name, of_steps] : wide.gradients)
        gradient = std::max(gradient, relative(narrow.gradients.at(name)[step], of_steps[step]));
    }
  }
  EXPECT_LT(loss, kLossBound);
  EXPECT_LT(gradient, kGradientBound);
  EXPECT_GT(gradient, 1e-4);  // it is bf16
}

/// Losses of this number of steps.
std::vector<double> trained(const std::string& text, std::uint64_t steps) {
  Context context;
  const RandomProgram drawn = read_program(context, text);
  LawProgram program(context, drawn.model, drawn.strategy);
  std::vector<double> losses;
  const auto job = program ? program.make_job({}) : nullptr;
  if (!job) return losses;
  runtime::ExecutorOptions settings;
  settings.runtime = checked_run();
  settings.runtime.math = runtime::Math::builtin;
  runtime::Failure failure;
  const auto executor =
      runtime::Executor::create(job->tables(), runtime::make_cpu_device(), settings, failure);
  EXPECT_TRUE(executor) << failure.message;
  if (!executor) return losses;
  executor->run(runtime::Phase::training, steps, [&](const runtime::StepRecord& record) {
    losses.push_back(record.loss);
    return std::nullopt;
  });
  return losses;
}

TEST(Bf16, TrainingGoesWhereItGoesInF32) {
  constexpr std::uint64_t kSteps = 60;
  const auto train = [&](const std::string& dtype) {
    return trained(
        "model net() {\n    input x: tensor[batch, dim]\n    weight up[dim, hidden: 16], down[hidden, dim] = normal(0.3)\n    loss square(tanh(x @ up) @ down - sin(x))\n}\n"
        "mesh pair(pp: 1, dp: 2)\ntrain drawn = net() on pair {\n    data: synthetic(batch: 32, dim: 8); optim: adamw(lr: 1e-2); steps: 60; dtype: " +
            dtype +
            "\n    split batch into mb: 2\n    place model on pp[0]\n    replicate model over dp with zero: 2\n}\n",
        kSteps);
  };
  const std::vector<double> narrow = train("bf16"), wide = train("f32");
  ASSERT_EQ(narrow.size(), kSteps);
  EXPECT_LT(wide.back(), 0.5 * wide.front());
  EXPECT_LT(std::abs(narrow.back() - wide.back()), 0.05 * wide.front());
}

/// Steps far below the resolution of bf16 accumulate in the master weights.
TEST(Bf16, SmallStepsAreNotLost) {
  const std::string model =
      "model net() {\n    input x: tensor[batch, dim]\n    weight w[dim] = constant(1.0)\n    loss w * (0 * x + 1)\n}\nmesh line(p: 1)\n";
  const std::string train =
      "train drawn = net() on line {\n    data: synthetic(batch: 2, dim: 4); optim: sgd(lr: 0.006); steps: 3; dtype: bf16\n}\n";
  const LawRun run = run_of(model + train);
  // The gradient of each of four is 1/4, so a step is 0.0015; numbers of bf16 below 1 are 2^-8 =
  // 0.0039 apart.
  ASSERT_EQ(run.parameters.size(), 1u);
  const auto& steps = run.parameters.begin()->second;
  EXPECT_EQ(steps[0][0], 1);           // 0.9985
  EXPECT_EQ(steps[1][0], 1 - 0x1p-8);  // 0.9970
  EXPECT_EQ(steps[2][0], 1 - 0x1p-8);  // 0.9955
}

}  // namespace
}  // namespace piper::test
