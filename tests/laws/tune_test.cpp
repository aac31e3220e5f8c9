// Factors of learning rates and weight decays, skipped steps and moving averages: what they do to
// parameters, and the same bits in every layout.

#include <gtest/gtest.h>

#include <set>

#include "ir/dag/bucket_layout.h"
#include "tests/laws/law_runs.h"
#include "tests/support/random_programs.h"

namespace piper::test {
namespace {

/// A table that a lookup reads, layers with norms and biases of two dimensions, and a head.
std::string text_model(const std::string& mesh, const std::string& optimizer,
                       const std::string& lines) {
  return "model net(layers: int) {\n"
         "    input tokens: i64[batch, seq: 3], targets: i64[batch, seq]\n"
         "    var h = embed(tokens)\n"
         "    for l in 0..layers { h = layer(h) }\n"
         "    loss cross_entropy(head(h), targets)\n"
         "}\n"
         "model embed(tokens: i64[batch, seq]) -> tensor[batch, seq, dim: 6] {\n"
         "    weight table[vocab: 7, dim: 6], position[seq, dim] = normal(0.3)\n"
         "    return lookup(table, tokens) + position\n"
         "}\n"
         "model layer(x: tensor[batch, seq, dim]) -> tensor[batch, seq, dim] {\n"
         "    weight gain[dim] = ones\n"
         "    weight q[dim, heads: 2, width: 3], out[heads, width, dim] = normal(0.4)\n"
         "    weight q_bias[heads, width] = normal(0.1)\n"
         "    let y = (rms_norm(x) * gain) @ q + q_bias\n"
         "    return x + attend(y, y, y, causal: true) @ out\n"
         "}\n"
         "model head(x: tensor[batch, seq, dim]) -> tensor[batch, seq, vocab: 7] {\n"
         "    weight score[dim, vocab: 7] = normal(0.3)\n"
         "    return x @ score\n"
         "}\n"
         "mesh grid(" +
         mesh +
         ")\n"
         "train t = net(layers: 3) on grid {\n"
         "    data:  synthetic(batch: 12, classes: 7, seq: 3)\n"
         "    optim: " +
         optimizer +
         "\n"
         "    steps: 3\n"
         "    dtype: f64\n" +
         lines + "}\n";
}

struct Compiled {
  explicit Compiled(const std::string& text)
      : read(read_program(context, text)), program(context, read.model, read.strategy) {}
  Context context;
  RandomProgram read;
  LawProgram program;
};

constexpr const char* kAdamw = "adamw(lr: 1e-2, eps: 1e-4, weight_decay: 0.5)";

std::set<std::string> names_with(const dag::Dag& dag, double tensor::Param::* factor,
                                 double number) {
  std::set<std::string> names;
  for (const tensor::Param& param : dag.params) {
    if (param.*factor == number) names.emplace(dag.context->text(param.name));
  }
  return names;
}

TEST(Tune, OnlyWhatAProductOrALookupReadsDecays) {
  Compiled all(text_model("d: 1", kAdamw, ""));
  ASSERT_TRUE(all.program);
  EXPECT_EQ(names_with(all.program.dag(), &tensor::Param::decay, 0), std::set<std::string>());
  Compiled matrices(
      text_model("d: 1", "adamw(lr: 1e-2, eps: 1e-4, weight_decay: 0.5, decay: matrices)", ""));
  ASSERT_TRUE(matrices.program);
  EXPECT_EQ(
      names_with(matrices.program.dag(), &tensor::Param::decay, 0),
      (std::set<std::string>{"embed.0.position", "layer.0.gain", "layer.0.q_bias", "layer.1.gain",
                             "layer.1.q_bias", "layer.2.gain", "layer.2.q_bias"}));
  // The first gradients are equal, and only the others shrink alike.
  const LawRun of_all = all.program.run({.steps = 1}),
               of_matrices = matrices.program.run({.steps = 1});
  for (const auto& [name, values] : of_all.parameters) {
    const bool decays =
        !names_with(matrices.program.dag(), &tensor::Param::decay, 0).contains(name);
    for (std::size_t i = 0; i < values[0].size(); ++i) {
      const double shrunk = 1e-2 * 0.5 * of_all.initial.at(name)[i];
      EXPECT_NEAR(of_matrices.parameters.at(name)[0][i] - values[0][i], decays ? 0 : shrunk, 1e-12)
          << name;
    }
  }
}

/// A line with a decay of its own says more than the optimizer.
TEST(Tune, LinesGiveFactorsToTheWeightsOfRegions) {
  Compiled tuned(text_model("d: 1",
                            "adamw(lr: 1e-2, eps: 1e-4, weight_decay: 0.5, decay: matrices)",
                            "    tune layer[0..2] with rate: 0.5\n    tune layer[2] with decay: 1\n"
                            "    tune embed with rate: 0, decay: 0\n"));
  ASSERT_TRUE(tuned.program);
  const dag::Dag& dag = tuned.program.dag();
  EXPECT_EQ(names_with(dag, &tensor::Param::rate, 0),
            (std::set<std::string>{"embed.0.position", "embed.0.table"}));
  EXPECT_EQ(names_with(dag, &tensor::Param::rate, 0.5).size(), 8u);
  EXPECT_EQ(names_with(dag, &tensor::Param::decay, 0),
            (std::set<std::string>{"embed.0.position", "embed.0.table", "layer.0.gain",
                                   "layer.0.q_bias", "layer.1.gain", "layer.1.q_bias"}));
  // One bucket: factors divide no collective.
  EXPECT_EQ(dag.buckets.size(), 1u);
  const LawRun run = tuned.program.run({});
  EXPECT_EQ(first_bit_difference(run, tuned.program.run_sequential()), "");
  for (const auto& [name, values] : run.parameters)
    EXPECT_EQ(values.back() == run.initial.at(name), name.starts_with("embed.")) << name;
}

/// Without momentum and decay, half the rate is half the change.
TEST(Tune, TheRateOfSgdScalesItsStep) {
  Compiled plain(text_model("d: 1", "sgd(lr: 0.5)", "")),
      tuned(text_model("d: 1", "sgd(lr: 0.5)", "    tune layer with rate: 0.5\n"));
  ASSERT_TRUE(plain.program && tuned.program);
  const LawRun of_plain = plain.program.run({.steps = 1}),
               of_tuned = tuned.program.run({.steps = 1});
  for (const auto& [name, values] : of_plain.parameters) {
    const double factor = name.starts_with("layer.") ? 0.5 : 1;
    for (std::size_t i = 0; i < values[0].size(); ++i) {
      const double before = of_plain.initial.at(name)[i];
      EXPECT_NEAR(of_tuned.parameters.at(name)[0][i] - before, factor * (values[0][i] - before),
                  1e-14)
          << name;
    }
  }
}

struct LayoutRow {
  const char* mesh;
  const char* lines;
};

/// Shards that end inside of parameters, buckets of any size, state on the host.
constexpr LayoutRow kLayouts[] = {
    {"dp: 3", "    replicate model over dp\n"},
    {"dp: 3", "    replicate model over dp with zero: 1\n"},
    {"dp: 3", "    replicate model over dp with zero: 2\n"},
    {"dp: 3", "    replicate model over dp with zero: 3\n"},
    {"dp: 3", "    replicate model over dp with zero: 3, bucket: 512\n"},
    {"outer: 2, inner: 3",
     "    replicate model over inner with zero: 3\n    replicate model over outer with zero: 0\n"},
    {"pp: 2, dp: 2",
     "    partition model into stage: 2\n    for s in 0..2 { place stage[s] on pp[s] }\n"
     "    split batch into mb: 3\n    replicate model over dp with zero: 1\n"},
    {"dp: 2", "    replicate model over dp with zero: 1\n    offload layer with what: optimizer\n"},
};

class TunedLayouts : public testing::TestWithParam<LayoutRow> {};

/// The bits of the same microbatches on one device, for both optimizers and all types.
TEST_P(TunedLayouts, KeepTheLawOfValues) {
  const std::string tuned =
      "    tune layer[0] with rate: 0.5\n    tune layer[2], head with rate: 2, decay: 0.25\n"
      "    ema: 0.75\n    skip_step: norm > 100\n";
  for (const std::string dtype : {"f64", "f32", "bf16"}) {
    for (const std::string optimizer :
         {"adamw(lr: 1e-2, eps: 1e-4, weight_decay: 0.5, decay: matrices)",
          "sgd(lr: 1e-2, momentum: 0.9, weight_decay: 0.5, clip: 1)"}) {
      SCOPED_TRACE(dtype + " " + optimizer);
      std::string text = text_model(GetParam().mesh, optimizer, tuned + GetParam().lines);
      text.replace(text.find("dtype: f64") + 7, 3, dtype);
      Compiled compiled(text);
      ASSERT_TRUE(compiled.program);
      const LawRun run = compiled.program.run({});
      EXPECT_EQ(run.averages.size(), run.parameters.size());
      EXPECT_EQ(first_bit_difference(run, compiled.program.run_sequential()), "");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, TunedLayouts, testing::ValuesIn(kLayouts));

TEST(Average, FollowsTheParametersFromTheirFirstValues) {
  Compiled compiled(text_model("d: 1", kAdamw, "    ema: 0.75\n"));
  ASSERT_TRUE(compiled.program);
  const LawRun run = compiled.program.run({});
  ASSERT_EQ(run.averages.size(), run.parameters.size());
  for (const auto& [name, averages] : run.averages) {
    std::vector<double> expected = run.initial.at(name);
    for (std::size_t step = 0; step < averages.size(); ++step) {
      for (std::size_t i = 0; i < expected.size(); ++i) {
        expected[i] += (run.parameters.at(name)[step][i] - expected[i]) * 0.25;
        EXPECT_NEAR(averages[step][i], expected[i], 1e-14) << name;
      }
    }
  }
}

/// A skipped step keeps parameters, their averages and the moments: later steps are those of a run
/// whose skipped steps were skipped.
TEST(SkippedSteps, ChangeNothing) {
  Compiled plain(text_model("d: 1", kAdamw, "")),
      skipped(text_model("d: 1", kAdamw, "    ema: 0.5\n    skip_step: norm > 1e-9\n"));
  ASSERT_TRUE(plain.program && skipped.program);
  const LawRun run = skipped.program.run({});
  ASSERT_EQ(run.norms.size(), 3u);
  for (const auto& [name, values] : run.parameters) {
    for (const std::vector<double>& after : values) EXPECT_EQ(after, run.initial.at(name)) << name;
    EXPECT_EQ(run.averages.at(name).back(), run.initial.at(name)) << name;
  }
  // A limit that no norm reaches changes nothing.
  Compiled taken(text_model("d: 1", kAdamw, "    skip_step: norm > 1e9\n"));
  ASSERT_TRUE(taken.program);
  EXPECT_EQ(first_bit_difference(taken.program.run({}), plain.program.run({})), "");
}

}  // namespace
}  // namespace piper::test
