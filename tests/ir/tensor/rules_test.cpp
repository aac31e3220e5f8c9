// Layout, sampling and cost of every op: what the rules promise is compared with what cutting the operands gives.

#include <gtest/gtest.h>

#include <cmath>

#include "ir/tensor/op_rules.h"
#include "tests/support/golden.h"
#include "tests/support/op_cases.h"

namespace piper::test {
namespace {

using namespace tensor;

/// Dropout that keeps everything: which elements it drops is not a matter of layout.
bool keep_all(Symbol, std::size_t) { return true; }

/// Calls `body` for every way to cut each operand along one of its dimensions or not at all.
void for_each_cut(const OpCase& c, const std::function<void(const std::vector<Symbol>&)>& body) {
  std::vector<std::size_t> choice(c.operands.size(), 0);
  for (;;) {
    std::vector<Symbol> cut;
    for (std::size_t i = 0; i < choice.size(); ++i) cut.push_back(choice[i] == 0 ? Symbol() : c.operands[i].dims[choice[i] - 1].name);
    body(cut);
    std::size_t i = 0;
    while (i < choice.size() && ++choice[i] > c.operands[i].dims.size()) choice[i++] = 0;
    if (i == choice.size()) return;
  }
}

/// The dimension along which result `i` is cut.
Symbol result_cut(const OpCase& c, const ResultLayout& layout, const std::vector<Symbol>& cut, std::size_t i) {
  return c.op == Op::attend_grad ? cut[i] : layout.cut;
}

std::string describe(const OpCase& c, const std::vector<Symbol>& cut, const Context& context) {
  std::string text = std::string(info(c.op).name) + " (" + c.what + "):";
  for (const Symbol dim : cut) text += " " + (dim.valid() ? std::string(context.text(dim)) : std::string("-"));
  return text;
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
        for (const double number : operand.data) low = std::min(low, number), high = std::max(high, number), nearest = std::min(nearest, std::abs(number));
      }
    }
    if (low > high) continue;  // no operands, or integers
    const bool positive = op.op == Op::log || op.op == Op::sqrt || op.op == Op::rsqrt, products = op.op == Op::attend || op.op == Op::attend_grad;
    EXPECT_GT(high, products ? 2.5 : 3.5) << op.name;
    EXPECT_LT(low, positive ? 0.2 : products ? -2.5 : -3.5) << op.name;
    EXPECT_LT(nearest, 0.2) << op.name;
  }
}

TEST(TensorLayout, CutOperandsGiveTheCutResult) {
  std::string accepted;
  for (const OpInfo& op : all_ops()) {
    Context context;
    const std::vector<OpCase> cases = cases_of(op.op, context);
    ASSERT_FALSE(cases.empty()) << "no case of `" << op.name << "`";
    for (const OpCase& c : cases) {
      Random random(7);
      const std::vector<Array> operands = random_operands(c, context.symbols, random);
      const std::vector<Type> types = result_types(c, context.symbols);
      const std::vector<Array> whole = evaluate_op(c.op, operands, types, c.attrs, keep_all);
      for_each_cut(c, [&](const std::vector<Symbol>& cut) {
        const auto rule = layout(c.op, c.operands, cut, c.attrs);
        if (!rule) return;
        SCOPED_TRACE(describe(c, cut, context));
        accepted += describe(c, cut, context) + " -> " + (rule->partial ? "partial" : rule->cut.valid() ? std::string(context.text(rule->cut)) : "-") + "\n";
        std::vector<std::vector<Array>> parts(whole.size());
        for (std::int64_t half = 0; half < 2; ++half) {
          std::vector<Array> local;
          std::vector<Type> local_types;
          for (std::size_t i = 0; i < operands.size(); ++i) {
            Array part = operands[i];
            if (cut[i].valid()) {
              const std::int64_t extent = part.type.dims[*part.type.find(cut[i])].extent / 2;
              part = slice(part, cut[i], half * extent, extent);
            }
            local_types.push_back(part.type);
            local.push_back(std::move(part));
          }
          Attrs attrs = c.attrs;
          for (Dim& dim : attrs.shape.dims) {
            if (dim.name == rule->cut) dim.extent /= 2;
          }
          const Inferred inferred = infer(c.op, local_types, attrs, context.symbols);
          ASSERT_EQ(inferred.error, "");
          std::vector<Array> made = evaluate_op(c.op, local, inferred.types, attrs, keep_all);
          for (std::size_t i = 0; i < made.size(); ++i) parts[i].push_back(std::move(made[i]));
        }
        for (std::size_t i = 0; i < whole.size(); ++i) {
          Array joined = parts[i][0];
          if (const Symbol dim = result_cut(c, *rule, cut, i); dim.valid()) {
            joined = concatenate(parts[i], dim);
          } else if (rule->partial) {
            for (std::size_t e = 0; e < joined.data.size(); ++e) joined.data[e] += parts[i][1].data[e];
          }
          ASSERT_EQ(joined.type, whole[i].type);
          for (std::size_t e = 0; e < joined.data.size(); ++e) ASSERT_NEAR(joined.data[e], whole[i].data[e], 1e-12);
        }
      });
    }
  }
  expect_golden("tests/ir/testdata/tensor_layouts.out", accepted);
}

TEST(TensorSampling, AgreesWithTheLayoutOfTheSampledDimension) {
  for (const OpInfo& op : all_ops()) {
    Context context;
    const Symbol batch = context.symbol("batch");
    for (const OpCase& c : cases_of(op.op, context)) {
      std::vector<Symbol> cut;
      bool sampled = false;
      for (const Type& type : c.operands) {
        cut.push_back(type.find(batch) ? batch : Symbol());
        sampled = sampled || type.find(batch);
      }
      SCOPED_TRACE(describe(c, cut, context));
      const auto rule = layout(c.op, c.operands, cut, c.attrs);
      if (!sampled) continue;
      ASSERT_TRUE(rule);
      EXPECT_TRUE(is_samplewise(c.op, c.operands, c.attrs));
      EXPECT_EQ(rule->partial, sums_samples(c.op, c.operands, c.attrs));
    }
  }
}

TEST(TensorSampling, AnOpAlongTheSampledDimensionCouplesSamples) {
  Context context;
  const Type x = make_type(context, "f32[batch: 4*, dim: 6]");
  for (const Op op : {Op::max, Op::softmax, Op::log_softmax, Op::rms_norm, Op::layer_norm, Op::rename}) {
    EXPECT_FALSE(is_samplewise(op, std::vector{x}, make_attrs(context, "dims: batch; dims2: other"))) << info(op).name;
    EXPECT_TRUE(is_samplewise(op, std::vector{x}, make_attrs(context, "dims: dim; dims2: other"))) << info(op).name;
  }
  const Type table = make_type(context, "f32[batch: 4*, dim: 6]"), indices = make_type(context, "i64[seq: 3]");
  EXPECT_FALSE(is_samplewise(Op::lookup, std::vector{table, indices}, {}));
  const Type q = make_type(context, "f32[batch: 4*, heads: 2, width: 2]");
  EXPECT_FALSE(is_samplewise(Op::attend, std::vector{q, q, q}, make_attrs(context, "causal: true; scalar: 1")));
  EXPECT_FALSE(is_samplewise(Op::cross_entropy, std::vector{x, make_type(context, "i64[dim: 6]")}, make_attrs(context, "dims: batch")));
}

TEST(TensorCost, CountsWork) {
  Context context;
  const auto cost_of = [&](const OpCase& c) { return cost(c.op, c.operands, result_types(c, context.symbols), c.attrs); };
  for (const OpInfo& op : all_ops()) {
    for (const OpCase& c : cases_of(op.op, context)) {
      const Cost one = cost_of(c);
      SCOPED_TRACE(describe(c, {}, context));
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
  const OpCase product{Op::contract, "", {make_type(context, "f32[batch: 3*, dim: 5]"), make_type(context, "f32[dim: 5, hidden: 7]")}, make_attrs(context, "dims: dim")};
  EXPECT_EQ(cost_of(product).flops, 2 * 3 * 5 * 7);
  EXPECT_EQ(cost_of(product).bytes, 4 * (3 * 5 + 5 * 7 + 3 * 7));
}

}  // namespace
}  // namespace piper::test
