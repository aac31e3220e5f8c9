// The laws of values with LibTorch: its matrix products and attention under random programs, and
// its own differentiation as the judge of whole models.

#include <gtest/gtest.h>

#include <thread>

#include "runtime/device/state.h"
#include "tests/laws/law_runs.h"
#include "tests/ops/torch_oracle.h"
#include "tests/ops/torch_updates.h"
#include "tests/support/random_programs.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {
namespace {

/// The bits of the same microbatches on one device, and the unsplit model's values, which our own
/// loops compute.
TEST(TorchLaws, ThePluginsProductsAndAttentionKeepTheLawOfValues) {
  for_each_law(25, {}, [](DrawnLaw& law, Random& random) {
    LawProgram unsplit = law.unsplit();
    ASSERT_TRUE(unsplit);
    LawRunOptions options;
    options.math = runtime::Math::mkl;
    if (random.chance(0.3)) options.delays = {random.next(), 200};
    const LawRun run = law.program.run(options);
    // The plugin turns recording off in the threads that it serves; this one judges by autograd.
    LawRun sequential;
    std::thread([&] { sequential = law.program.run_sequential(runtime::Math::mkl); }).join();
    EXPECT_EQ(first_bit_difference(run, sequential), "");
    EXPECT_EQ(first_difference(run, unsplit.run({}), 1e-10), "");
  });
}

TEST(TorchLaws, GeneratedCodeComputesTheInterpretersBits) {
  const TemporaryFolder cache;
  for_each_law(1, {}, [&](DrawnLaw& law, Random&) {
    LawRunOptions options;
    options.math = runtime::Math::mkl;
    const LawRun interpreted = law.program.run(options);
    options.engine = backend::Engine::generated;
    options.cache_folder = cache.path();
    EXPECT_EQ(first_bit_difference(law.program.run(options), interpreted), "");
  });
}

/// Loss and gradients of the first step of a compiled program, cut, placed, ordered and replicated,
/// against LibTorch's autograd on the whole batch.
TEST(TorchLaws, GradientsOfRandomProgramsAreThoseOfAutograd) {
  // Dropout's numbers are functions of the sample, which LibTorch does not know.
  for_each_law(40, {.dropout = false}, [](DrawnLaw& law, Random&) {
    const LawRun run = law.program.run({});
    ASSERT_FALSE(run.losses.empty());
    const tensor::Graph& model = law.drawn.model;
    std::map<tensor::ValueId, Array> leaves;
    const std::vector<std::vector<double>> inputs = law.program.inputs_of_step(0);
    ASSERT_EQ(inputs.size(), model.inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i)
      leaves[model.inputs[i].value] = {model.type(model.inputs[i].value), inputs[i]};
    for (const tensor::Param& param : model.params)
      leaves[param.value] = {model.type(param.value),
                             run.initial.at(std::string(law.context.text(param.name)))};
    const TorchStep theirs = torch_step(model, leaves, {});
    LawRun expected, ours;
    ours.losses = {run.losses.front()};
    expected.losses = {theirs.loss};
    for (std::size_t p = 0; p < model.params.size(); ++p) {
      const std::string name(law.context.text(model.params[p].name));
      if (law.program.dag().params[p].frozen) continue;
      expected.gradients[name] = expected.parameters[name] = {theirs.gradients[p].data};
      ours.gradients[name] = ours.parameters[name] = {run.gradients.at(name).front()};
    }
    EXPECT_EQ(first_difference(ours, expected, 1e-10), "");
  });
}

/// Parameters and moving averages after each step are those of LibTorch's optimizers with a group per
/// parameter, from the same gradients.
TEST(TorchLaws, UpdatesOfRandomProgramsAreThoseOfItsOptimizers) {
  for_each_law(60, {}, [](DrawnLaw& law, Random&) {
    const LawRun run = law.program.run({});
    const dag::Dag& dag = law.program.dag();
    const directive::Settings& settings = dag.settings;
    const auto job = law.program.make_job({});
    ASSERT_TRUE(job && !run.losses.empty());
    std::vector<double> rates;
    for (std::size_t step = 0; step < run.losses.size(); ++step)
      rates.push_back(runtime::scalars_of_step(job->tables().optimizer, step).learning_rate);
    std::vector<TorchGroup> groups;
    std::vector<std::string> names;
    for (const tensor::Param& param : dag.params) {
      if (param.frozen) continue;
      names.emplace_back(law.context.text(param.name));
      groups.push_back(
          {run.initial.at(names.back()), run.gradients.at(names.back()), param.rate, param.decay});
    }
    const TorchUpdates theirs =
        torch_updates(*settings.optimizer, rates, settings.ema, settings.skip_above, groups);
    LawRun ours, expected;
    ours.losses = expected.losses = {0};
    for (std::size_t g = 0; g < names.size(); ++g) {
      ours.parameters[names[g]] = run.parameters.at(names[g]);
      expected.parameters[names[g]] = theirs.parameters[g];
      if (!settings.ema) continue;
      ours.averages[names[g]] = run.averages.at(names[g]);
      expected.averages[names[g]] = theirs.averages[g];
    }
    EXPECT_EQ(first_difference(ours, expected, 1e-10), "");
  });
}

}  // namespace
}  // namespace piper::test
