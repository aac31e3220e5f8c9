// Sharded state: bytes held and sent against the formulas of ZeRO 1 to 3 (Rajbhandari et al. 2020,
// arXiv 1910.02054; docs/layouts.md section 3).
#include <gtest/gtest.h>

#include <algorithm>

#include "passes/plan/traffic_table.h"
#include "tests/support/compile.h"
#include "tests/support/sample_models.h"

namespace piper::test {
namespace {

struct Bytes {
  // of one device of the first stage, at rest
  std::int64_t parameters = 0, gradients = 0, optimizer = 0;
  std::int64_t sums = 0, gathers = 0;  // sent for buckets by all devices
  // The most that lives of them at once there, and.
  std::int64_t unreduced = 0, gathered = 0;
  std::int64_t largest = 0;  // the largest of the whole buckets
};

/// The most bytes of buffers of a class that live at one action.
std::int64_t most_of(const dag::Role& role, dag::BufferClass cls) {
  std::vector<std::int64_t> change(role.actions.size() + 1, 0);
  for (std::uint32_t b = 0; b < role.buffers.size(); ++b) {
    if (role.buffers[b].cls != cls) continue;
    std::size_t first = role.actions.size(), last = 0;
    for (std::size_t a = 0; a < role.actions.size(); ++a) {
      for (std::uint32_t o = role.actions[a].first_operand;
           o < role.actions[a].first_operand + role.actions[a].num_operands; ++o) {
        if (role.operands[o].buffer.value() != b) continue;
        first = std::min(first, a);
        last = a;
      }
    }
    change[first] += role.buffers[b].bytes;
    change[last + 1] -= role.buffers[b].bytes;
  }
  std::int64_t now = 0, most = 0;
  for (const std::int64_t each : change) most = std::max(most, now += each);
  return most;
}

/// Two stages of k replicas under 1F1B with two microbatches, adamw, in small buckets.
Bytes planned_bytes(std::uint32_t k, std::uint32_t zero,
                    std::optional<std::uint32_t> prefetch = {}) {
  Context context;
  DiagnosticSink sink(context.locations);
  StrategyBuilder build(context, {{"pp", 2}, {"dp", k}});
  build.line(2, 2).one_f_one_b(2, 2).replicate({"dp"}, 4096, {}, zero);
  for (directive::Directive& each : build.edit().directives) {
    if (auto* replicate = std::get_if<directive::Replicate>(&each)) replicate->prefetch = prefetch;
  }
  build.edit().settings.optimizer->kind = directive::Optimizer::Kind::adamw;
  tensor::Graph model =
      small_gpt(context, {.layers = 2, .batch = std::int64_t{2} * k, .seq = 3, .dim = 8});
  passes::Options checked;
  checked.verify_each = true;
  const std::optional<dag::Dag> dag = test::compile(model, build.strategy(), sink, checked);
  EXPECT_TRUE(dag) << render_text(sink.sorted(), context.locations.files());
  Bytes bytes;
  if (!dag) return bytes;
  const dag::Role& role = dag->plan->roles.front();
  for (const dag::Buffer& buffer : role.buffers) {
    if (buffer.cls == dag::BufferClass::parameters) bytes.parameters += buffer.bytes;
    if (buffer.cls == dag::BufferClass::gradients) bytes.gradients += buffer.bytes;
    if (buffer.cls == dag::BufferClass::optimizer) bytes.optimizer += buffer.bytes;
    if (buffer.cls == dag::BufferClass::unreduced || buffer.cls == dag::BufferClass::gathered)
      bytes.largest = std::max(bytes.largest, buffer.bytes);
  }
  bytes.unreduced = most_of(role, dag::BufferClass::unreduced);
  bytes.gathered = most_of(role, dag::BufferClass::gathered);
  for (const passes::TrafficRow& row : passes::traffic_table(*dag)) {
    if (row.kind == dag::NodeKind::all_gather) bytes.gathers += row.bytes;
    if (row.what == "gradients") bytes.sums += row.bytes;
  }
  return bytes;
}

TEST(Shares, BytesAreThoseOfTheFormulas) {
  for (const std::uint32_t k : {2u, 3u, 4u, 8u}) {
    SCOPED_TRACE(k);
    const Bytes whole = planned_bytes(k, 0), shares = planned_bytes(k, 1);
    // Parameters and gradients stay whole, except for padding; a device keeps one part in k of the
    // two moments.
    EXPECT_GE(shares.parameters, whole.parameters);
    EXPECT_LE(shares.parameters, whole.parameters + 64 * std::int64_t{k} * 64);
    EXPECT_EQ(shares.gradients, shares.parameters);
    EXPECT_EQ(whole.optimizer, 2 * whole.parameters);
    EXPECT_EQ(shares.optimizer * k, 2 * shares.parameters);
    // A reduce-scatter and a gather send as much as the all-reduce that they replace.
    EXPECT_EQ(whole.gathers, 0);
    EXPECT_EQ(shares.gathers, shares.sums);
    EXPECT_GE(shares.sums + shares.gathers, whole.sums);
    EXPECT_LE(static_cast<double>(shares.sums + shares.gathers),
              1.5 * static_cast<double>(whole.sums));
  }
}

TEST(Shares, GradientsAndParametersAreShardedToo) {
  constexpr std::int64_t kMicrobatches = 2;
  for (const std::uint32_t k : {2u, 3u, 4u, 8u}) {
    SCOPED_TRACE(k);
    const Bytes gradients = planned_bytes(k, 2), parameters = planned_bytes(k, 3);
    // Psi (4 + 4/k + 8/k), and Psi (4/k + 4/k + 8/k), at rest.
    EXPECT_EQ(gradients.gradients * k, gradients.parameters);
    EXPECT_EQ(gradients.optimizer, 2 * gradients.gradients);
    EXPECT_EQ(parameters.parameters, gradients.gradients);
    EXPECT_EQ(parameters.gradients, parameters.parameters);
    EXPECT_EQ(parameters.optimizer, 2 * parameters.parameters);
    // A reduce-scatter of all per microbatch, one gather of the updated parameters; a gather per
    // run of work that reads.
    EXPECT_EQ(gradients.sums, kMicrobatches * gradients.gathers);
    EXPECT_EQ(parameters.sums, gradients.sums);
    EXPECT_GT(parameters.gathers, gradients.gathers);
    EXPECT_LE(parameters.gathers, 2 * kMicrobatches * gradients.gathers);
    // Whole gradients and parameters come and go unit by unit.
    EXPECT_GT(gradients.unreduced, 0);
    EXPECT_LT(gradients.unreduced, gradients.parameters);
    EXPECT_GT(parameters.gathered, 0);
    EXPECT_LT(parameters.gathered, gradients.parameters);
  }
}

TEST(Shares, GathersAheadCostMemoryAndNoTraffic) {
  const Bytes none = planned_bytes(2, 3, 0), one = planned_bytes(2, 3, 1),
              all = planned_bytes(2, 3, 100);
  EXPECT_GT(one.gathered, none.gathered);
  EXPECT_LE(one.gathers, none.gathers);
  // With so large a prefetch all gathers stand at the start of the step, and each gathered
  // parameter serves every use.
  EXPECT_GE(all.gathered, one.gathered);
  EXPECT_LT(all.gathers, none.gathers);
}

/// With m microbatches each reduction has only its own inputs: the DAG does not keep those of the
/// whole step m times.
TEST(Shares, EdgesGrowAsMicrobatches) {
  for (const std::uint32_t zero : {1u, 2u, 3u}) {
    Context context;
    DiagnosticSink sink(context.locations);
    StrategyBuilder build(context, {{"pp", 2}, {"dp", 2}});
    build.line(2, 48).one_f_one_b(2, 48).replicate({"dp"}, 4096, {}, zero);
    tensor::Graph model = mlp_chain(context, {.layers = 2, .batch = 96, .dim = 2, .hidden = 3});
    const std::optional<dag::Dag> dag = test::compile(model, build.strategy(), sink, {});
    ASSERT_TRUE(dag) << render_text(sink.sorted(), context.locations.files());
    std::size_t used = 0;
    for (const dag::Node& node : dag->nodes) used += node.num_inputs;
    EXPECT_LE(dag->edges.size(), 2 * used) << zero;
  }
}

}  // namespace
}  // namespace piper::test
