// Adjoints of a value that many pieces read: one sum of them leaves a device set.
#include "passes/build/place_sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "passes/build/differentiate.h"
#include "tests/support/compile.h"
#include "tests/support/random_cases.h"
#include "tests/support/random_models.h"
#include "tests/support/random_programs.h"

namespace piper::test {
namespace {

using tensor::Graph;

// ---- traffic of whole programs

/// An encoder as stage[0], and a stage for every two layers that read its result; only values of
/// the encoder have the dimension `from`.
const std::string kDecoders = R"(
model net(readers: int, wide: int) {
    input source: tensor[batch, from, wide], x: tensor[batch, wide], y: tensor[batch, wide]
    weight first[wide, out: wide] = normal(0.3)
    var memory = source
    region stage { memory = memory + rename(tanh(memory @ first), out: wide) }
    var h = x
    for _l in 0..readers {
        region stage { h = reads(reads(h, memory), memory) }
    }
    loss square(h - y)
}
model reads(h: tensor[batch, wide], memory: tensor[batch, from, wide]) -> tensor[batch, wide] {
    weight w[wide, out: wide] = normal(0.3)
    return h + tanh(mean(memory * rename(tanh(memory @ w), out: wide), along: from))
}
)";

struct Ports {
  std::size_t forward = 0, backward = 0;
  friend bool operator==(const Ports&, const Ports&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Ports& ports) {
    return out << ports.forward << " forward, " << ports.backward << " backward";
  }
};

/// How many values with a dimension `from` are sent.
Ports sent(const dag::Dag& dag) {
  Ports ports;
  for (const dag::Node& node : dag.nodes) {
    if (node.kind != dag::NodeKind::send) continue;
    for (const dag::Input& input : dag.inputs_of(node)) {
      const tensor::Type type = dag.output_type(input.source);
      const bool counts = std::any_of(
          type.dims.begin(), type.dims.end(),
          [&](const tensor::Dim& dim) { return dag.context->text(dim.name) == "from"; });
      if (counts) ++(node.pass == Pass::F ? ports.forward : ports.backward);
    }
  }
  return ports;
}

struct Placement {
  const char* name;
  std::uint32_t stages, devices;
  const char* device;  // of stage s
  const char* more = "";
};

constexpr std::uint32_t kMicrobatches = 3;

std::string program_of(const Placement& placement) {
  const std::string stages = std::to_string(placement.stages);
  return kDecoders + "mesh line(pp: " + std::to_string(placement.devices) +
         ", dp: 2)\ntrain t = net(readers: " + std::to_string(placement.stages - 1) +
         ", wide: 4) on line {\n    data:  synthetic(batch: 12, from: 3)\n" +
         "    optim: sgd(lr: 0.1)\n    steps: 1\n    dtype: f64\n    split batch into mb: " +
         std::to_string(kMicrobatches) + "\n    partition model into stage: " + stages +
         "\n    for s in 0.." + stages + " { place stage[s] on pp[" + placement.device +
         "] }\n    " + placement.more + "\n}\n";
}

std::set<std::uint32_t> devices_of_readers(const std::vector<std::uint32_t>& device) {
  std::set<std::uint32_t> readers(device.begin() + 1, device.end());
  readers.erase(device[0]);
  return readers;
}

TEST(PlaceSums, OneSumOfAValueLeavesADeviceSet) {
  const struct {
    Placement placement;
    std::vector<std::uint32_t> device;
  } cases[] = {
      {{"a line", 4, 4, "s"}, {0, 1, 2, 3}},
      {{"a line with replicas", 4, 4, "s", "replicate model over dp"}, {0, 1, 2, 3}},
      {{"a line with cut state", 4, 4, "s", "replicate model over dp with zero: 3"}, {0, 1, 2, 3}},
      {{"a line that runs forwards again", 4, 4, "s", "recompute model"}, {0, 1, 2, 3}},
      {{"backwards", 4, 4, "3 - s"}, {3, 2, 1, 0}},
      {{"interleaved", 8, 4, "s % 4"}, {0, 1, 2, 3, 0, 1, 2, 3}},
      {{"interleaved three times", 9, 3, "s % 3"}, {0, 1, 2, 0, 1, 2, 0, 1, 2}},
      {{"a V", 8, 4, "min(s, 7 - s)"}, {0, 1, 2, 3, 3, 2, 1, 0}},
      {{"two and two", 5, 3, "(s + 1) / 2"}, {0, 1, 1, 2, 2}},
      {{"one device", 3, 1, "0 * s"}, {0, 0, 0}},
  };
  for (const auto& [placement, device] : cases) {
    SCOPED_TRACE(placement.name);
    Context context;
    DiagnosticSink sink(context.locations);
    const RandomProgram program = read_program(context, program_of(placement));
    passes::Options options;
    options.verify_each = true;
    const std::optional<dag::Dag> dag = compile(program.model, program.strategy, sink, options);
    ASSERT_TRUE(dag) << render_text(sink.sorted(), context.locations.files());
    const std::size_t expected = kMicrobatches * devices_of_readers(device).size();
    EXPECT_EQ(sent(*dag), (Ports{expected, expected}));
  }
}

// ---- independent readers

/// Two branches read one value: neither backward needs the other, and an order may have them either
/// way.
TEST(PlaceSums, BranchesDoNotWaitForEachOther) {
  for (const char* order :
       {"B left[0] mb[0]; B right[0] mb[0]", "B right[0] mb[0]; B left[0] mb[0]"}) {
    SCOPED_TRACE(order);
    Context context;
    DiagnosticSink sink(context.locations);
    const RandomProgram program = read_program(context, std::string(R"(
model net(wide: int) {
    input x: tensor[batch, wide], y: tensor[batch, wide]
    let both = first(x)
    loss square(left(both) - y)
    loss square(right(both) - y)
}
model first(x: tensor[batch, wide]) -> tensor[batch, wide] {
    weight w[wide, out: wide] = normal(0.3)
    return rename(tanh(x @ w), out: wide)
}
model left(x: tensor[batch, wide]) -> tensor[batch, wide] {
    weight w[wide, out: wide] = normal(0.3)
    return rename(tanh(x @ w), out: wide)
}
model right(x: tensor[batch, wide]) -> tensor[batch, wide] {
    weight w[wide, out: wide] = normal(0.3)
    return rename(tanh(x @ w), out: wide)
}
mesh line(pp: 2)
train t = net(wide: 4) on line {
    data:  synthetic(batch: 4)
    optim: sgd(lr: 0.1)
    steps: 1
    split batch into mb: 1
    place first on pp[0]
    place left, right, model.rest on pp[1]
    order {
        rank r in pp[1] {
            F left[0] mb[0]; F right[0] mb[0]; F model.rest mb[0]
            B model.rest mb[0]; )") + order + "\n        }\n    }\n}\n");
    EXPECT_TRUE(compile(program.model, program.strategy, sink))
        << render_text(sink.sorted(), context.locations.files());
  }
}

// ---- any model, any devices

/// The terms of a sum, in any order.
std::multiset<tensor::ValueId> terms_of(const Graph& model, tensor::ValueId sum,
                                        tensor::NodeId origin) {
  const tensor::NodeId def = model.value(sum).def;
  const tensor::Node* const node = def.valid() ? &model.node(def) : nullptr;
  if (node == nullptr || node->op != tensor::Op::add || node->pass == Pass::F ||
      node->origin != origin)
    return {sum};
  std::multiset<tensor::ValueId> terms;
  for (const tensor::ValueId operand : model.operands(*node))
    terms.merge(terms_of(model, operand, origin));
  return terms;
}

TEST(PlaceSums, KeepTermsAndDirections) {
  std::size_t reordered_cases = 0, moved = 0;
  for_each_case(150, [&](Random& random) {
    Context context;
    DiagnosticSink sink(context.locations);
    const RandomProgram program = random_program(context, random, {.order = false});
    SCOPED_TRACE(program.source);
    Graph model = program.model;
    ASSERT_TRUE(passes::differentiate(model, sink));
    std::set<Symbol> names;
    for (const tensor::Node& node : model.nodes()) {
      for (RegionId r = node.region; r.valid(); r = model.regions.parent(r))
        names.insert(model.regions.name(r));
    }
    std::vector<Symbol> selected;
    for (const Symbol name : names) {
      if (random.chance(0.8)) selected.push_back(name);
    }
    passes::Segments segments = passes::cut_segments(model, selected);
    const std::vector<std::uint32_t> before = segments.segment_of;
    std::vector<passes::SegmentDevices> devices(segments.segments.size());
    const std::uint32_t several = static_cast<std::uint32_t>(random.between(1, 4));
    for (passes::SegmentDevices& each : devices)
      each.number = static_cast<std::uint32_t>(random.below(several));
    const std::optional<Graph> other = passes::place_sums(model, segments, devices);
    const Graph& made = other ? *other : model;
    reordered_cases += other ? 1 : 0;
    ASSERT_EQ(made.nodes().size(), model.nodes().size());
    ASSERT_EQ(made.values().size(), model.values().size());
    std::vector<std::size_t> listed(model.nodes().size(), 0);
    for (const passes::Segments::Segment& segment : segments.segments) {
      EXPECT_TRUE(std::is_sorted(segment.backward.begin(), segment.backward.end()));
      for (const tensor::NodeId node : segment.backward) {
        ++listed[node.index()];
        EXPECT_EQ(&segment - segments.segments.data(), segments.segment_of[node.index()]);
      }
    }
    std::vector<bool> read_by_sum(model.nodes().size(), false);
    for (std::size_t n = 0; n < made.nodes().size(); ++n) {
      const tensor::Node& node = made.nodes()[n];
      if (node.pass == Pass::F || before[n] == passes::Segments::kNone) continue;
      EXPECT_EQ(listed[n], 1u);
      moved += segments.segment_of[n] != before[n] ? 1 : 0;
      if (segments.segment_of[n] != before[n]) {
        EXPECT_EQ(node.op, tensor::Op::add);
        EXPECT_GT(segments.segment_of[n], before[n]);
      }
      for (const tensor::ValueId operand : made.operands(node)) {
        const tensor::NodeId def = made.value(operand).def;
        if (!def.valid()) continue;
        EXPECT_LT(def, tensor::NodeId::at(n));
        if (made.node(def).pass != Pass::F) {
          EXPECT_GE(segments.segment_of[def.index()], segments.segment_of[n]);
        }
        if (node.op == tensor::Op::add && made.node(def).origin == node.origin)
          read_by_sum[def.index()] = true;
      }
    }
    for (std::size_t n = 0; n < made.nodes().size(); ++n) {
      const tensor::Node& node = made.nodes()[n];
      if (node.pass == Pass::F || node.op != tensor::Op::add || read_by_sum[n]) continue;
      EXPECT_EQ(terms_of(made, made.result(node), node.origin),
                terms_of(model, model.result(model.nodes()[n]), node.origin));
    }
  });
  EXPECT_GT(reordered_cases, 0u);
  EXPECT_GT(moved, 0u);
}

}  // namespace
}  // namespace piper::test
