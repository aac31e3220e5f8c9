// Layouts of the values of a model, as rows: derived from the directives.

#include "passes/build/derive_layouts.h"

#include <gtest/gtest.h>

#include "ir/tensor/graph_text.h"
#include "ir/tensor/op_rules.h"
#include "ir/text/print_text.h"
#include "passes/build/differentiate.h"

namespace piper::test {
namespace {

using namespace tensor;

/// Values depend on samples, on parameters alone (`gain`), and on nothing.
constexpr std::string_view kModel = R"(tensor net {
  %x = input f64[batch: 8*, dim: 4] "x"
  %w = weight f64[dim: 4, out: 4] "w" normal(0.1)
  %gain = weight f64[out: 4] "gain" ones
  %squared = square(%gain) : f64[out: 4] @F region net[0]
  %y = contract(%x, %w) {dims: [dim]} : f64[batch: 8*, out: 4] @F region net[0]
  %z = mul(%y, %squared) : f64[batch: 8*, out: 4] @F region net[1]
  %s = sum(%z) {dims: [batch, out]} : f64[] @F region net[1]
  loss "net.loss.0" elements %z sum %s count 32
}
)";

struct Derived {
  Context context;
  DiagnosticSink sink{context.locations};
  Graph model{context};
  Mesh mesh;
  std::vector<std::uint32_t> segment_of;

  Derived() {
    std::optional<Graph> parsed = parse(kModel, context, sink);
    EXPECT_TRUE(parsed) << render_text(sink.sorted(), context.locations.files());
    model = std::move(*parsed);
    EXPECT_TRUE(passes::differentiate(model, sink));
    mesh.axes = {{context.symbol("dp"), 2}, {context.symbol("tp"), 2}};
    for (const Node& node : model.nodes()) segment_of.push_back(model.regions.index(node.region));
  }
  ValueId value(std::string_view name) const {
    for (std::size_t v = 0; v < model.values().size(); ++v) {
      if (context.text(model.values()[v].name) == name) return ValueId::at(v);
    }
    ADD_FAILURE() << "no value " << name;
    return ValueId(0);
  }
  std::string text(LayoutId layout) const { return layout_text(layout, context); }
};

TEST(DeriveLayouts, FollowFromWhatIsDividedByRows) {
  Derived net;
  const passes::ModelLayouts layouts(net.model, net.segment_of, std::vector<AxisMask>{3, 3},
                                     net.mesh);
  const auto of = [&](std::string_view name) { return net.text(layouts.of(net.value(name))); };
  EXPECT_EQ(net.text(layouts.read_by(net.value("x"), 0)), "<dp: batch, tp: batch>");
  EXPECT_EQ(net.text(layouts.read_by(net.value("w"), 0)), "");
  EXPECT_EQ(of("squared"), "");
  EXPECT_EQ(of("y"), "<dp: batch, tp: batch>");
  EXPECT_EQ(of("z"), "<dp: batch, tp: batch>");
  EXPECT_EQ(of("s"), "<dp: +, tp: +>");
  ASSERT_EQ(net.model.grads.size(), 2u);
  // The layout of `gain` passes through functions of parameters alone.
  for (const ParamGrad& grad : net.model.grads)
    EXPECT_EQ(net.text(layouts.of(grad.value)), "<dp: +, tp: +>");
}

TEST(DeriveLayouts, SegmentsReadInTheirOwnLayouts) {
  Derived net;
  const passes::ModelLayouts layouts(net.model, net.segment_of, std::vector<AxisMask>{1, 2},
                                     net.mesh);
  EXPECT_EQ(net.text(layouts.of(net.value("y"))), "<dp: batch>");
  EXPECT_EQ(net.text(layouts.read_by(net.value("y"), 0)), "<dp: batch>");
  EXPECT_EQ(net.text(layouts.read_by(net.value("y"), 1)), "<tp: batch>");
  EXPECT_EQ(net.text(layouts.of(net.value("s"))), "<tp: +>");
}

TEST(DeriveLayouts, NothingIsDividedWhereNoLineSaysSo) {
  Derived net;
  const passes::ModelLayouts layouts(net.model, net.segment_of, std::vector<AxisMask>{0, 0},
                                     net.mesh);
  for (std::size_t v = 0; v < net.model.values().size(); ++v)
    EXPECT_TRUE(layouts.of(ValueId::at(v)).replicated());
}

/// Every layout that is derived is that of a row, so that the verifier finds it again.
TEST(DeriveLayouts, EveryResultHasARow) {
  Derived net;
  const passes::ModelLayouts layouts(net.model, net.segment_of, std::vector<AxisMask>{1, 1},
                                     net.mesh);
  const auto on_axis = [&](LayoutId layout) {
    return net.context.layouts[layout].on(net.mesh.axes[0].name);
  };
  for (std::size_t n = 0; n < net.model.nodes().size(); ++n) {
    const Node& node = net.model.nodes()[n];
    std::vector<Type> operands, results;
    llvm::SmallVector<AxisLayout, 4> given;
    llvm::SmallVector<AxisLayout, 3> made;
    for (const ValueId operand : net.model.operands(node)) {
      operands.push_back(net.model.type(operand));
      given.push_back(on_axis(layouts.read_by(operand, net.segment_of[n])));
    }
    for (std::size_t i = 0; i < node.num_results; ++i) {
      results.push_back(net.model.type(net.model.result(node, i)));
      made.push_back(on_axis(layouts.of(net.model.result(node, i))));
    }
    const std::vector<Row> all = rows(node.op, operands, results, node.attrs);
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const Row& row) {
      return row.operands == given && row.results == made;
    })) << info(node.op).name;
  }
}

}  // namespace
}  // namespace piper::test
