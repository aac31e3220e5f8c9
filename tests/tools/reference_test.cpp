// `train --reference`: the compared values, and the messages about a difference.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/support/process.h"
#include "tests/tools/transcript.h"

namespace piper::test {
namespace {

using testing::HasSubstr;

constexpr const char* kTiny =
    "use std.models.mlp\n"
    "use std.schedules.one_f_one_b\n"
    "mesh pair(pp: 2)\n"
    "param rate = 0.05\n"
    "train tiny = mlp(layers: 2, features: 4, hidden: 6, classes: 3) on pair {\n"
    "    data:  synthetic(batch: 8, classes: 3)\n"
    "    optim: sgd(lr: rate)\n"
    "    steps: 3\n"
    "    one_f_one_b(pp, 2)\n"
    "}\n";

TEST(Reference, WrittenElementTypesFollowTheComparison) {
  const std::map<std::string, std::string> files = {
      {"written.pipe",
       "mesh pair(d: 2)\n"
       "model net(dim: int) {\n"
       "    input x: f32[batch, dim], y: f32[batch, dim]\n"
       "    loss square(scale(x) - y)\n"
       "}\n"
       "model scale(x: tensor[batch, dim]) -> f32[batch, dim] {\n"
       "    weight gain[dim] = ones\n"
       "    return x * gain\n"
       "}\n"
       "train scaled = net(dim: 4) on pair {\n"
       "    data:  synthetic(batch: 8)\n"
       "    optim: sgd(lr: 0.1)\n"
       "    steps: 3\n"
       "    replicate model over d\n"
       "}\n"}};
  const ToolResult run = run_tool({"train", "written.pipe", "--interpret", "--reference"}, files);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("3 steps in f64"));
}

// A model that amplifies rounding: two equal values computed in two ways, whose gradients cancel
// except for rounding. The sums of two devices round differently from one.
TEST(Reference, ADifferenceIsSeen) {
  const std::map<std::string, std::string> files = {
      {"cancel.pipe",
       "mesh pair(d: 2)\n"
       "model cancel() {\n"
       "    input x: tensor[batch, features: 4], label: i64[batch]\n"
       "    weight w[features, class: 3] = normal(1.0)\n"
       "    let left = x @ (w * 1e12)\n"
       "    let right = (x @ w) * 1e12\n"
       "    loss cross_entropy(left - right, label)\n"
       "}\n"
       "train rounding = cancel() on pair {\n"
       "    data:  synthetic(batch: 8, classes: 3)\n"
       "    optim: sgd(lr: 1e-3)\n"
       "    steps: 3\n"
       "    replicate model over d\n"
       "}\n"}};
  const ToolResult run = run_tool({"train", "cancel.pipe", "--interpret", "--reference"}, files);
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, HasSubstr("  beyond the bound\n"));
  EXPECT_THAT(run.err, HasSubstr("cancel.pipe:9:7: error P6106: "));
  // The same additions in the same order give the same bits all the same.
  EXPECT_THAT(run.out.substr(run.out.find("3 steps in f32")),
              testing::Not(HasSubstr("beyond the bound")));
}

// The ranks of both programs compute, and the one-device run, on the thread of the driver, cannot.
TEST(Reference, ALibraryThatFailsIsToldApart) {
  const ToolResult run =
      run_tool({"train", "tiny.pipe", "--interpret", "--reference"}, {{"tiny.pipe", kTiny}},
               {{"PIPER_MATH", "auto"}, {"PIPER_PLUGINS", program_path("failing_library")}});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, HasSubstr("3 steps in f64"));
  EXPECT_THAT(
      run.err,
      testing::StartsWith(
          "tiny.pipe:5:7: error P6105: the one-device run failed: this thread cannot be served\n"));
}

// Master weights are optimizer state of narrow parameters: f64 has none to offload, and nothing
// else to compare.
TEST(Reference, MastersMayBeOffloaded) {
  std::string source = kTiny;
  source.insert(source.rfind('}'), "    dtype: bf16\n    offload model with what: optimizer\n");
  const ToolResult run =
      run_tool({"train", "masters.pipe", "--interpret", "--reference"}, {{"masters.pipe", source}});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("3 steps in f64"));
  EXPECT_THAT(run.out, HasSubstr("3 steps in bf16 against the same microbatches"));
}

// With one sample a relu that rounding turns on changes a gradient by a sixth. That is reported,
// and no fault: the plan rounds as one device does.
TEST(Reference, RoundingOfNarrowGradientsIsReported) {
  const std::string source =
      "model net(layers: int) {\n"
      "    input x: tensor[batch, seq: 2, dim: 4], y: i64[batch, seq]\n"
      "    var h = stem(x)\n"
      "    for l in 0..layers { h = layer(h) }\n"
      "    loss cross_entropy(head(h), y)\n"
      "}\n"
      "model stem(x: tensor[batch, seq, dim]) -> tensor[batch, seq, dim] {\n"
      "    weight gain[dim] = ones\n"
      "    return x * gain\n"
      "}\n"
      "model layer(x: tensor[batch, seq, dim]) -> tensor[batch, seq, dim] {\n"
      "    weight up[dim, wide: 6], down[wide, dim] = normal(0.3)\n"
      "    return x + relu(x @ up) @ down\n"
      "}\n"
      "model head(x: tensor[batch, seq, dim]) -> tensor[batch, seq, class: 3] {\n"
      "    weight w[dim, class: 3] = normal(0.3)\n"
      "    return layer_norm(x) @ w\n"
      "}\n"
      "mesh m(d: 1)\n"
      "train t = net(layers: 4) on m {\n"
      "    data:  synthetic(batch: 1, classes: 3)\n"
      "    optim: sgd(lr: 0.1, momentum: 0.9, clip: 1.0)\n"
      "    steps: 3\n"
      "    dtype: bf16\n"
      "}\n";
  const ToolResult run =
      run_tool({"train", "narrow.pipe", "--interpret", "--reference"}, {{"narrow.pipe", source}});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(
      run.out,
      HasSubstr(
          "3 steps in bf16 against the unsplit step in f64 on one device (bound 1.0e-01 of the loss"));
  EXPECT_THAT(run.out, HasSubstr("largest difference of gradients   1.6e-01"));
}

// A weight that an operation changes before its use: each replica's contribution to its gradient is
// rounded separately, as for microbatches.
TEST(Reference, NarrowGradientsOfReplicasPassOperations) {
  const std::string source =
      "model net() {\n"
      "    input x: tensor[batch, dim: 4]\n"
      "    weight w[dim, out: 3] = normal(0.5)\n"
      "    loss square(x @ dropout(w * 0.5, 0.25))\n"
      "}\n"
      "mesh pair(d: 2)\n"
      "train scaled = net() on pair {\n"
      "    data:  synthetic(batch: 8)\n"
      "    optim: sgd(lr: 0.1)\n"
      "    steps: 3\n"
      "    dtype: bf16\n"
      "    split batch into mb: 2\n"
      "    replicate model over d with zero: 2\n"
      "}\n";
  const ToolResult run =
      run_tool({"train", "scaled.pipe", "--interpret", "--reference"}, {{"scaled.pipe", source}});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
}

}  // namespace
}  // namespace piper::test
