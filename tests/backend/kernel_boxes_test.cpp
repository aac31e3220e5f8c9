// Every row of every op on uneven boxes, forward and gradient, in f64: kernels of local bodies give
// parts of the results of the global op.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backend/kernel/evaluate.h"
#include "ir/dag/local_body.h"
#include "ir/tensor/op_rules.h"
#include "tests/backend/kernel_runs.h"
#include "tests/support/op_cases.h"

namespace piper::test {
namespace {

using tensor::Op;
using tensor::Row;
using tensor::Type;
using tensor::ValueId;

/// The forward op and its adjoint ops in one body; the adjoints of the results are further inputs.
struct OpBody {
  dag::Body body;
  std::size_t forward_outputs = 0;
};

OpBody op_body(const OpCase& op_case, Context& context, bool gradient) {
  tensor::Graph graph(context);
  std::vector<ValueId> operands, outputs, adjoints_of_results;
  for (std::size_t i = 0; i < op_case.operands.size(); ++i)
    operands.push_back(
        graph.add_leaf(op_case.operands[i], context.symbol("x" + std::to_string(i))));
  const tensor::NodeId id =
      graph.add(op_case.op, operands, op_case.attrs, Pass::F, {}, {}, {}, context.symbol("y"));
  for (std::size_t r = 0; r < graph.node(id).num_results; ++r) {
    outputs.push_back(graph.result(graph.node(id), r));
    // The log-sum of `attend` has no adjoint.
    adjoints_of_results.push_back(gradient && r == 0
                                      ? graph.add_leaf(graph.type(outputs[r]), context.symbol("dy"))
                                      : ValueId());
  }
  const std::size_t forward = outputs.size();
  bool wanted[8] = {};
  for (std::size_t i = 0; i < operands.size(); ++i)
    wanted[i] = gradient && tensor::is_differentiable(op_case.op, i);
  const auto emit = [&](Op op, std::vector<ValueId> of, tensor::Attrs attrs, std::size_t,
                        std::size_t result) {
    const tensor::NodeId added = graph.add(op, of, std::move(attrs), Pass::BI, {}, {}, id, {});
    return graph.result(graph.node(added), result);
  };
  if (std::any_of(wanted, wanted + operands.size(), [](bool needed) { return needed; })) {
    const tensor::Node node = graph.node(id);
    for (const ValueId gradient :
         tensor::adjoints({graph, node, adjoints_of_results, {wanted, operands.size()}}, emit)) {
      if (gradient.valid() && graph.value(gradient).def.valid()) outputs.push_back(gradient);
    }
  }
  return {make_body(std::move(graph), outputs, "op"), forward};
}

AxisLayout on_axis(const dag::Body& body, ValueId value, Symbol axis) {
  return body.graph.context().layouts[body.graph.value(value).layout].on(axis);
}

/// Gives the values of a body their layouts: those of the row, and what follows by rows. False if
/// an adjoint has no row.
bool lay_out(OpBody& op, const Row& row, Symbol axis) {
  dag::Body& body = op.body;
  Context& context = body.graph.context();
  const auto set = [&](ValueId value, AxisLayout how) {
    Layout layout;
    layout.add(axis, how);
    body.graph.set_layout(value, context.layouts.intern(std::move(layout)));
  };
  for (std::size_t i = 0; i < row.operands.size(); ++i) set(body.inputs[i].value, row.operands[i]);
  // The adjoint of a sum is whole on every member.
  if (body.inputs.size() > row.operands.size() && row.results[0].kind == LayoutKind::sharded)
    set(body.inputs[row.operands.size()].value, row.results[0]);
  bool first = true;
  for (const tensor::Node& node : body.graph.nodes()) {
    std::vector<Type> operands, results;
    for (const ValueId operand : body.graph.operands(node))
      operands.push_back(body.graph.type(operand));
    for (std::size_t i = 0; i < node.num_results; ++i)
      results.push_back(body.graph.type(body.graph.result(node, i)));
    const std::vector<Row> rows = tensor::rows(node.op, operands, results, node.attrs);
    const Row* fits = first ? &row : nullptr;
    for (const Row& other : rows) {
      std::size_t i = 0;
      bool same = !first;
      for (const ValueId operand : body.graph.operands(node))
        same = same && on_axis(body, operand, axis) == other.operands[i++];
      // Among rows with equal operands the one that keeps shards.
      if (same && (fits == nullptr || other.results[0].kind == LayoutKind::sharded)) fits = &other;
    }
    if (fits == nullptr) return false;
    for (std::size_t i = 0; i < node.num_results; ++i)
      set(body.graph.result(node, i), fits->results[i]);
    first = false;
  }
  return true;
}

/// The outputs of the kernels of a body.
std::vector<Array> run(const dag::Body& body, const std::vector<Array>& inputs,
                       std::uint64_t first_sample) {
  const backend::KernelBody kernels = backend::build_kernels(body);
  std::vector<std::vector<unsigned char>> memory;
  const auto place = [&](std::size_t bytes) { memory.emplace_back(bytes + 128, 0xA5); };
  for (const Array& input : inputs) {
    place(input.data.size() * 8);
    for (std::size_t i = 0; i < input.data.size(); ++i) {
      if (input.type.dtype == tensor::DType::i64)
        reinterpret_cast<std::int64_t*>(memory.back().data())[i] =
            static_cast<std::int64_t>(input.data[i]);
      else reinterpret_cast<double*>(memory.back().data())[i] = input.data[i];
    }
  }
  for (const dag::BodyPort& port : body.outputs)
    place(static_cast<std::size_t>(body.graph.type(port.value).bytes()));
  place(static_cast<std::size_t>(kernels.scratch_bytes));
  std::vector<void*> operands;
  for (std::vector<unsigned char>& bytes : memory) operands.push_back(bytes.data());
  if (kernels.scratch_bytes == 0) operands.pop_back();
  const TestApi api;
  PiperRank rank{};
  const std::vector<std::uint8_t> accumulate(body.outputs.size(), 0);
  const std::uint64_t firsts[] = {first_sample};
  EXPECT_EQ(backend::evaluate(kernels, {&api.api, &rank, 0, operands, accumulate, firsts}), 0);
  std::vector<Array> outputs;
  for (std::size_t o = 0; o < body.outputs.size(); ++o) {
    Array& array = outputs.emplace_back(Array{body.graph.type(body.outputs[o].value), {}});
    EXPECT_EQ(array.type.dtype, tensor::DType::f64);
    const auto* from = reinterpret_cast<const double*>(memory[inputs.size() + o].data());
    array.data.assign(from, from + array.type.elements());
  }
  return outputs;
}

/// One member's part of a value: of a sum a random summand, and at the last member the remainder.
Array part_of(const Array& value, const AxisLayout& layout, std::int64_t members,
              std::int64_t member, const Random& random) {
  if (layout.kind == LayoutKind::sharded) {
    const Interval part = shard_of(
        full_interval(value.type.dims[*value.type.find(layout.dim)].extent), members, member);
    return slice(value, layout.dim, part.first, part.extent);
  }
  if (layout.kind != LayoutKind::partial) return value;
  Random same = random;
  Array remainder = value;
  for (std::int64_t m = 0; m + 1 < members; ++m) {
    const Array summand = random_array(value.type, same);
    if (m == member) return summand;
    for (std::size_t e = 0; e < remainder.data.size(); ++e) remainder.data[e] -= summand.data[e];
  }
  return remainder;
}

Array join(const std::vector<Array>& parts, const AxisLayout& layout) {
  if (layout.kind == LayoutKind::sharded) return concatenate(parts, layout.dim);
  Array value = parts[0];
  for (std::size_t m = 1; m < parts.size() && layout.kind == LayoutKind::partial; ++m) {
    for (std::size_t e = 0; e < value.data.size(); ++e) value.data[e] += parts[m].data[e];
  }
  return value;
}

/// The smallest number of positions, or of groups of heads, that the body shards.
std::int64_t fewest(const dag::Body& body, const OpCase& op_case, Symbol axis) {
  std::int64_t fewest = INT64_MAX;
  for (std::size_t v = 0; v < body.graph.values().size(); ++v) {
    const AxisLayout layout = on_axis(body, ValueId::at(v), axis);
    const Type& type = body.graph.values()[v].type;
    if (layout.kind == LayoutKind::sharded)
      fewest = std::min(fewest, type.dims[*type.find(layout.dim)].extent);
  }
  // Heads are sharded in groups that share a key head.
  const bool attends = op_case.op == Op::attend || op_case.op == Op::attend_grad;
  return attends ? std::min<std::int64_t>(fewest, 2) : fewest;
}

void expect_parts(const OpCase& op_case, const OpBody& op, const std::vector<Array>& inputs,
                  Symbol axis, std::int64_t members) {
  const dag::Body& body = op.body;
  Mesh mesh;
  mesh.axes.push_back({axis, static_cast<std::uint32_t>(members)});
  const std::vector<Array> expected = run(body, inputs, 0);
  std::vector<std::vector<Array>> results_of(expected.size());
  const Random random(11);
  for (std::int64_t m = 0; m < members; ++m) {
    const std::uint32_t at[] = {static_cast<std::uint32_t>(m)};
    const dag::Body local = local_body(body, mesh, at);
    std::vector<Array> parts;
    std::uint64_t first_sample = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const AxisLayout layout = on_axis(body, body.inputs[i].value, axis);
      parts.push_back(part_of(inputs[i], layout, members, m, random));
      ASSERT_EQ(parts.back().type, local.graph.type(local.inputs[i].value));
      const tensor::Dim* const samples = inputs[i].type.samples();
      if (samples != nullptr && layout == AxisLayout::sharded(samples->name))
        first_sample =
            static_cast<std::uint64_t>(shard_of(full_interval(samples->extent), members, m).first);
    }
    const std::vector<Array> results = run(local, parts, first_sample);
    for (std::size_t o = 0; o < results.size(); ++o) results_of[o].push_back(results[o]);
  }
  for (std::size_t o = 0; o < expected.size(); ++o) {
    const Array joined = join(results_of[o], on_axis(body, body.outputs[o].value, axis));
    ASSERT_EQ(joined.type, expected[o].type);
    for (std::size_t e = 0; e < joined.data.size(); ++e)
      ASSERT_NEAR(joined.data[e], expected[o].data[e],
                  1e-11 * std::max(1.0, std::abs(expected[o].data[e])))
          << tensor::info(op_case.op).name << " output " << o << " element " << e;
  }
}

/// Over 2 and over 3 members, the first of which have more positions. If an adjoint has no row, the
/// op is computed forward alone.
TEST(KernelBoxes, UnevenPartsOfEveryOpGivePartsOfItsResultsAndGradients) {
  std::size_t gradients = 0;
  for (const tensor::OpInfo& info : tensor::all_ops()) {
    Context context;
    const Symbol axis = context.symbol("tp");
    for (const OpCase& op_case : cases_of(info.op, context)) {
      Random random(13);
      const std::vector<Array> operands = random_operands(op_case, context.symbols, random);
      const std::vector<Type> results = result_types(op_case, context.symbols);
      for (const Row& row : tensor::rows(op_case.op, op_case.operands, results, op_case.attrs)) {
        SCOPED_TRACE(std::string(info.name) + " (" + op_case.what + ")");
        OpBody op = op_body(op_case, context, true);
        if (!lay_out(op, row, axis)) {
          op = op_body(op_case, context, false);
          ASSERT_TRUE(lay_out(op, row, axis));
        }
        std::vector<Array> inputs = operands;
        if (op.body.inputs.size() > inputs.size())
          inputs.push_back(random_array(results[0], random));
        gradients += op.body.outputs.size() - op.forward_outputs;
        const std::int64_t positions = fewest(op.body, op_case, axis);
        for (const std::int64_t members : {2, 3}) {
          if (positions >= members) expect_parts(op_case, op, inputs, axis, members);
        }
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
  EXPECT_GT(gradients, 100u);
}

}  // namespace
}  // namespace piper::test
