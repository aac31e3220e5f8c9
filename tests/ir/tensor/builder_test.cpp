// The builder: products and their memory order, names, refusals that append nothing; and guarantees
// of symbols and regions.

#include "ir/tensor/builder.h"

#include <gtest/gtest.h>

#include "ir/tensor/graph_text.h"
#include "tests/support/op_cases.h"
#include "tests/support/tensor_models.h"

namespace piper::test {
namespace {

using namespace tensor;

class TensorBuilder : public ::testing::Test {
 protected:
  ValueId leaf(std::string_view type) {
    return graph.add_leaf(make_type(context, type), context.symbol("x"));
  }
  std::string shape(const Built& built) {
    return built ? print(graph.type(built.value), context.symbols) : built.error;
  }
  std::string product(std::string_view a, std::string_view b) {
    return shape(build.matmul(leaf(a), leaf(b)));
  }
  Context context;
  Graph graph{context};
  Builder build{graph};
};

TEST_F(TensorBuilder, ProductsFollowTheNames) {
  EXPECT_EQ(product("f32[batch: 4*, seq: 3, dim: 8]", "f32[dim: 8, heads: 2, width: 5]"),
            "f32[batch: 4*, seq: 3, heads: 2, width: 5]");
  EXPECT_EQ(product("f32[batch: 4*, heads: 2, width: 5]", "f32[heads: 2, width: 5, dim: 8]"),
            "f32[batch: 4*, dim: 8]");
  EXPECT_EQ(product("f32[experts: 2, slot: 4, dim: 8]", "f32[experts: 2, dim: 8, hidden: 6]"),
            "f32[experts: 2, slot: 4, hidden: 6]");
  EXPECT_EQ(product("f32[batch: 4*, dim: 8]", "f32[hidden: 6, dim: 8]"),
            "f32[batch: 4*, hidden: 6]");
  EXPECT_EQ(product("f32[dim: 8]", "f32[hidden: 6, dim: 8]"), "f32[hidden: 6]");
  EXPECT_EQ(product("f32[batch: 4*, seq: 3]", "f32[seq: 3, batch: 4*]"), "f32[]");
}

TEST_F(TensorBuilder, ProductsThatSumNothingAreRefused) {
  EXPECT_EQ(
      product("f32[batch: 4*, code: 3]", "f32[batch: 4*, code: 3]"),
      "a product of `f32[batch: 4*, code: 3]` and `f32[batch: 4*, code: 3]` sums nothing: what they share leads in both and is batched");
  EXPECT_EQ(product("f32[a: 4]", "f32[b: 3]"),
            "a product of `f32[a: 4]` and `f32[b: 3]` sums nothing: they share no dimension");
  EXPECT_EQ(product("f32[]", "f32[]"),
            "a product of `f32[]` and `f32[]` sums nothing: they share no dimension");
  EXPECT_EQ(
      product("f32[batch: 4*, dim: 8]", "f32[dim: 9, hidden: 2]"),
      "dimension `dim` is 8 in one operand and 9 in another: `f32[batch: 4*, dim: 8]` and `f32[dim: 9, hidden: 2]`");
  EXPECT_EQ(shape(build.contract(leaf("f32[a: 2]"), leaf("f32[b: 2]"), {context.symbol("a")})),
            "a product over `a` needs that dimension in both: `f32[a: 2]` and `f32[b: 2]`");
  EXPECT_TRUE(graph.nodes().empty());
}

/// Any two operands that share dimensions: the product is right, whatever their memory order, and
/// lies as a product needs it.
TEST_F(TensorBuilder, RandomProductsComputeTheSumOverTheNames) {
  for_each_case(200, [&](Random& random) {
    Context fresh;
    Graph made(fresh);
    Builder builder(made);
    std::vector<Dim> all;
    for (const char* name : {"a", "b", "c", "d", "e"})
      all.push_back({fresh.symbol(name), random.between(1, 3), false});
    Type types[2];
    std::vector<Symbol> summed;
    for (const Dim& dim : all) {
      const std::uint64_t role = random.below(4);  // in the first, in the second, batched, summed
      if (role != 1) types[0].dims.push_back(dim);
      if (role != 0) types[1].dims.push_back(dim);
      if (role == 3) summed.push_back(dim.name);
    }
    if (summed.empty()) return;
    for (Type& type : types) {
      type.dtype = DType::f64;
      random.shuffle(type.dims);
    }
    const ValueId a = made.add_leaf(types[0], fresh.symbol("a")),
                  b = made.add_leaf(types[1], fresh.symbol("b"));
    const Built y = builder.contract(a, b, summed);
    ASSERT_TRUE(y) << y.error;
    DiagnosticSink sink(fresh.locations);
    ASSERT_TRUE(verify(made, sink));
    const Array x[] = {random_array(types[0], random), random_array(types[1], random)};
    Evaluator evaluator(made);
    evaluator.set(a, x[0]);
    evaluator.set(b, x[1]);
    evaluator.run();
    // The same sum written as a pointwise product and a reduction.
    Graph other(fresh);
    Builder plain(other);
    const ValueId c = other.add_leaf(types[0], fresh.symbol("a")),
                  d = other.add_leaf(types[1], fresh.symbol("b"));
    std::vector<Symbol> order;
    for (const Dim& dim : made.type(y.value).dims) order.push_back(dim.name);
    const ValueId z =
        plain.permute(plain.sum(plain.binary(Op::mul, c, d).value, summed).value, order).value;
    Evaluator expected(other);
    expected.set(c, x[0]);
    expected.set(d, x[1]);
    expected.run();
    ASSERT_EQ(evaluator.get(y.value).type, expected.get(z).type);
    for (std::size_t e = 0; e < expected.get(z).data.size(); ++e)
      ASSERT_NEAR(evaluator.get(y.value).data[e], expected.get(z).data[e], 1e-12);
    // Batched first and in the first operand's order, then the rest of each.
    std::vector<Symbol> documented;
    for (const Dim& dim : types[0].dims)
      if (types[1].find(dim.name) &&
          std::find(summed.begin(), summed.end(), dim.name) == summed.end())
        documented.push_back(dim.name);
    for (const Dim& dim : types[0].dims)
      if (!types[1].find(dim.name)) documented.push_back(dim.name);
    for (const Dim& dim : types[1].dims)
      if (!types[0].find(dim.name)) documented.push_back(dim.name);
    EXPECT_EQ(order, documented);
  });
}

TEST_F(TensorBuilder, OpsAlongADimensionTakeTheLast) {
  const ValueId x = leaf("f32[batch: 4*, dim: 8]");
  EXPECT_EQ(graph.node(graph.value(build.along(Op::softmax, x).value).def).attrs.dims[0],
            context.symbol("dim"));
  EXPECT_EQ(graph.node(graph.value(build.along(Op::softmax, x, context.symbol("batch")).value).def)
                .attrs.dims[0],
            context.symbol("batch"));
  EXPECT_EQ(build.along(Op::softmax, leaf("f32[]")).error,
            "`softmax` goes along a dimension, and `f32[]` has none");
  EXPECT_EQ(shape(build.mean(x, {context.symbol("dim")})), "f32[batch: 4*]");
  EXPECT_EQ(graph.nodes().back().attrs.scalar, 1.0 / 8);
}

TEST_F(TensorBuilder, DropoutsAreKeyedByPathAndNumber) {
  build.at({}, {}, "block.3.mlp.0");
  const ValueId x = leaf("f32[batch: 4*]");
  const ValueId one = build.dropout(x, 0.1).value, two = build.dropout(x, 0.1).value;
  EXPECT_EQ(context.text(graph.node(graph.value(one).def).attrs.seed), "block.3.mlp.0.dropout.0");
  EXPECT_EQ(context.text(graph.node(graph.value(two).def).attrs.seed), "block.3.mlp.0.dropout.1");
}

TEST(Symbols, AreInternedOnce) {
  SymbolTable symbols;
  const Symbol a = symbols.intern("batch"), b = symbols.intern("seq");
  EXPECT_NE(a, b);
  EXPECT_EQ(symbols.intern("batch"), a);
  EXPECT_EQ(symbols.find("seq"), b);
  EXPECT_FALSE(symbols.find("dim").valid());
  EXPECT_EQ(symbols.text(Symbol()), "");
  const std::string_view text = symbols.text(a);
  for (int i = 0; i < 1000; ++i) symbols.intern("name" + std::to_string(i));
  EXPECT_EQ(text, "batch");
  EXPECT_EQ(symbols.text(a).data(), text.data());
}

TEST(Regions, ArePathsOfCountedNames) {
  Context context;
  RegionTable regions;
  const Symbol block = context.symbol("block"), norm = context.symbol("norm");
  const RegionId outer = regions.child({}, block, 3), inner = regions.child(outer, norm, 1);
  EXPECT_EQ(regions.child(outer, norm, 1), inner);
  EXPECT_NE(regions.child({}, norm, 1), inner);
  EXPECT_EQ(regions.coordinate(inner, block), 3u);
  EXPECT_EQ(regions.coordinate(inner, norm), 1u);
  EXPECT_FALSE(regions.coordinate(outer, norm));
  // The innermost one counts where a name occurs twice on a path.
  EXPECT_EQ(regions.coordinate(regions.child(inner, block, 0), block), 0u);
  EXPECT_EQ(regions.print(inner, context.symbols), "block[3].norm[1]");
  EXPECT_EQ(regions.print({}, context.symbols), "model");
}

}  // namespace
}  // namespace piper::test
