// Buffers of values, in samples in which each class of buffers occurs.
#include <gtest/gtest.h>

#include "passes/plan/residence.h"
#include "tests/support/compile.h"
#include "tests/support/sample_models.h"

namespace piper::test {
namespace {

/// The plan of two stages under 1F1B with two microbatches.
struct Sample {
  Context context;
  DiagnosticSink sink{context.locations};
  StrategyBuilder build{context, {{"pp", 2}, {"dp", 2}}};
  std::optional<dag::Dag> dag;

  explicit Sample(std::optional<std::uint32_t> zero = {},
                  std::optional<directive::Offload::What> offloaded = {}) {
    build.line(2, 2).one_f_one_b(2, 2).clip(1.0);
    if (zero) build.replicate({"dp"}, {}, {}, *zero);
    build.edit().settings.optimizer->kind = directive::Optimizer::Kind::adamw;
    if (offloaded)
      build.add(
          directive::Offload{{build.selector({{"stage", 0}})}, 1, *offloaded, build.next_line()});
    tensor::Graph model = mlp_chain(context, {.layers = 2, .batch = 8, .dim = 2, .hidden = 3});
    dag = compile(model, build.strategy(), sink, {});
    EXPECT_TRUE(dag) << render_text(sink.sorted(), context.locations.files());
  }

  /// All outputs of a node, a line each: `gradients of stage0.0 + 64 of 128, added`.
  std::string of(std::string_view name) const {
    const passes::Residences residences(*dag);
    std::string text;
    for (std::size_t n = 0; n < dag->nodes.size(); ++n) {
      if (dag->name(dag::NodeId::at(n)) != name) continue;
      for (std::uint32_t i = 0; i < dag->nodes[n].num_outputs; ++i)
        text += line(residences.of({dag::NodeId::at(n), i}));
    }
    return text;
  }

 private:
  std::string line(const passes::Residence& at) const {
    std::string text = std::string(dag::buffer_class_name(at.cls)) + " of ";
    if (at.owner.node.valid()) {
      text += dag->name(at.owner.node) + ":" + std::to_string(at.owner.index);
    } else {
      text += context.text(dag->buckets[at.bucket.index()].name);
    }
    if (at.offset > 0) text += " + " + std::to_string(at.offset);
    return text + " of " + std::to_string(at.extent) + (at.adds ? ", added\n" : "\n");
  }
};

TEST(Residence, SumInTheStateOfItsBucket) {
  const Sample sample(0);
  const std::string gradients = "gradients of stage0.0 of 128\ngradients of stage0.0 + 64 of 128\n";
  EXPECT_EQ(
      sample.of("F.stage0.mb0"),
      "activations of F.stage0.mb0:0 of 48\nactivations of F.stage0.mb0:1 of 48\nactivations of F.stage0.mb0:2 of 32\n");
  EXPECT_EQ(sample.of("B.stage0.mb0"), gradients);
  EXPECT_EQ(sample.of("B.stage0.mb1"),
            "gradients of stage0.0 of 128, added\ngradients of stage0.0 + 64 of 128, added\n");
  EXPECT_EQ(sample.of("accumulate.stage0.0"), gradients);
  EXPECT_EQ(sample.of("all_reduce.stage0.0"), gradients);
  EXPECT_EQ(sample.of("update.stage0.0"),
            "parameters of stage0.0 of 128\nparameters of stage0.0 + 64 of 128\n");
}

TEST(Residence, ValuesOfAStep) {
  const Sample sample(0);
  EXPECT_EQ(sample.of("recv.F.stage0.mb1.pp1"), "communication of recv.F.stage0.mb1.pp1:0 of 32\n");
  EXPECT_EQ(
      sample.of("all_gather_v.norm.pp0"),
      "communication of all_gather_v.norm.pp0:0 of 16\ncommunication of all_gather_v.norm.pp0:1 of 16\n");
  // Nothing else reads the operands.
  EXPECT_EQ(sample.of("all_reduce.mlp.loss.0.pp1"),
            "activations of F.stage1.mb0:3 of 8\nactivations of F.stage1.mb1:3 of 8\n");
}

TEST(Residence, UnreducedGradientsUntilTheyAreShards) {
  const Sample sample(2);
  const std::string whole = "unreduced of accumulate.stage0.layer0.0.B.stage0.layer0.mb1:0";
  EXPECT_EQ(sample.of("B.stage0.layer0.mb1"), whole + " of 128\n" + whole + " + 64 of 128\n");
  EXPECT_EQ(sample.of("accumulate.stage0.layer0.0.B.stage0.layer0.mb1"),
            whole + " of 128\n" + whole + " + 64 of 128\n");
  EXPECT_EQ(sample.of("reduce_scatter.stage0.layer0.0.B.stage0.layer0.mb0"),
            "gradients of stage0.layer0.0 of 64\n");
  EXPECT_EQ(sample.of("reduce_scatter.stage0.layer0.0.B.stage0.layer0.mb1"),
            "gradients of stage0.layer0.0 of 64, added\n");
  EXPECT_EQ(sample.of("accumulate.stage0.layer0.0"), "gradients of stage0.layer0.0 of 64\n");
  EXPECT_EQ(sample.of("all_gather.stage0.layer0.0"),
            "parameters of stage0.layer0.0 of 128\nparameters of stage0.layer0.0 + 64 of 128\n");
}

TEST(Residence, GatheredParameters) {
  const Sample sample(3);
  const std::string gather = "all_gather.stage0.layer0.0.F.stage0.layer0.mb0";
  EXPECT_EQ(sample.of("update.stage0.layer0.0"), "parameters of stage0.layer0.0 of 64\n");
  EXPECT_EQ(sample.of(gather),
            "gathered of " + gather + ":0 of 128\ngathered of " + gather + ":0 + 64 of 128\n");
}

TEST(Residence, ValuesOnTheHost) {
  const Sample activations({}, directive::Offload::What::activations),
      optimizer({}, directive::Offload::What::optimizer);
  EXPECT_EQ(
      activations.of("offload.F.stage0.mb0"),
      "offloaded of offload.F.stage0.mb0:0 of 96\noffloaded of offload.F.stage0.mb0:1 of 96\n");
  EXPECT_EQ(
      activations.of("fetch.B.stage0.mb0"),
      "activations of fetch.B.stage0.mb0:0 of 96\nactivations of fetch.B.stage0.mb0:1 of 96\n");
  // Optimizer state is new where it came to.
  EXPECT_EQ(
      optimizer.of("update.stage0.0"),
      "parameters of stage0.0 of 128\nparameters of stage0.0 + 64 of 128\ncommunication of fetch.stage0.0:0 of 256\n");
}

}  // namespace
}  // namespace piper::test
