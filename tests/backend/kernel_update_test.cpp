// The optimizer's bodies: one kernel each, the textbook's arithmetic, in place; and failures of
// range checks.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backend/cuda/kernel_set.h"
#include "backend/kernel/evaluate.h"
#include "backend/kernel/update_body.h"
#include "ir/tensor/builder.h"
#include "tests/backend/kernel_runs.h"
#include "tests/support/op_cases.h"

namespace piper::test {
namespace {

using backend::build_kernels;
using directive::Optimizer;
using tensor::DType;
using tensor::ValueId;

/// Runs a body whose ports are all f64; outputs in place of inputs are read from there.
std::vector<std::vector<double>> run(const dag::Body& body, const std::vector<int>& in_place,
                                     std::vector<std::vector<double>> inputs,
                                     std::optional<backend::KernelBody> given = {}) {
  const backend::KernelBody kernels =
      given ? *given : build_kernels(body, backend::Target::cpu, in_place);
  std::vector<std::vector<double>> outputs;
  std::vector<void*> operands;
  for (auto& input : inputs) operands.push_back(input.data());
  for (const auto& port : body.outputs)
    outputs.emplace_back(static_cast<std::size_t>(body.graph.type(port.value).elements()), NAN);
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const bool placed = o < in_place.size() && in_place[o] >= 0;
    operands.push_back(placed ? inputs[static_cast<std::size_t>(in_place[o])].data()
                              : outputs[o].data());
  }
  std::vector<double> scratch(static_cast<std::size_t>(kernels.scratch_bytes) / 8 + 1);
  operands.push_back(scratch.data());
  const TestApi api;
  PiperRank rank{};
  const std::vector<std::uint8_t> accumulate(outputs.size(), 0);
  backend::BodyCall call;
  call.api = &api.api;
  call.rank = &rank;
  call.operands = operands;
  call.accumulate = accumulate;
  EXPECT_EQ(backend::evaluate(kernels, call), 0);
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (o < in_place.size() && in_place[o] >= 0)
      outputs[o] = inputs[static_cast<std::size_t>(in_place[o])];
  }
  return outputs;
}

std::vector<double> numbers(std::size_t count, double from, double step) {
  std::vector<double> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(from + step * static_cast<double>(i % 23));
  return out;
}

constexpr std::size_t kCount = 1003;

TEST(KernelUpdate, AdamW) {
  Context context;
  Optimizer optimizer;
  optimizer.kind = Optimizer::Kind::adamw;
  optimizer.weight_decay = 0.1;
  const auto update = backend::update_body(context, optimizer, DType::f64, kCount);
  EXPECT_EQ(backend::kernel_stats(build_kernels(update.body, backend::Target::cpu, update.in_place))
                .kernels,
            1)
      << backend::print(build_kernels(update.body, backend::Target::cpu, update.in_place));
  const auto p = numbers(kCount, -1, 0.1), g = numbers(kCount, 0.7, -0.05),
             m = numbers(kCount, 0.2, 0.01), v = numbers(kCount, 0.3, 0.02);
  const double rate = 0.01, factor = 0.5, bias1 = 1 - std::pow(0.9, 3),
               bias2 = 1 - std::pow(0.999, 3);
  const auto out =
      run(update.body, update.in_place, {p, g, {rate}, {factor}, m, v, {bias1}, {bias2}});
  for (std::size_t i = 0; i < kCount; ++i) {
    const double clipped = g[i] * factor;
    const double m2 = 0.9 * m[i] + 0.1 * clipped, v2 = 0.999 * v[i] + 0.001 * clipped * clipped;
    const double p2 =
        p[i] * (1 - rate * 0.1) - rate * (m2 / bias1) / (std::sqrt(v2) / std::sqrt(bias2) + 1e-8);
    ASSERT_NEAR(out[0][i], p2, 1e-13);
    ASSERT_NEAR(out[1][i], m2, 1e-14);
    ASSERT_NEAR(out[2][i], v2, 1e-14);
  }
}

/// Parameter and moments are updated in place: each is read and written.
TEST(KernelUpdate, BytesOfAKernelForGpus) {
  Context context;
  Optimizer optimizer;
  optimizer.kind = Optimizer::Kind::adamw;
  const auto update = backend::update_body(context, optimizer, DType::f32, kCount);
  backend::cuda::KernelSet kernels;
  kernels.add(backend::update_kernels(update, backend::Target::cuda));
  ASSERT_EQ(kernels.list().size(), 1u);
  // Gradient, parameter twice, both moments twice; rate, clip factor and both biases.
  EXPECT_EQ(kernels.list().front().bytes, std::int64_t{7 * kCount * 4 + 4 * 8});
}

TEST(KernelUpdate, Sgd) {
  Context context;
  for (const double momentum : {0.0, 0.9}) {
    Optimizer optimizer;
    optimizer.kind = Optimizer::Kind::sgd;
    optimizer.momentum = momentum;
    optimizer.weight_decay = 0.01;
    const auto update = backend::update_body(context, optimizer, DType::f64, kCount);
    EXPECT_EQ(
        backend::kernel_stats(build_kernels(update.body, backend::Target::cpu, update.in_place))
            .kernels,
        1);
    const auto p = numbers(kCount, -1, 0.1), g = numbers(kCount, 0.7, -0.05),
               m = numbers(kCount, 0.2, 0.01);
    std::vector<std::vector<double>> inputs = {p, g, {0.1}, {1.0}};
    if (momentum != 0) inputs.push_back(m);
    const auto out = run(update.body, update.in_place, inputs);
    for (std::size_t i = 0; i < kCount; ++i) {
      const double m2 = momentum * m[i] + g[i] + 0.01 * p[i];
      ASSERT_NEAR(out[0][i], p[i] - 0.1 * (momentum != 0 ? m2 : g[i] + 0.01 * p[i]), 1e-14);
      if (momentum != 0) {
        ASSERT_NEAR(out[1][i], m2, 1e-14);
      }
    }
  }
}

/// A rule with factors that change inside of the bucket, both at the same elements or not.
backend::UpdateRule tuned_rule(Optimizer::Kind kind, bool alike = true) {
  Optimizer optimizer;
  optimizer.kind = kind;
  optimizer.momentum = kind == Optimizer::Kind::sgd ? 0.9 : 0;
  optimizer.weight_decay = 0.1;
  backend::UpdateRule rule(optimizer);
  rule.rates = tensor::Pieces{{64, 512, 1003}, {0.5, 2, 0}};
  rule.decays =
      alike ? tensor::Pieces{{64, 512, 1003}, {1, 0.5, 0}} : tensor::Pieces{{512, 1003}, {1, 0}};
  return rule;
}

double factor_at(const tensor::Pieces& pieces, std::size_t i) {
  std::size_t piece = 0;
  while (static_cast<std::int64_t>(i) >= pieces.ends[piece]) ++piece;
  return pieces.numbers[piece];
}

/// Each element has its own learning rate and weight decay, in one nest.
TEST(KernelUpdate, FactorsOfElements) {
  Context context;
  const auto p = numbers(kCount, -1, 0.1), g = numbers(kCount, 0.7, -0.05),
             m = numbers(kCount, 0.2, 0.01), v = numbers(kCount, 0.3, 0.02);
  const double bias1 = 1 - std::pow(0.9, 3), bias2 = 1 - std::pow(0.999, 3);
  for (const Optimizer::Kind kind : {Optimizer::Kind::sgd, Optimizer::Kind::adamw}) {
    const bool adamw = kind == Optimizer::Kind::adamw;
    const backend::UpdateRule rule = tuned_rule(kind);
    const auto update = backend::update_body(context, rule, DType::f64, kCount);
    EXPECT_EQ(
        backend::kernel_stats(build_kernels(update.body, backend::Target::cpu, update.in_place))
            .kernels,
        1);
    std::vector<std::vector<double>> inputs = {p, g, {0.01}, {1.0}, m};
    if (adamw) inputs.insert(inputs.end(), {v, {bias1}, {bias2}});
    const auto out = run(update.body, update.in_place, inputs);
    for (std::size_t i = 0; i < kCount; ++i) {
      const double rate = 0.01 * factor_at(*rule.rates, i),
                   decay = 0.1 * factor_at(*rule.decays, i);
      const double m2 = adamw ? 0.9 * m[i] + 0.1 * g[i] : 0.9 * m[i] + g[i] + decay * p[i],
                   v2 = 0.999 * v[i] + 0.001 * g[i] * g[i];
      const double p2 =
          adamw ? p[i] * (1 - rate * decay) - rate * (m2 / bias1) / (std::sqrt(v2 / bias2) + 1e-8)
                : p[i] - rate * m2;
      ASSERT_NEAR(out[0][i], p2, 1e-13) << i;
      ASSERT_NEAR(out[1][i], m2, 1e-14) << i;
    }
  }
}

TEST(KernelUpdate, MovingAverage) {
  Context context;
  Optimizer optimizer;
  optimizer.kind = Optimizer::Kind::sgd;
  backend::UpdateRule rule(optimizer);
  rule.ema = 0.75;
  const auto update = backend::update_body(context, rule, DType::f64, kCount);
  const auto p = numbers(kCount, -1, 0.1), g = numbers(kCount, 0.7, -0.05),
             average = numbers(kCount, 0.2, 0.01);
  const auto out = run(update.body, update.in_place, {p, g, {0.1}, {1.0}, average});
  for (std::size_t i = 0; i < kCount; ++i) {
    const double p2 = p[i] - 0.1 * g[i];
    ASSERT_NEAR(out[0][i], p2, 1e-14);
    ASSERT_NEAR(out[1][i], 0.75 * average[i] + 0.25 * p2, 1e-14);
  }
}

/// A negative factor keeps the parameter and its state, whatever the gradient is.
TEST(KernelUpdate, SkippedSteps) {
  Context context;
  backend::UpdateRule rule = tuned_rule(Optimizer::Kind::adamw);
  rule.ema = 0.75;
  rule.skips = true;
  const auto update = backend::update_body(context, rule, DType::f64, kCount);
  const auto p = numbers(kCount, -1, 0.1), m = numbers(kCount, 0.2, 0.01),
             v = numbers(kCount, 0.3, 0.02), average = numbers(kCount, 0.4, 0.01);
  for (const double gradient : {0.5, std::numeric_limits<double>::infinity(), double{NAN}}) {
    const std::vector<double> g(kCount, gradient);
    const auto out =
        run(update.body, update.in_place, {p, g, {0.01}, {-1.0}, m, v, average, {0.3}, {0.4}},
            backend::update_kernels(update));
    EXPECT_EQ(out[0], p);
    EXPECT_EQ(out[1], m);
    EXPECT_EQ(out[2], v);
    EXPECT_EQ(out[3], average);
  }
  const std::vector<double> g(kCount, 0.5);
  const auto taken =
      run(update.body, update.in_place, {p, g, {0.01}, {1.0}, m, v, average, {0.3}, {0.4}},
          backend::update_kernels(update));
  EXPECT_NE(taken[0], p);
  EXPECT_NE(taken[3], average);
}

TEST(KernelUpdate, FactorOfASkippedStep) {
  Context context;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  struct Row {
    double square;
    std::optional<double> clip;
    double factor;
  };
  for (const Row& row : {Row{99, {}, 1}, Row{100, {}, 1}, Row{101, {}, -1}, Row{101, 1.0, -1},
                         Row{64, 4.0, 4.0 / (8 + 1e-6)}, Row{kInfinity, {}, -1},
                         Row{kInfinity, 1.0, -1}, Row{double{NAN}, {}, -1}}) {
    const auto out = run(backend::norm_body(context, 1, row.clip, 10.0), {}, {{row.square}});
    EXPECT_NEAR(out[1][0], row.factor, 1e-13) << row.square;
  }
}

TEST(KernelUpdate, NormAndFactor) {
  Context context;
  const std::vector<std::int64_t> elements = {100, 1, 37};
  const auto squares = backend::sum_squares_body(context, DType::f64, elements);
  const auto a = numbers(100, -1, 0.1), b = numbers(1, 3, 0), c = numbers(37, 0.5, 0.2);
  const auto sums = run(squares, {}, {a, b, c});
  double expected = 0;
  for (const auto& list : {a, b, c}) {
    for (double x : list) expected += x * x;
  }
  EXPECT_NEAR(sums[0][0] + sums[1][0] + sums[2][0], expected, 1e-12);
  const auto clipped = run(backend::norm_body(context, 3, 2.0), {}, {sums[0], sums[1], sums[2]});
  EXPECT_NEAR(clipped[0][0], std::sqrt(expected), 1e-13);
  EXPECT_NEAR(clipped[1][0], 2.0 / (std::sqrt(expected) + 1e-6), 1e-13);
  EXPECT_EQ(run(backend::norm_body(context, 3, 1e9), {}, {sums[0], sums[1], sums[2]})[1][0], 1.0);
  EXPECT_EQ(
      run(backend::norm_body(context, 3, std::nullopt), {}, {sums[0], sums[1], sums[2]})[1][0],
      1.0);
}

class KernelUpdateOn : public testing::TestWithParam<backend::Target> {};

TEST_P(KernelUpdateOn, EvaluatorEqualsGeneratedCode) {
  Context context;
  KernelRuns runs(GetParam());
  Random random(2);
  for (const DType dtype : {DType::f64, DType::f32}) {
    Optimizer adamw, sgd;
    adamw.kind = Optimizer::Kind::adamw;
    adamw.weight_decay = 0.1;
    sgd.kind = Optimizer::Kind::sgd;
    sgd.momentum = 0.9;
    for (const Optimizer& optimizer : {adamw, sgd}) {
      auto update = backend::update_body(context, optimizer, dtype, 517);
      std::vector<Array> inputs;
      for (const auto& port : update.body.inputs) {
        inputs.push_back(random_array(update.body.graph.type(port.value), random));
        for (double& number : inputs.back().data) number = std::fabs(static_cast<float>(number));
      }
      const auto in_place = update.in_place;
      runs.add("update", std::move(update.body), inputs, {}, dtype == DType::f64 ? 1e-12 : 1e-5,
               in_place);
    }
    for (const auto& [kind, alike] : {std::pair{Optimizer::Kind::sgd, true},
                                      {Optimizer::Kind::adamw, true},
                                      {Optimizer::Kind::adamw, false}}) {
      backend::UpdateRule rule = tuned_rule(kind, alike);
      rule.ema = 0.9;
      auto update = backend::update_body(context, rule, dtype, kCount);
      std::vector<Array> inputs;
      for (const auto& port : update.body.inputs) {
        inputs.push_back(random_array(update.body.graph.type(port.value), random));
        for (double& number : inputs.back().data) number = std::fabs(static_cast<float>(number));
      }
      const auto in_place = update.in_place;
      runs.add("tuned_update", std::move(update.body), inputs, {},
               dtype == DType::f64 ? 1e-12 : 1e-5, in_place);
    }
    const std::vector<std::int64_t> elements = {33, 2, 300};
    auto squares = backend::sum_squares_body(context, dtype, elements);
    std::vector<Array> inputs;
    for (const auto& port : squares.inputs)
      inputs.push_back(random_array(squares.graph.type(port.value), random));
    for (Array& array : inputs) {
      for (double& number : array.data) number = static_cast<float>(number);
    }
    runs.add("sum_squares", std::move(squares), inputs, {}, 1e-6);
  }
  auto norm = backend::norm_body(context, 40, 1.0);
  std::vector<Array> inputs;
  for (const auto& port : norm.inputs)
    inputs.push_back({norm.graph.type(port.value), {random.unit()}});
  runs.add("norm", std::move(norm), inputs, {}, 1e-12);
  runs.check("-O2 -march=native");
}

INSTANTIATE_TEST_SUITE_P(Targets, KernelUpdateOn,
                         testing::Values(backend::Target::cpu, backend::Target::cuda));

TEST(KernelChecks, IndexOutsideItsTableFailsTheRun) {
  Context context;
  for (const bool target : {false, true}) {
    tensor::Graph graph(context);
    const tensor::Type table_type =
        make_type(context, target ? "f64[seq: 3, vocab: 5]" : "f64[vocab: 5, dim: 2]");
    const ValueId table = graph.add_leaf(table_type, context.symbol("table"));
    const ValueId index =
        graph.add_leaf(make_type(context, "i64[seq: 3]"), context.symbol("index"));
    tensor::Builder build(graph);
    const tensor::Built made =
        target ? build.cross_entropy(table, index) : build.lookup(table, index);
    ASSERT_TRUE(made) << made.error;
    const dag::Body body = make_body(graph, {made.value}, "check");
    const auto kernels = build_kernels(body);
    for (const std::int64_t bad : {std::int64_t{5}, std::int64_t{-1}}) {
      std::vector<double> values(15, 1.0), out(6);
      std::vector<std::int64_t> indices = {0, bad, 4};
      std::vector<double> scratch(static_cast<std::size_t>(kernels.scratch_bytes) / 8 + 1);
      const std::vector<void*> operands = {values.data(), indices.data(), out.data(),
                                           scratch.data()};
      const TestApi api;
      TestApi::failures.clear();
      PiperRank rank{};
      const std::vector<std::uint8_t> accumulate = {0};
      backend::BodyCall call;
      call.api = &api.api;
      call.rank = &rank;
      call.action = 11;
      call.operands = operands;
      call.accumulate = accumulate;
      EXPECT_NE(backend::evaluate(kernels, call), 0);
      ASSERT_EQ(TestApi::failures.size(), 1u);
      EXPECT_EQ(
          TestApi::failures[0],
          "11: " + std::string(target ? backend::kTargetOutOfRange : backend::kIndexOutOfRange) +
              ": " + std::to_string(bad));
    }
  }
}

}  // namespace
}  // namespace piper::test
