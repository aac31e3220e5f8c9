// Bodies that one function computes: layers of one model, whose names and dropouts differ.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/kernel/emit_bodies.h"
#include "ir/tensor/builder.h"
#include "runtime/kernel_math.h"
#include "tests/backend/kernel_runs.h"

namespace piper::test {
namespace {

using tensor::Attrs;
using tensor::DType;
using tensor::Op;
using tensor::ValueId;
using testing::HasSubstr;

struct Layer {
  std::string name = "block.0";
  double rate = 0.25;
  std::int64_t width = 3;
  bool adds = false;  // the result is a gradient
};

/// gelu(dropout(x) @ w) of a layer.
backend::KernelBody body_of(Context& context, const Layer& layer) {
  tensor::Graph graph(context);
  tensor::Builder build(graph);
  build.at(RegionId(), LocId(), layer.name);
  const tensor::Dim batch{context.symbol("batch"), 4, true}, dim{context.symbol("dim"), 6},
      out{context.symbol("out"), layer.width};
  const ValueId x = build.input(layer.name + ".x", {DType::f32, {batch, dim}}),
                w = build.weight(layer.name + ".w", {DType::f32, {dim, out}}, {});
  Attrs attrs;
  attrs.scalar = layer.rate;
  attrs.seed = context.symbol(layer.name + ".dropout.0");
  const ValueId drawn = build.op(Op::dropout, {x}, attrs).value;
  const ValueId product = build.matmul(drawn, w).value;
  dag::Body body = make_body(graph, {build.op(Op::gelu, {product}, {}).value}, layer.name + ".F");
  if (layer.adds) body.outputs[0].kind = dag::PortKind::grad;
  backend::KernelBody kernels = backend::build_kernels(body);
  kernels.name = layer.name + ".F";
  return kernels;
}

TEST(EqualBodies, DifferInNamesAndKeysAlone) {
  Context context;
  const std::string code = code_of(body_of(context, {}));
  EXPECT_EQ(code_of(body_of(context, {.name = "block.1"})), code);
  EXPECT_NE(code_of(body_of(context, {.rate = 0.5})), code);
  EXPECT_NE(code_of(body_of(context, {.width = 5})), code);
  EXPECT_NE(code_of(body_of(context, {.adds = true})), code);
}

TEST(EqualBodies, AreOneFunctionThatReadsItsKeysFromTheCall) {
  Context context;
  const backend::KernelBody first = body_of(context, {}), second = body_of(context, {.name = "b"});
  backend::CppBodies bodies;
  const std::vector<std::string> equal = {second.name, "c", "d", "e"};
  const std::string function = bodies.add(first, equal);
  EXPECT_THAT(bodies.text(), HasSubstr("// @block.0.F, @b.F, @c, @d, ... (5 bodies): 2 kernels"));
  EXPECT_THAT(bodies.text(), HasSubstr("static int " + function + "("));
  EXPECT_THAT(bodies.text(), HasSubstr("(rank, at->dropout_0_draws, first_sample, "));
  const std::vector<std::uint64_t> offsets = {0, 64, 128, 192};
  const backend::CallInterval samples{};
  const backend::BodyOperands operands{
      .offsets = offsets, .accumulate = {}, .intervals = {&samples, 1}};
  const std::string of_first = backend::CppBodies::operands(first, first, operands),
                    of_second = backend::CppBodies::operands(first, second, operands);
  const auto key = [](const std::string& name) {
    return ".dropout_0_draws = " + std::to_string(piper_name_hash(name.data(), name.size())) + "u}";
  };
  EXPECT_THAT(of_first, HasSubstr(key("block.0.dropout.0")));
  EXPECT_THAT(of_second, HasSubstr(key("b.dropout.0")));
  EXPECT_THAT(of_second, HasSubstr(".block_0_x = 0, "));
}

}  // namespace
}  // namespace piper::test
