// Every op of the table and whole models against LibTorch: results, and gradients against its
// autograd.

#include <gtest/gtest.h>

#include <cmath>

#include "ir/tensor/builder.h"
#include "passes/build/differentiate.h"
#include "tests/ops/torch_oracle.h"
#include "tests/support/op_cases.h"
#include "tests/support/tensor_models.h"

namespace piper::test {
namespace {

using namespace tensor;

bool keeps(Symbol, std::size_t element) { return element % 3 != 1; }

/// The largest difference, relative to the larger of the norm and 1.
double difference(const Array& a, const Array& b) {
  double worst = 0, squares = 0;
  for (std::size_t e = 0; e < a.data.size(); ++e) {
    worst = std::max(worst, std::abs(a.data[e] - b.data[e]));
    squares += b.data[e] * b.data[e];
  }
  return worst / std::max(1.0, std::sqrt(squares));
}

/// The case with f32 in place of f64.
OpCase in_f32(OpCase c) {
  for (Type& type : c.operands) {
    if (type.dtype == DType::f64) type.dtype = DType::f32;
  }
  c.attrs.shape.dtype = DType::f32;
  c.attrs.dtype = DType::f32;
  return c;
}

/// Rounds to the type's precision, so that both sides start from the same numbers.
void round_to_type(Array& array) {
  if (array.type.dtype != DType::f32) return;
  for (double& number : array.data) number = static_cast<float>(number);
}

class OpOracle : public ::testing::TestWithParam<Op> {};

TEST_P(OpOracle, ResultsAreThoseOfLibTorch) {
  Context context;
  const std::vector<OpCase> cases = cases_of(GetParam(), context);
  ASSERT_FALSE(cases.empty());
  for (const OpCase& wide : cases) {
    for (const OpCase& c : {wide, in_f32(wide)}) {
      const bool f32 =
          &c != &wide && (c.operands != wide.operands || c.attrs.shape != wide.attrs.shape);
      SCOPED_TRACE(c.what);
      Random random(5);
      std::vector<Array> operands = random_operands(c, context.symbols, random);
      for (Array& array : operands) round_to_type(array);
      const std::vector<Type> types = result_types(c, context.symbols);
      const std::vector<Array> ours = evaluate_op(c.op, operands, types, c.attrs, keeps),
                               theirs = torch_op(c.op, operands, types, c.attrs, keeps);
      for (std::size_t i = 0; i < ours.size(); ++i)
        EXPECT_LT(difference(ours[i], theirs[i]), f32 ? 2e-6 : 1e-13)
            << "result " << i << (f32 ? ", f32" : ", f64");
    }
  }
}

TEST_P(OpOracle, GradientsAreThoseOfLibTorch) {
  Context context;
  for (const OpCase& wide : cases_of(GetParam(), context)) {
    for (const OpCase& c : {wide, in_f32(wide)}) {
      SCOPED_TRACE(c.what);
      Random random(6);
      Graph graph(context);
      Builder build(graph);
      std::map<ValueId, Array> leaves;
      std::vector<ValueId> operands;
      std::vector<Array> arrays = random_operands(c, context.symbols, random);
      for (std::size_t i = 0; i < arrays.size(); ++i) {
        const std::string name = "operand" + std::to_string(i);
        round_to_type(arrays[i]);
        operands.push_back(is_differentiable(c.op, i) ? build.weight(name, c.operands[i], {})
                                                      : build.input(name, c.operands[i]));
        leaves[operands.back()] = arrays[i];
      }
      // Ops of the backward pass; their results are LibTorch's derivatives.
      if (graph.params.empty()) continue;
      const Built y = build.op(c.op, operands, c.attrs);
      ASSERT_TRUE(y) << y.error;
      const Type type = graph.type(y.value);
      const ValueId factor = build.input("factor", type);
      leaves[factor] = random_array(type, random);
      round_to_type(leaves[factor]);
      ASSERT_TRUE(build.loss("loss", build.binary(Op::mul, y.value, factor).value));
      DiagnosticSink sink(context.locations);
      ASSERT_TRUE(passes::differentiate(graph, sink));
      Evaluator ours(graph, keeps);
      for (const auto& [value, array] : leaves) ours.set(value, array);
      ours.run();
      const TorchStep theirs = torch_step(graph, leaves, keeps);
      const double bound = type.dtype == DType::f64 ? 1e-13 : 2e-6;
      EXPECT_NEAR(ours.total_loss(), theirs.loss, bound * 10);
      for (std::size_t p = 0; p < graph.params.size(); ++p)
        EXPECT_LT(difference(ours.gradient(ParamId::at(p)), theirs.gradients[p]), bound)
            << "operand " << p;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Oracle, OpOracle, ::testing::ValuesIn([] {
                           std::vector<Op> ops;
                           for (const OpInfo& row : all_ops()) ops.push_back(row.op);
                           return ops;
                         }()),
                         [](const auto& test) {
                           return std::string(tensor::info(test.param).name);
                         });

TEST(ModelOracle, GradientsOfWholeModelsAreThoseOfLibTorch) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    ModelSize size;
    size.dtype = dtype;
    size.layers = 2;
    Context context;
    std::vector<Graph> graphs;
    graphs.push_back(gpt_model(context, size));
    graphs.push_back(mlp_model(context, size));
    graphs.push_back(two_tower_model(context, size));
    for (Graph& graph : graphs) {
      SCOPED_TRACE(graph.name + " " + std::string(dtype_name(dtype)));
      DiagnosticSink sink(context.locations);
      ASSERT_TRUE(passes::differentiate(graph, sink));
      Random random(9);
      std::vector<Array> arrays = random_leaves(graph, size, random);
      std::map<ValueId, Array> numbers;
      Evaluator ours(graph, keeps);
      for (std::size_t i = 0; i < arrays.size(); ++i) {
        round_to_type(arrays[i]);
        ours.set(leaves(graph)[i], arrays[i]);
        numbers[leaves(graph)[i]] = arrays[i];
      }
      ours.run();
      const TorchStep theirs = torch_step(graph, numbers, keeps);
      // f64: the bound of the values law. f32: a few dozen roundings of 6e-8.
      const double bound = dtype == DType::f64 ? 1e-12 : 5e-6;
      EXPECT_NEAR(ours.total_loss(), theirs.loss, bound * 10);
      for (std::size_t p = 0; p < graph.params.size(); ++p) {
        EXPECT_LT(difference(ours.gradient(ParamId::at(p)), theirs.gradients[p]), bound)
            << context.text(graph.params[p].name);
        double largest = 0;
        for (const double number : theirs.gradients[p].data)
          largest = std::max(largest, std::abs(number));
        EXPECT_GT(largest, 1e-6) << "a gradient of zero tests nothing: "
                                 << context.text(graph.params[p].name);
      }
    }
  }
}

}  // namespace
}  // namespace piper::test
