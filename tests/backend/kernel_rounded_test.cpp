// Products of bf16 whose sums the library rounds as it writes them: on GPUs, where a cast is all
// that reads them. Everywhere the numbers are the same.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "ir/tensor/builder.h"
#include "runtime/kernel_math.h"
#include "tests/backend/kernel_runs.h"

namespace piper::test {
namespace {

using tensor::Dim;
using tensor::DType;
using tensor::Op;
using tensor::ValueId;

/// x[rows, dim] and w[dim, columns], and functions of their product.
struct ProductGraph {
  ProductGraph(Context& context, DType dtype)
      : graph(context),
        build(graph),
        rows(context.symbol("rows")),
        dim(context.symbol("dim")),
        columns(context.symbol("columns")) {
    build.at(RegionId(), LocId(), "rounded");
    x = leaf({dtype, {{rows, 5}, {dim, 7}}}, "x");
    w = leaf({dtype, {{dim, 7}, {columns, 33}}}, "w");
    product = contract();
  }
  ValueId leaf(tensor::Type type, std::string_view name) {
    Array array{type, {}};
    for (std::int64_t i = 0; i < type.elements(); ++i)
      array.data.push_back(piper_round_bf16(
          static_cast<float>((i * 37 + static_cast<std::int64_t>(inputs.size()) * 11) % 64 - 31) /
          16));
    inputs.push_back(std::move(array));
    return graph.add_leaf(type, graph.context().symbol(name));
  }
  ValueId contract() {
    tensor::Attrs attrs;
    attrs.dims = {dim};
    return build.op(Op::contract, {x, w}, attrs).value;
  }
  ValueId add_product(ValueId to) {
    tensor::Attrs attrs;
    attrs.dims = {dim};
    return build.op(Op::contract_add, {x, w, to}, attrs).value;
  }
  ValueId cast(ValueId value, DType to = DType::bf16) { return build.cast(value, to).value; }

  tensor::Graph graph;
  tensor::Builder build;
  std::vector<Array> inputs;
  Symbol rows, dim, columns;
  ValueId x, w, product;
};

struct Row {
  const char* what;
  int rounded;  // products, on GPUs
  std::function<std::vector<ValueId>(ProductGraph&)> outputs;
  DType dtype = DType::bf16;
  bool grad = false;  // the first output is a gradient, which a call may add to
};

const std::vector<Row> kRows = {
    {"a cast", 1, [](ProductGraph& g) { return std::vector{g.cast(g.product)}; }},
    {"a cast that others read", 1,
     [](ProductGraph& g) {
       const ValueId narrow = g.cast(g.product);
       return std::vector{narrow, g.build.unary(Op::gelu, narrow).value,
                          g.build.sum(narrow, {g.rows}).value};
     }},
    {"a cast that only others read", 1,
     [](ProductGraph& g) { return std::vector{g.build.unary(Op::exp, g.cast(g.product)).value}; }},
    {"a cast that is softmax's operand", 1,
     [](ProductGraph& g) {
       return std::vector{g.build.along(Op::softmax, g.cast(g.product), g.columns).value};
     }},
    {"a cast that is permuted", 1,
     [](ProductGraph& g) {
       return std::vector{g.build.permute(g.cast(g.product), {g.columns, g.rows}).value};
     }},
    {"a cast that is sliced", 1,
     [](ProductGraph& g) {
       return std::vector{g.build.slice(g.cast(g.product), 3, 20, g.columns).value};
     }},
    {"a cast that a product reads", 2,
     [](ProductGraph& g) {
       const ValueId narrow = g.cast(g.product);
       return std::vector{g.cast(g.build
                                     .op(Op::contract, {narrow, narrow},
                                         [&] {
                                           tensor::Attrs attrs;
                                           attrs.dims = {g.rows, g.columns};
                                           return attrs;
                                         }())
                                     .value)};
     }},
    {"a cast of what has another name", 1,
     [](ProductGraph& g) {
       return std::vector{g.cast(
           g.build.rename(g.product, {{g.columns, g.graph.context().symbol("other")}}).value)};
     }},
    {"two products", 2,
     [](ProductGraph& g) {
       return std::vector{g.build.binary(Op::add, g.cast(g.product), g.cast(g.contract())).value};
     }},
    {"a cast of what is permuted", 0,
     [](ProductGraph& g) {
       return std::vector{g.cast(g.build.permute(g.product, {g.columns, g.rows}).value)};
     }},
    {"two casts", 0,
     [](ProductGraph& g) { return std::vector{g.cast(g.product), g.cast(g.product)}; }},
    {"another reader of the product", 0,
     [](ProductGraph& g) {
       return std::vector{g.cast(g.product), g.build.unary(Op::exp, g.product).value};
     }},
    {"the product is handed on, too", 0,
     [](ProductGraph& g) { return std::vector{g.cast(g.product), g.product}; }},
    {"an f32 reader alone", 0,
     [](ProductGraph& g) { return std::vector{g.build.unary(Op::exp, g.product).value}; }},
    {"a sum of products", 0,
     [](ProductGraph& g) { return std::vector{g.cast(g.add_product(g.product))}; }},
    {"a cast that is added to", 1,
     [](ProductGraph& g) {
       return std::vector{g.add_product(g.cast(g.cast(g.product), DType::f32))};
     }},
    {"factors of f32", 0, [](ProductGraph& g) { return std::vector{g.cast(g.product)}; },
     DType::f32},
    {"a gradient", 0, [](ProductGraph& g) { return std::vector{g.cast(g.product)}; }, DType::bf16,
     true},
};

class KernelRounded : public testing::TestWithParam<backend::Target> {};

TEST_P(KernelRounded, Products) {
  Context context;
  KernelRuns runs(GetParam());
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.what);
    ProductGraph g(context, row.dtype);
    const std::vector<ValueId> outputs = row.outputs(g);
    for (const ValueId output : outputs) ASSERT_TRUE(output.valid());
    dag::Body body = make_body(g.graph, outputs, "rounded");
    if (row.grad) body.outputs[0].kind = dag::PortKind::grad;
    int rounded = 0;
    for (const backend::KernelStep& step : backend::build_kernels(body, GetParam()).steps) {
      const auto* const call = std::get_if<backend::LibraryCall>(&step);
      if (call != nullptr && call->end == PIPER_END_ROUNDS) ++rounded;
    }
    EXPECT_EQ(rounded, GetParam() == backend::Target::cpu ? 0 : row.rounded);
    std::vector<std::uint8_t> accumulate(outputs.size(), 0);
    accumulate[0] = row.grad ? 1 : 0;
    runs.add(row.what, std::move(body), g.inputs, accumulate, 0x1p-7);
  }
  runs.check("-O0");
}

INSTANTIATE_TEST_SUITE_P(Targets, KernelRounded,
                         testing::Values(backend::Target::cpu, backend::Target::cuda));

}  // namespace
}  // namespace piper::test
