// Layout, sampling and cost of every op: the rules are compared with the results of sharding the
// operands.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ir/layout/box.h"
#include "ir/tensor/op_rules.h"
#include "tests/support/golden.h"
#include "tests/support/op_cases.h"

namespace piper::test {
namespace {

using namespace tensor;

/// Dropout that keeps everything: which elements it drops is not a matter of layout.
bool keep_all(Symbol, std::size_t) { return true; }

std::string text(const AxisLayout& layout, const Context& context) {
  switch (layout.kind) {
    case LayoutKind::replicated: return "-";
    case LayoutKind::sharded: return std::string(context.text(layout.dim));
    case LayoutKind::partial: return "+";
    case LayoutKind::flat_sharded: return "flat";
  }
  return {};
}

std::string describe(const OpCase& c, const Row& row, const Context& context) {
  std::string line = std::string(info(c.op).name) + " (" + c.what + "):";
  for (const AxisLayout& layout : row.operands) line += " " + text(layout, context);
  line += " ->";
  for (const AxisLayout& layout : row.results) line += " " + text(layout, context);
  return line;
}

/// The shards of an operand on several members. Summands are random except the last.
std::vector<Array> parts_of(const Array& whole, const AxisLayout& layout, std::int64_t members,
                            Random& random) {
  std::vector<Array> parts(static_cast<std::size_t>(members), whole);
  for (std::int64_t i = 0; i < members; ++i) {
    Array& part = parts[static_cast<std::size_t>(i)];
    if (layout.kind == LayoutKind::sharded) {
      const Interval interval = shard_of(
          piper::full_interval(whole.type.dims[*whole.type.find(layout.dim)].extent), members, i);
      part = slice(whole, layout.dim, interval.first, interval.extent);
    } else if (layout.kind == LayoutKind::partial && i + 1 < members) {
      part = random_array(whole.type, random);
      for (std::size_t e = 0; e < part.data.size(); ++e) parts.back().data[e] -= part.data[e];
    }
  }
  return parts;
}

/// The whole that the members' parts are parts of.
Array joined(const std::vector<Array>& parts, const AxisLayout& layout) {
  if (layout.kind == LayoutKind::sharded) return concatenate(parts, layout.dim);
  Array whole = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) {
    for (std::size_t e = 0; e < whole.data.size(); ++e) {
      if (layout.kind == LayoutKind::partial) whole.data[e] += parts[i].data[e];
      else EXPECT_EQ(whole.data[e], parts[i].data[e]);  // repeated, bit by bit
    }
  }
  return whole;
}

/// The smallest number of positions that a row shards; none: very many.
std::int64_t fewest(const OpCase& c, const Row& row, const std::vector<Type>& results) {
  std::int64_t fewest = INT64_MAX;
  const auto look = [&](const Type& type, const AxisLayout& layout) {
    if (layout.kind == LayoutKind::sharded)
      fewest = std::min(fewest, type.dims[*type.find(layout.dim)].extent);
  };
  for (std::size_t i = 0; i < row.operands.size(); ++i) look(c.operands[i], row.operands[i]);
  for (std::size_t i = 0; i < row.results.size(); ++i) look(results[i], row.results[i]);
  return fewest;
}

/// An op that saturates, or bends, beyond 3 is met there too, on both sides, and near 0.
TEST(OpCases, OperandsReachWhereOpsBendAndSaturate) {
  for (const OpInfo& op : all_ops()) {
    Context context;
    double low = INFINITY, high = -INFINITY, nearest = INFINITY;
    for (const OpCase& c : cases_of(op.op, context)) {
      Random random(5);
      for (const Array& operand : random_operands(c, context.symbols, random)) {
        if (!is_floating(operand.type.dtype)) continue;
        for (const double number : operand.data)
          low = std::min(low, number), high = std::max(high, number),
          nearest = std::min(nearest, std::abs(number));
      }
    }
    if (low > high) continue;  // no operands, or integers
    const bool positive = op.op == Op::log || op.op == Op::sqrt || op.op == Op::rsqrt,
               products = op.op == Op::attend || op.op == Op::attend_grad;
    EXPECT_GT(high, products ? 2.5 : 3.5) << op.name;
    EXPECT_LT(low, positive ? 0.2 : products ? -2.5 : -3.5) << op.name;
    EXPECT_LT(nearest, 0.2) << op.name;
  }
}

/// Computing on the shards and joining the results gives the whole.
void expect_true(const OpCase& c, const Row& row, const std::vector<Array>& operands,
                 const std::vector<Array>& whole, std::int64_t members, const Context& context) {
  Random random(3);
  std::vector<std::vector<Array>> given, made(whole.size());
  for (std::size_t i = 0; i < operands.size(); ++i)
    given.push_back(parts_of(operands[i], row.operands[i], members, random));
  for (std::int64_t m = 0; m < members; ++m) {
    std::vector<Array> local;
    std::vector<Type> types;
    for (const std::vector<Array>& parts : given) {
      local.push_back(parts[static_cast<std::size_t>(m)]);
      types.push_back(local.back().type);
    }
    Attrs attrs = c.attrs;
    for (Dim& dim : attrs.shape.dims) {
      if (row.results[0] == AxisLayout::sharded(dim.name))
        dim.extent = shard_of(piper::full_interval(dim.extent), members, m).extent;
    }
    const Inferred inferred = infer(c.op, types, attrs, context.symbols);
    ASSERT_EQ(inferred.error, "");
    std::vector<Array> results = evaluate_op(c.op, local, inferred.types, attrs, keep_all);
    for (std::size_t i = 0; i < results.size(); ++i) made[i].push_back(std::move(results[i]));
  }
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const Array result = joined(made[i], row.results[i]);
    ASSERT_EQ(result.type, whole[i].type);
    for (std::size_t e = 0; e < result.data.size(); ++e)
      ASSERT_NEAR(result.data[e], whole[i].data[e],
                  1e-12 * std::max(1.0, std::abs(whole[i].data[e])));
  }
}

TEST(TensorLayout, PartsOfTheOperandsGivePartsOfTheResults) {
  std::string table;
  for (const OpInfo& op : all_ops()) {
    Context context;
    const std::vector<OpCase> cases = cases_of(op.op, context);
    ASSERT_FALSE(cases.empty()) << "no case of `" << op.name << "`";
    for (const OpCase& c : cases) {
      Random random(7);
      const std::vector<Array> operands = random_operands(c, context.symbols, random);
      const std::vector<Type> types = result_types(c, context.symbols);
      const std::vector<Array> whole = evaluate_op(c.op, operands, types, c.attrs, keep_all);
      const std::vector<Row> all = rows(c.op, c.operands, types, c.attrs);
      for (std::size_t r = 0; r < all.size(); ++r) {
        const Row& row = all[r];
        SCOPED_TRACE(describe(c, row, context));
        ASSERT_EQ(row.operands.size(), operands.size());
        ASSERT_EQ(row.results.size(), whole.size());
        if (r > 0) table += describe(c, row, context) + "\n";
        expect_true(c, row, operands, whole, 2, context);
        // Heads are cut in groups of those that share a key head.
        if (fewest(c, row, types) >= 3 && op.op != Op::attend && op.op != Op::attend_grad)
          expect_true(c, row, operands, whole, 3, context);
        for (std::size_t other = 0; other < r; ++other)
          EXPECT_FALSE(all[other].operands == row.operands && all[other].results == row.results);
      }
    }
  }
  expect_golden("tests/ir/testdata/tensor_layouts.out", table);
}

TEST(TensorSampling, OpsMayRunOnSomeSamples) {
  for (const OpInfo& op : all_ops()) {
    Context context;
    for (const OpCase& c : cases_of(op.op, context))
      EXPECT_NE(sampling(c.op, c.operands, result_types(c, context.symbols), c.attrs),
                Sampling::coupled)
          << info(c.op).name << " (" << c.what << ")";
  }
}

TEST(TensorSampling, AnOpAlongTheSampledDimensionCouplesSamples) {
  Context context;
  const auto of = [&](Op op, std::vector<Type> operands, const std::string& attrs) {
    const OpCase c{op, "", std::move(operands), make_attrs(context, attrs)};
    return sampling(c.op, c.operands, result_types(c, context.symbols), c.attrs);
  };
  const Type x = make_type(context, "f32[batch: 4*, dim: 6]");
  for (const Op op :
       {Op::max, Op::softmax, Op::log_softmax, Op::rms_norm, Op::layer_norm, Op::rename}) {
    EXPECT_EQ(of(op, {x}, "dims: batch; dims2: other"), Sampling::coupled) << info(op).name;
    EXPECT_EQ(of(op, {x}, "dims: dim; dims2: other"), Sampling::independent) << info(op).name;
  }
  EXPECT_EQ(of(Op::sum, {x}, "dims: batch"), Sampling::summed);
  EXPECT_EQ(of(Op::sum, {x}, "dims: dim"), Sampling::independent);
  EXPECT_EQ(of(Op::contract, {x, make_type(context, "f32[batch: 4*, out: 2]")}, "dims: batch"),
            Sampling::summed);
  const Type table = make_type(context, "f32[batch: 4*, dim: 6]"),
             indices = make_type(context, "i64[seq: 3]");
  EXPECT_EQ(of(Op::lookup, {table, indices}, ""), Sampling::coupled);
  const Type q = make_type(context, "f32[batch: 4*, heads: 2, width: 2]");
  EXPECT_EQ(of(Op::attend, {q, q, q}, "causal: true; scalar: 1"), Sampling::coupled);
  EXPECT_EQ(of(Op::cross_entropy, {x, make_type(context, "i64[dim: 6]")}, "dims: batch"),
            Sampling::coupled);
}

TEST(TensorCost, CountsWork) {
  Context context;
  const auto cost_of = [&](const OpCase& c) {
    return cost(c.op, c.operands, result_types(c, context.symbols), c.attrs);
  };
  for (const OpInfo& op : all_ops()) {
    for (const OpCase& c : cases_of(op.op, context)) {
      const Cost one = cost_of(c);
      SCOPED_TRACE(std::string(info(c.op).name) + " (" + c.what + ")");
      EXPECT_TRUE(std::isfinite(one.flops) && one.flops >= 0);
      EXPECT_EQ(one.bytes > 0, op.code_class != CodeClass::view);
      // Twice the samples are twice the flops, and never more than twice the bytes.
      OpCase twice = c;
      bool sampled = false;
      for (Type& type : twice.operands) {
        for (Dim& dim : type.dims) {
          if (dim.sampled) dim.extent *= 2, sampled = true;
        }
      }
      for (Dim& dim : twice.attrs.shape.dims) {
        if (dim.sampled) dim.extent *= 2, sampled = true;
      }
      if (!sampled) continue;
      const Cost two = cost_of(twice);
      EXPECT_DOUBLE_EQ(two.flops, 2 * one.flops);
      EXPECT_LE(two.bytes, 2 * one.bytes);
    }
  }
  const OpCase product{
      Op::contract,
      "",
      {make_type(context, "f32[batch: 3*, dim: 5]"), make_type(context, "f32[dim: 5, hidden: 7]")},
      make_attrs(context, "dims: dim")};
  EXPECT_EQ(cost_of(product).flops, 2 * 3 * 5 * 7);
  EXPECT_EQ(cost_of(product).bytes, 4 * (3 * 5 + 5 * 7 + 3 * 7));
}

}  // namespace
}  // namespace piper::test
