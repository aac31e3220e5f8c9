// Optimizer state in shares: bytes held and sent against the formulas of ZeRO 1 (Rajbhandari et al. 2020, arXiv 1910.02054).
#include <gtest/gtest.h>

#include "passes/pipeline.h"
#include "passes/plan/traffic_table.h"
#include "tests/support/sample_models.h"

namespace piper::test {
namespace {

struct Bytes {
  std::int64_t parameters = 0, gradients = 0, optimizer = 0;  // of one device of the first stage
  std::int64_t sums = 0, gathers = 0;                         // sent for buckets by all devices
};

/// Two stages of k replicas, adamw, in small buckets.
Bytes planned_bytes(std::uint32_t k, std::uint32_t zero) {
  Context context;
  DiagnosticSink sink(context.locations);
  StrategyBuilder build(context, {{"pp", 2}, {"dp", k}});
  build.line(2, 2).one_f_one_b(2, 2).replicate({"dp"}, 4096, {}, zero);
  build.edit().settings.optimizer->kind = directive::Optimizer::Kind::adamw;
  tensor::Graph model = small_gpt(context, {.layers = 2, .batch = std::int64_t{2} * k, .seq = 3, .dim = 8});
  const std::optional<dag::Dag> dag = passes::compile(model, build.strategy(), sink, {});
  EXPECT_TRUE(dag) << render_text(sink.sorted(), context.locations.files());
  Bytes bytes;
  if (!dag) return bytes;
  for (const dag::Buffer& buffer : dag->plan->roles.front().buffers) {
    if (buffer.cls == dag::BufferClass::parameters) bytes.parameters += buffer.bytes;
    if (buffer.cls == dag::BufferClass::gradients) bytes.gradients += buffer.bytes;
    if (buffer.cls == dag::BufferClass::optimizer) bytes.optimizer += buffer.bytes;
  }
  for (const passes::TrafficRow& row : passes::traffic_table(*dag)) {
    if (row.kind == dag::NodeKind::gather) bytes.gathers += row.bytes;
    if (row.what == "gradients") bytes.sums += row.bytes;
  }
  return bytes;
}

TEST(Shares, BytesAreThoseOfTheFormulas) {
  for (const std::uint32_t k : {2u, 3u, 4u, 8u}) {
    SCOPED_TRACE(k);
    const Bytes whole = planned_bytes(k, 0), shares = planned_bytes(k, 1);
    // Parameters and gradients stay whole, but for padding; of the two moments a device keeps one part of k.
    EXPECT_GE(shares.parameters, whole.parameters);
    EXPECT_LE(shares.parameters, whole.parameters + 64 * std::int64_t{k} * 64);
    EXPECT_EQ(shares.gradients, shares.parameters);
    EXPECT_EQ(whole.optimizer, 2 * whole.parameters);
    EXPECT_EQ(shares.optimizer * k, 2 * shares.parameters);
    // A reduce-scatter and a gather send as much as the all-reduce that they replace.
    EXPECT_EQ(whole.gathers, 0);
    EXPECT_EQ(shares.gathers, shares.sums);
    EXPECT_GE(shares.sums + shares.gathers, whole.sums);
    EXPECT_LE(static_cast<double>(shares.sums + shares.gathers), 1.5 * static_cast<double>(whole.sums));
  }
}

}  // namespace
}  // namespace piper::test
