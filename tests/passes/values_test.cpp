// The first law, before any order or code: a DAG at level communicating computes the loss,
// gradients and norm of the undivided model.
#include <gtest/gtest.h>

#include <cmath>

#include "ir/dag/sample_weight.h"
#include "passes/pipeline.h"
#include "tests/support/evaluate.h"
#include "tests/support/random_programs.h"
#include "tests/support/run_dag.h"

namespace piper::test {
namespace {

constexpr double kBound = 1e-10;

/// Integers are below `classes`.
std::vector<Array> random_values(const tensor::Graph& model, bool params, std::uint64_t classes,
                                 Random& random) {
  std::vector<Array> values;
  const auto add = [&](tensor::ValueId value) {
    Array array{model.type(value), {}};
    for (std::int64_t i = 0; i < array.type.elements(); ++i) {
      array.data.push_back(tensor::is_floating(array.type.dtype)
                               ? 2 * random.unit() - 1
                               : static_cast<double>(random.below(classes)));
    }
    values.push_back(std::move(array));
  };
  if (params) {
    for (const tensor::Param& param : model.params) add(param.value);
  } else {
    for (const tensor::Input& input : model.inputs) add(input.value);
  }
  return values;
}

double distance(const Array& a, const Array& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.data.size(); ++i) {
    difference += (a.data[i] - b.data[i]) * (a.data[i] - b.data[i]);
    norm += b.data[i] * b.data[i];
  }
  return std::sqrt(difference) / std::max(1.0, std::sqrt(norm));
}

/// Compiles, runs on every device, and compares with the model itself.
void expect_same_values(Context& context, const tensor::Graph& lowered,
                        const directive::Strategy& strategy, Random& random) {
  DiagnosticSink sink(context.locations);
  const std::optional<passes::Prepared> prepared = passes::prepare(lowered, strategy, sink);
  ASSERT_TRUE(prepared) << render_text(sink.sorted(), context.locations.files());
  const tensor::Graph& model = prepared->model;
  const std::uint64_t classes =
      strategy.settings.data
          ? std::max<std::uint64_t>(1, static_cast<std::uint64_t>(strategy.settings.data->classes))
          : 7;
  const std::vector<Array> inputs = random_values(model, false, classes, random),
                           params = random_values(model, true, classes, random);
  passes::Options options;
  options.stop_at = dag::Level::communicating;
  options.verify_each = true;
  const std::optional<dag::Dag> dag = passes::compile(*prepared, sink, options);
  ASSERT_TRUE(dag) << render_text(sink.sorted(), context.locations.files());

  Evaluator reference(model);
  for (std::size_t i = 0; i < inputs.size(); ++i) reference.set(model.inputs[i].value, inputs[i]);
  for (std::size_t i = 0; i < params.size(); ++i) reference.set(model.params[i].value, params[i]);
  reference.run();

  DagRun run(*dag, inputs, params);
  run.run_all();
  double squares = 0;
  std::vector<Array> gradients;
  for (std::size_t p = 0; p < params.size(); ++p) {
    gradients.push_back(reference.gradient(tensor::ParamId::at(p)));
    for (const double g : gradients[p].data) squares += g * g;
  }
  std::vector<bool> updated(params.size());
  for (std::uint64_t rank = 0; rank < dag->mesh.devices(); ++rank) {
    for (const auto& [param, gradient] : run.gradients(rank)) {
      updated[param.index()] = true;
      EXPECT_LE(distance(gradient, gradients[param.index()]), kBound)
          << context.text(model.params[param.index()].name) << " on rank " << rank;
    }
  }
  for (std::size_t p = 0; p < params.size(); ++p)
    EXPECT_NE(updated[p], model.params[p].frozen) << context.text(model.params[p].name);
  for (std::size_t l = 0; l < model.losses.size(); ++l) {
    const tensor::Loss& loss = model.losses[l];
    const double count = loss.mask ? std::max(1.0, reference.get(loss.mask->count).data[0])
                                   : static_cast<double>(loss.count);
    const double expected = reference.get(loss.sum).data[0] / count;
    EXPECT_NEAR(run.loss(tensor::LossId::at(l)), expected, kBound);
  }
  EXPECT_NEAR(run.norm(), std::sqrt(squares), kBound * std::max(1.0, std::sqrt(squares)));

  // The held-out program: the same loss, nothing but the forward pass, and parameters at the same
  // places.
  options.forward_only = true;
  const std::optional<dag::Dag> forward = passes::compile(*prepared, sink, options);
  ASSERT_TRUE(forward) << render_text(sink.sorted(), context.locations.files());
  ASSERT_EQ(dag::sample_weight(*forward), tensor::InputId::at(inputs.size()));
  const tensor::Type& weights = forward->input_types.back();
  std::vector<Array> weighed = inputs;
  weighed.push_back(
      {weights, std::vector<double>(static_cast<std::size_t>(weights.elements()), 1)});
  DagRun evaluation(*forward, weighed, params);
  evaluation.run_all();
  for (std::size_t l = 0; l < model.losses.size(); ++l)
    EXPECT_NEAR(evaluation.loss(tensor::LossId::at(l)), run.loss(tensor::LossId::at(l)), kBound);
  ASSERT_EQ(forward->buckets.size(), dag->buckets.size());
  for (std::size_t b = 0; b < dag->buckets.size(); ++b) {
    EXPECT_EQ(forward->buckets[b].params, dag->buckets[b].params);
    EXPECT_EQ(forward->buckets[b].owners, dag->buckets[b].owners);
  }
}

TEST(Values, RandomProgramsComputeWhatTheModelSays) {
  for_each_case(150, [](Random& random) {
    Context context;
    // The two evaluations number samples differently, so they would draw different numbers.
    RandomProgram program = random_program(context, random, {.dropout = false});
    SCOPED_TRACE(program.source);
    expect_same_values(context, program.model, program.strategy, random);
  });
}

}  // namespace
}  // namespace piper::test
