// Differentiation: derivatives against central finite differences, tags, and nodes that are not
// emitted.

#include "passes/build/differentiate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "ir/tensor/builder.h"
#include "ir/tensor/graph_text.h"
#include "tests/support/file_test.h"
#include "tests/support/golden.h"
#include "tests/support/op_cases.h"
#include "tests/support/tensor_models.h"

namespace piper::test {
namespace {

using namespace tensor;

std::string diagnostics(const DiagnosticSink& sink, const Context& context) {
  return render_text(sink.sorted(), context.locations.files());
}

bool keeps(Symbol, std::size_t element) { return element % 3 != 1; }

struct Numbers {
  std::map<ValueId, Array> leaves;

  double loss(const Graph& graph, std::span<const NodeId> forward) const {
    Evaluator evaluator(graph, keeps);
    for (const auto& [value, array] : leaves) evaluator.set(value, array);
    evaluator.run(forward);
    return evaluator.total_loss();
  }
};

std::vector<NodeId> nodes_of(const Graph& graph, std::initializer_list<Pass> passes) {
  std::vector<NodeId> ids;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    if (std::find(passes.begin(), passes.end(), graph.nodes()[n].pass) != passes.end())
      ids.push_back(NodeId::at(n));
  }
  return ids;
}

/// Compares every parameter's gradient with central differences of the loss.
void expect_gradients(const Graph& graph, const Numbers& numbers, double tolerance = 2e-7) {
  const std::vector<NodeId> forward = nodes_of(graph, {Pass::F});
  Evaluator evaluator(graph, keeps);
  for (const auto& [value, array] : numbers.leaves) evaluator.set(value, array);
  evaluator.run();
  constexpr double kStep = 1e-5;
  for (std::size_t p = 0; p < graph.params.size(); ++p) {
    const Array gradient = evaluator.gradient(ParamId::at(p));
    const ValueId value = graph.params[p].value;
    double largest = 0;
    for (std::size_t e = 0; e < gradient.data.size(); ++e) {
      Numbers moved = numbers;
      moved.leaves[value].data[e] += kStep;
      const double up = moved.loss(graph, forward);
      moved.leaves[value].data[e] -= 2 * kStep;
      const double difference = (up - moved.loss(graph, forward)) / (2 * kStep);
      ASSERT_NEAR(gradient.data[e], difference, tolerance * std::max(1.0, std::abs(difference)))
          << "parameter " << p << ", element " << e;
      largest = std::max(largest, std::abs(difference));
    }
    EXPECT_GT(largest, 0) << "parameter " << p << " has no effect: the case tests nothing";
  }
}

class EveryOp : public ::testing::TestWithParam<Op> {};

/// loss = mean(op(params) * distinct numbers), for every case of the op.
TEST_P(EveryOp, MatchesFiniteDifferences) {
  const Op op = GetParam();
  Context context;
  const std::vector<OpCase> cases = cases_of(op, context);
  ASSERT_FALSE(cases.empty());
  for (const OpCase& c : cases) {
    SCOPED_TRACE(c.what);
    Random random(11);
    Graph graph(context);
    Builder build(graph);
    Numbers numbers;
    const std::vector<Array> arrays = random_operands(c, context.symbols, random);
    std::vector<ValueId> operands;
    bool differentiable = false;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      const bool trained = is_differentiable(op, i);
      differentiable = differentiable || trained;
      const std::string name = "operand" + std::to_string(i);
      operands.push_back(trained ? build.weight(name, c.operands[i], {})
                                 : build.input(name, c.operands[i]));
      numbers.leaves[operands.back()] = arrays[i];
    }
    if (!differentiable) {
      // An op of the backward pass: a parameter in front of it must be refused, not silently cut
      // off.
      if (c.operands.empty()) continue;
      std::size_t floating = 0;
      while (!is_floating(c.operands[floating].dtype)) ++floating;
      operands[floating] = build.weight("w", c.operands[floating], {});
      const Built y = build.op(op, operands, c.attrs);
      ASSERT_TRUE(y) << y.error;
      ASSERT_TRUE(build.loss("loss", y.value));
      DiagnosticSink sink(context.locations);
      EXPECT_FALSE(passes::differentiate(graph, sink));
      EXPECT_NE(diagnostics(sink, context).find("P4002"), std::string::npos)
          << diagnostics(sink, context);
      continue;
    }
    const Built y = build.op(op, operands, c.attrs);
    ASSERT_TRUE(y) << y.error;
    const Type type = graph.type(y.value);
    const ValueId factor = build.input("factor", type);
    numbers.leaves[factor] = random_array(type, random);
    ASSERT_TRUE(build.loss("loss", build.binary(Op::mul, y.value, factor).value));
    DiagnosticSink sink(context.locations);
    ASSERT_TRUE(passes::differentiate(graph, sink)) << diagnostics(sink, context);
    ASSERT_TRUE(verify(graph, sink)) << diagnostics(sink, context);
    expect_gradients(graph, numbers);
  }
}

INSTANTIATE_TEST_SUITE_P(Differentiate, EveryOp, ::testing::ValuesIn([] {
                           std::vector<Op> ops;
                           for (const OpInfo& row : all_ops()) ops.push_back(row.op);
                           return ops;
                         }()),
                         [](const auto& test) {
                           return std::string(tensor::info(test.param).name);
                         });

/// A rule that forgets an operand is reported at the rule, not by later consequences.
TEST(Differentiate, AMissingAdjointIsAnInternalError) {
  Context context;
  Graph graph(context);
  Builder build(graph);
  const Type type = make_type(context, "f64[batch: 4*, dim: 6]");
  const ValueId a = build.weight("a", type, {}), b = build.weight("b", type, {});
  ASSERT_TRUE(build.loss("loss", build.binary(Op::mul, a, b).value));
  DiagnosticSink sink(context.locations);
  const AdjointsOfOp forgetful = [](const AdjointRequest& request, const Emit& emit) {
    std::vector<ValueId> made = adjoints(request, emit);
    if (request.node.op == Op::mul) made[1] = {};
    return made;
  };
  EXPECT_FALSE(passes::differentiate(graph, sink, forgetful));
  EXPECT_NE(diagnostics(sink, context)
                .find("P4109: internal error: the derivative of `*` gives no adjoint of operand 2"),
            std::string::npos)
      << diagnostics(sink, context);
}

/// Only some operands are trained: each subset on its own.
TEST(Differentiate, EveryChoiceOfTrainedOperands) {
  for (const Op op :
       {Op::add, Op::sub, Op::mul, Op::div, Op::maximum, Op::concat, Op::contract, Op::attend}) {
    Context context;
    for (const OpCase& c : cases_of(op, context)) {
      for (unsigned choice = 1; choice < 1u << c.operands.size(); ++choice) {
        SCOPED_TRACE(std::string(info(op).name) + " " + c.what + " " + std::to_string(choice));
        Random random(choice);
        Graph graph(context);
        Builder build(graph);
        Numbers numbers;
        const std::vector<Array> arrays = random_operands(c, context.symbols, random);
        std::vector<ValueId> operands;
        for (std::size_t i = 0; i < arrays.size(); ++i) {
          const std::string name = "operand" + std::to_string(i);
          operands.push_back((choice >> i & 1) != 0 ? build.weight(name, c.operands[i], {})
                                                    : build.input(name, c.operands[i]));
          numbers.leaves[operands.back()] = arrays[i];
        }
        const Built y = build.op(op, operands, c.attrs);
        ASSERT_TRUE(
            build.loss("loss", build.unary(Op::tanh, build.scale(y.value, 1.0 / 64).value).value));
        DiagnosticSink sink(context.locations);
        ASSERT_TRUE(passes::differentiate(graph, sink));
        expect_gradients(graph, numbers);
        EXPECT_EQ(graph.grads.size(), graph.params.size());
      }
    }
  }
}

class Models : public ::testing::Test {
 protected:
  void differentiate(Graph& graph) {
    DiagnosticSink sink(context.locations);
    ASSERT_TRUE(passes::differentiate(graph, sink)) << diagnostics(sink, context);
    ASSERT_TRUE(verify(graph, sink)) << diagnostics(sink, context);
  }
  std::vector<Graph> all(const ModelSize& size) {
    std::vector<Graph> graphs;
    graphs.push_back(gpt_model(context, size));
    graphs.push_back(mlp_model(context, size));
    graphs.push_back(two_tower_model(context, size));
    for (Graph& graph : graphs) differentiate(graph);
    return graphs;
  }
  Context context;
};

TEST_F(Models, MatchFiniteDifferences) {
  ModelSize size;
  size.batch = 2, size.seq = 3, size.dim = 4, size.vocab = 5;
  for (const Graph& graph : all(size)) {
    SCOPED_TRACE(graph.name);
    Random random(3);
    Numbers numbers;
    const std::vector<Array> arrays = random_leaves(graph, size, random);
    for (std::size_t i = 0; i < arrays.size(); ++i) numbers.leaves[leaves(graph)[i]] = arrays[i];
    expect_gradients(graph, numbers, 1e-6);
  }
}

TEST_F(Models, WeightPassReadsTheInputPassAndNeverTheOtherWay) {
  ModelSize size;
  size.layers = 2;
  for (const Graph& graph : all(size)) {
    SCOPED_TRACE(graph.name);
    for (const Node& node : graph.nodes()) {
      for (const ValueId operand : graph.operands(node)) {
        const NodeId def = graph.value(operand).def;
        const Pass made = def.valid() ? graph.node(def).pass : Pass::F;
        EXPECT_LE(made, node.pass);  // F before BI before BW
      }
      if (node.pass == Pass::F) continue;
      ASSERT_TRUE(node.origin.valid());
      EXPECT_EQ(graph.node(node.origin).pass, Pass::F);
      EXPECT_EQ(node.region, graph.node(node.origin).region);
    }
    for (const ParamGrad& grad : graph.grads)
      EXPECT_EQ(graph.node(graph.value(grad.value).def).pass, Pass::BW);
  }
}

TEST_F(Models, NothingIsComputedInVain) {
  for (const Graph& graph : all({})) {
    SCOPED_TRACE(graph.name);
    std::vector<int> readers(graph.values().size(), 0);
    for (const Node& node : graph.nodes()) {
      for (const ValueId operand : graph.operands(node)) ++readers[operand.index()];
    }
    for (const ParamGrad& grad : graph.grads) {
      EXPECT_EQ(readers[grad.value.index()], 0) << "a contribution has another reader";
      ++readers[grad.value.index()];
    }
    for (const Node& node : graph.nodes()) {
      if (node.pass == Pass::F) continue;
      int read = 0;
      for (std::size_t i = 0; i < node.num_results; ++i)
        read += readers[graph.result(node, i).index()];
      EXPECT_GT(read, 0) << value_text(graph, graph.result(node)) << " is read by nobody";
    }
  }
}

TEST_F(Models, BackwardTextRoundTrips) {
  for (const Graph& graph : all({})) {
    const std::string text = print(graph);
    Context fresh;
    DiagnosticSink sink(fresh.locations);
    const auto parsed = parse(text, fresh, sink);
    ASSERT_TRUE(parsed) << diagnostics(sink, fresh);
    EXPECT_EQ(print(*parsed), text);
  }
}

TEST_F(Models, ARegionFedByIntegersMakesNoAdjointsForOthers) {
  Graph graph = gpt_model(context, {});
  differentiate(graph);
  const Symbol embed = context.symbol("embed");
  int weight_pass = 0;
  for (const Node& node : graph.nodes()) {
    if (!node.region.valid() || !graph.regions.coordinate(node.region, embed)) continue;
    if (node.pass == Pass::BI) {
      EXPECT_EQ(node.op, Op::add) << "the sum of the block's two adjoints";
    }
    weight_pass += node.pass == Pass::BW;
  }
  EXPECT_EQ(weight_pass, 2);  // the table's rows, the positions' sum
}

TEST_F(Models, TiedWeightsHaveOneContributionPerUse) {
  Graph graph = gpt_model(context, {});
  differentiate(graph);
  std::map<std::string, int> contributions;
  for (const ParamGrad& grad : graph.grads)
    ++contributions[std::string(context.text(graph.params[grad.param.index()].name))];
  EXPECT_EQ(contributions.at("embed.0.token"), 2);
  EXPECT_EQ(contributions.at("embed.0.position"), 1);
  EXPECT_EQ(contributions.size(), graph.params.size());
}

TEST(Differentiate, AParameterThatIsItsOwnAdjointIsCopied) {
  // d(w + v) is the adjoint of both: each contribution is a separate value, made at its use.
  Context context;
  Graph graph(context);
  Builder build(graph);
  const Type type = make_type(context, "f64[dim: 3]");
  const ValueId w = build.weight("w", type, {}), v = build.weight("v", type, {});
  const ValueId sum = build.binary(Op::add, build.binary(Op::add, w, v).value, w).value;
  ASSERT_TRUE(build.loss("loss", build.unary(Op::exp, sum).value));
  DiagnosticSink sink(context.locations);
  ASSERT_TRUE(passes::differentiate(graph, sink));
  EXPECT_EQ(graph.grads.size(), 3u);
  Random random(1);
  Numbers numbers;
  numbers.leaves[w] = random_array(type, random);
  numbers.leaves[v] = random_array(type, random);
  expect_gradients(graph, numbers);
}

TEST(Differentiate, AHundredThousandOps) {
  Context context;
  Graph graph(context);
  Builder build(graph);
  build.at({}, {}, "chain.0");
  const Type type = make_type(context, "f32[batch: 4*, dim: 3]");
  ValueId x = build.input("x", type);
  const ValueId w = build.weight("w", make_type(context, "f32[dim: 3]"), {});
  for (int i = 0; i < 50'000; ++i)
    x = build.unary(Op::tanh, build.binary(Op::mul, x, w).value).value;
  ASSERT_TRUE(build.loss("l", x));
  DiagnosticSink sink(context.locations);
  ASSERT_TRUE(passes::differentiate(graph, sink));
  EXPECT_EQ(graph.grads.size(), 50'000u);
}

PIPER_FILE_TEST(DifferentiateText, "tests/passes/testdata/differentiate", ".pir",
                [](const FileTest& test) {
                  Context context;
                  DiagnosticSink sink(context.locations);
                  auto graph = parse(test.text, context, sink);
                  ASSERT_TRUE(graph) << diagnostics(sink, context);
                  const bool ok = passes::differentiate(*graph, sink);
                  expect_golden(test.beside(".out"),
                                ok ? print(*graph) : diagnostics(sink, context));
                  EXPECT_EQ(ok, !sink.has_errors());
                });

}  // namespace
}  // namespace piper::test
