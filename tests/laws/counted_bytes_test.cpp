// Bytes that a run moves and keeps, counted in the transport, beside the formulas of ZeRO
// (docs/layouts.md section 3) and beside the plan, `show memory` and `show comm`.

#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "passes/plan/memory_table.h"
#include "passes/plan/sharded_table.h"
#include "passes/plan/traffic_table.h"
#include "runtime/dtypes.h"
#include "runtime/transport/local.h"
#include "tests/laws/law_runs.h"
#include "tests/support/sample_models.h"

namespace piper::test {
namespace {

/// Counts the bytes that members of rings send, by operation.
class CountingTransport final : public runtime::Transport {
 public:
  std::uint32_t connect(const PiperCommunicator& communicator) override {
    return inner_->connect(communicator);
  }
  void disconnect() override { inner_->disconnect(); }
  void start(runtime::Operation& operation) override {
    const double members = operation.communicator->num_members;
    double bytes = 0;
    for (std::uint32_t i = 0; i < operation.action->num_parts; ++i) {
      const PiperMessagePart& part = operation.parts[i];
      if ((part.flags & PIPER_ZERO_FILL) != 0) continue;
      const double size = static_cast<double>(part.elements * runtime::element_bytes(part.dtype));
      switch (operation.action->op) {
        case PIPER_ALL_REDUCE: bytes += 2 * size * (members - 1) / members; break;
        case PIPER_REDUCE_SCATTER:
        case PIPER_ALL_GATHER: bytes += size * (members - 1) / members; break;
        case PIPER_ALL_GATHER_V:
          bytes += part.in == PIPER_NO_OFFSET ? 0 : size * (members - 1);
          break;
        case PIPER_RECV: break;
        default: bytes += size;
      }
    }
    sent[operation.action->op] += bytes;
    inner_->start(operation);
  }
  void poll(runtime::Operation& operation) override { inner_->poll(operation); }
  bool moving(const runtime::Operation& operation) const override {
    return inner_->moving(operation);
  }
  bool moves_only_on_start() const override { return inner_->moves_only_on_start(); }

  std::array<double, PIPER_COMM_OPS> sent{};  // by PiperCommOp

 private:
  std::unique_ptr<runtime::Transport> inner_ = runtime::make_local_transport();
};

struct Counted {
  LawRun run;
  std::array<double, PIPER_COMM_OPS> sent{};  // in one step
};

Counted counted(LawProgram& program) {
  const auto transport = std::make_shared<CountingTransport>();
  Counted counted{program.run({.transport = transport}), transport->sent};
  for (double& bytes : counted.sent) bytes /= kLawSteps;
  return counted;
}

/// Rounding of shares in the middle of a sum aside.
void expect_near(double a, double b) { EXPECT_NEAR(a, b, 1e-6 * b + 1); }

/// Per parameter: of it, of its gradient, of the optimizer's state. In bf16 that is 2 + 4 + 12:
/// both moments and the master are f32.
struct BytesOfOne {
  tensor::DType dtype;
  double parameter, gradient, slots;
};

class CountedBytes : public testing::TestWithParam<BytesOfOne> {};

TEST_P(CountedBytes, AreThoseOfFormulasAndPlan) {
  constexpr std::uint32_t kStages = 2, kMicrobatches = 2;
  for (const std::uint32_t k : {2u, 3u, 4u}) {
    for (std::uint32_t zero = 0; zero <= 3; ++zero) {
      SCOPED_TRACE("k " + std::to_string(k) + " zero " + std::to_string(zero));
      Context context;
      StrategyBuilder build(context, {{"pp", kStages}, {"dp", k}});
      build.line(kStages, kStages)
          .one_f_one_b(kStages, kMicrobatches)
          .replicate({"dp"}, 1 << 20, {}, zero);
      build.edit().settings.optimizer->kind = directive::Optimizer::Kind::adamw;
      build.edit().settings.dtype = GetParam().dtype;
      tensor::Graph model = small_gpt(context, {.layers = 2,
                                                .batch = std::int64_t{kMicrobatches} * k,
                                                .seq = 3,
                                                .dim = 96,
                                                .dtype = GetParam().dtype});
      double psi = 0;  // parameters of all stages
      for (const tensor::Param& param : model.params)
        psi += static_cast<double>(model.type(param.value).elements());
      LawProgram program(context, std::move(model), build.strategy());
      ASSERT_TRUE(program);
      const Counted count = counted(program);

      // State kept between steps, with parts of it sharded.
      const double parts = k, parameters = GetParam().parameter / (zero == 3 ? parts : 1),
                   gradients = GetParam().gradient / (zero >= 2 ? parts : 1);
      const double slots = GetParam().slots / (zero >= 1 ? parts : 1);
      const double state =
          std::accumulate(count.run.state_bytes.begin(), count.run.state_bytes.end(), 0.0) / k;
      EXPECT_GE(state, psi * (parameters + gradients + slots));
      EXPECT_LE(state, 1.15 * psi * (parameters + gradients + slots));
      std::int64_t planned_rest = 0;
      for (const passes::MemoryRow& row : passes::memory_table(program.dag()))
        planned_rest += row.sum_of_rest();
      expect_near(state, static_cast<double>(planned_rest));

      // Traffic: a ring sends Psi (k - 1) for a reduce-scatter or an all-gather, twice that for an
      // all-reduce.
      const double ring = psi * GetParam().gradient * (k - 1),
                   gather_ring = psi * GetParam().parameter * (k - 1);
      const double sums = count.sent[PIPER_ALL_REDUCE] + count.sent[PIPER_REDUCE_SCATTER],
                   gathers = count.sent[PIPER_ALL_GATHER];
      const double wanted_sums = zero == 0 ? 2 * ring : zero == 1 ? ring : kMicrobatches * ring;
      EXPECT_GE(sums, wanted_sums);
      EXPECT_LE(sums, 1.15 * wanted_sums + 1024);  // losses are summed, too
      // If all parameters of a stage are separate units, forward and backward of two microbatches
      // read them, and neighbours in the order share a gather.
      const double most_gathers = zero == 0   ? 0
                                  : zero == 3 ? 2 * kMicrobatches * gather_ring
                                              : gather_ring,
                   least_gathers = zero == 3 ? gather_ring : most_gathers;
      EXPECT_GE(gathers, least_gathers);
      EXPECT_LE(gathers, 1.15 * most_gathers);

      // The plan's tables contain the counted numbers.
      double planned = 0;
      for (const passes::TrafficRow& row : passes::traffic_table(program.dag()))
        planned += static_cast<double>(row.bytes);
      expect_near(std::accumulate(count.sent.begin(), count.sent.end(), 0.0), planned);
      double planned_gathers = 0, formula_gathers = 0;
      for (const passes::ShardedTraffic& share : passes::sharded_traffic(program.dag())) {
        planned_gathers += static_cast<double>(share.planned[1]);
        formula_gathers += static_cast<double>(share.formula[1]);
      }
      expect_near(gathers, planned_gathers);
      EXPECT_LE(formula_gathers, planned_gathers);
      EXPECT_GE(1.15 * formula_gathers, planned_gathers);
      std::array<std::int64_t, 3> formula{}, rest{};
      for (const passes::ShardedState& share : passes::sharded_state(program.dag())) {
        for (std::size_t part = 0; part < 3; ++part) {
          formula[part] += share.formula[part];
          rest[part] += share.planned[part];
        }
      }
      if (zero == 0) continue;  // the tables contain only sharded state
      const std::array<double, 3> kept = {parameters, gradients, slots};
      for (std::size_t part = 0; part < 3; ++part) {
        expect_near(static_cast<double>(formula[part]), psi * kept[part]);
        EXPECT_LE(formula[part], rest[part]);
      }
    }
  }
}

TEST(CountedBytes, CopiesToTheHostAreThoseOfThePlan) {
  Context context;
  StrategyBuilder build(context, {{"pp", 2}});
  build.line(2, 4).one_f_one_b(2, 4);
  build.add(directive::Offload{{build.selector({{"stage", 0}})},
                               1,
                               directive::Offload::What::activations,
                               build.next_line()});
  build.add(directive::Offload{
      {build.selector({{"stage", 1}})}, 1, directive::Offload::What::optimizer, build.next_line()});
  build.edit().settings.optimizer->kind = directive::Optimizer::Kind::adamw;
  LawProgram program(context, mlp_chain(context, {.layers = 4, .batch = 8, .dim = 6, .hidden = 8}),
                     build.strategy());
  ASSERT_TRUE(program);
  const Counted count = counted(program);
  double out = 0, back = 0;
  for (const passes::TrafficRow& row : passes::traffic_table(program.dag())) {
    if (leaves_device(row.kind)) out += static_cast<double>(row.bytes);
    if (returns_to_device(row.kind)) back += static_cast<double>(row.bytes);
  }
  EXPECT_GT(out, 0);
  expect_near(count.sent[PIPER_OFFLOAD], out);
  expect_near(count.sent[PIPER_FETCH], back);
}

INSTANTIATE_TEST_SUITE_P(DTypes, CountedBytes,
                         testing::Values(BytesOfOne{tensor::DType::f64, 8, 8, 16},
                                         BytesOfOne{tensor::DType::f32, 4, 4, 8},
                                         BytesOfOne{tensor::DType::bf16, 2, 4, 12}),
                         [](const auto& test) {
                           return std::string(tensor::dtype_name(test.param.dtype));
                         });

}  // namespace
}  // namespace piper::test
