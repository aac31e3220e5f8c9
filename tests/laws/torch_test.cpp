// The laws of values with LibTorch: its matrix products and attention under random programs, and
// its own differentiation as the judge of whole models.

#include <gtest/gtest.h>

#include <thread>

#include "tests/laws/law_runs.h"
#include "tests/ops/torch_oracle.h"
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

}  // namespace
}  // namespace piper::test
