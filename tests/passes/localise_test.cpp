// Bodies: the results of chunks, segment by segment and microbatch by microbatch, equal those of
// the whole graph.

#include "passes/build/localise.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "ir/tensor/graph_text.h"
#include "ir/tensor/op_rules.h"
#include "passes/build/differentiate.h"
#include "tests/support/golden.h"
#include "tests/support/tensor_models.h"

namespace piper::test {
namespace {

using namespace tensor;
using dag::Body;
using dag::BodyPort;
using dag::PortKind;

struct Segment {
  std::uint32_t chunk = 0;
  std::vector<NodeId> nodes;
};

/// Runs of the forward nodes are chunks; backward nodes belong to their forward op's.
std::vector<std::uint32_t> chunks_by_cuts(const Graph& graph, const std::set<std::size_t>& cuts) {
  std::vector<std::uint32_t> chunk_of;
  std::uint32_t chunk = 0;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    if (node.pass == Pass::F && cuts.count(n) != 0) ++chunk;
    chunk_of.push_back(node.pass == Pass::F ? chunk : chunk_of[node.origin.index()]);
  }
  return chunk_of;
}

/// The pieces in an order that runs: F chunk by chunk, then the backward passes from the last chunk
/// to the first.
std::vector<Segment> segments(const Graph& graph, const std::vector<std::uint32_t>& chunk_of,
                              bool split_backward) {
  const std::uint32_t chunks = *std::max_element(chunk_of.begin(), chunk_of.end()) + 1;
  std::map<std::pair<int, int>, Segment> by_order;  // (phase, position)
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Pass pass = graph.nodes()[n].pass;
    const int chunk = static_cast<int>(chunk_of[n]), last = static_cast<int>(chunks);
    const std::pair<int, int> key =
        pass == Pass::F ? std::pair(0, chunk)
                        : std::pair(pass == Pass::BW && split_backward ? 2 : 1, last - chunk);
    by_order[key].chunk = chunk_of[n];
    by_order[key].nodes.push_back(NodeId::at(n));
  }
  std::vector<Segment> list;
  for (auto& [key, segment] : by_order) list.push_back(std::move(segment));
  return list;
}

class LocaliseModels : public ::testing::Test {
 protected:
  Graph differentiated(Graph graph) {
    DiagnosticSink sink(context.locations);
    EXPECT_TRUE(passes::differentiate(graph, sink));
    return graph;
  }
  Context context;
  ModelSize size;
};

TEST_F(LocaliseModels, SegmentsComputeWhatTheModelDoes) {
  size.layers = 2;
  std::vector<Graph> graphs;
  graphs.push_back(differentiated(gpt_model(context, size)));
  graphs.push_back(differentiated(mlp_model(context, size)));
  graphs.push_back(differentiated(two_tower_model(context, size)));
  for_each_case(24, [&](Random& random) {
    const Graph& graph = graphs[random.below(graphs.size())];
    const std::vector<Array> arrays = random_leaves(graph, size, random);
    Evaluator whole(graph);
    for (std::size_t i = 0; i < arrays.size(); ++i) whole.set(leaves(graph)[i], arrays[i]);
    whole.run();

    std::set<std::size_t> cuts;
    for (std::uint64_t i = random.below(6); i > 0; --i)
      cuts.insert(1 + random.below(graph.nodes().size() / 2));
    const auto chunk_of = chunks_by_cuts(graph, cuts);
    const std::int64_t divide = std::int64_t{1} << random.below(3);
    const bool split_backward = random.chance(0.5);
    SCOPED_TRACE(graph.name + " in " + std::to_string(cuts.size() + 1) + " chunks, " +
                 std::to_string(divide) + " microbatches");
    passes::BodyExtractor extractor(graph, chunk_of);
    std::vector<Body> bodies;
    std::size_t executed = 0, extra = 0;
    for (const Segment& segment : segments(graph, chunk_of, split_backward)) {
      passes::Extraction made = extractor.extract(segment.nodes, divide);
      ASSERT_EQ(made.error, "");
      DiagnosticSink sink(context.locations);
      ASSERT_TRUE(verify(made.body.graph, sink)) << print(made.body.graph);
      executed += segment.nodes.size();
      extra += made.body.graph.nodes().size() - segment.nodes.size();
      std::set<ValueId> outputs;
      for (const BodyPort& port : made.body.outputs) {
        EXPECT_TRUE(outputs.insert(port.value).second) << "two outputs are one value";
        const NodeId def = made.body.graph.value(port.value).def;
        ASSERT_TRUE(def.valid());
        EXPECT_NE(info(made.body.graph.node(def).op).code_class, CodeClass::view);
      }
      bodies.push_back(std::move(made.body));
    }
    // Splitting the backward pass repeats nothing: bodies hold the graph's ops, sums of a
    // parameter's contributions and copies.
    EXPECT_EQ(executed, graph.nodes().size());
    EXPECT_LE(extra, graph.grads.size());

    double loss = 0;
    std::vector<std::vector<double>> gradients(graph.params.size());
    for (std::int64_t mb = 0; mb < divide; ++mb) {
      std::map<ValueId, Array> known;
      for (std::size_t i = 0; i < arrays.size(); ++i) {
        Array part = arrays[i];
        if (!part.type.dims.empty() && part.type.dims[0].sampled) {
          const std::int64_t extent = part.type.dims[0].extent / divide;
          part = slice(part, part.type.dims[0].name, mb * extent, extent);
        }
        known[leaves(graph)[i]] = part;
      }
      for (const Body& body : bodies) {
        Evaluator run(body.graph);
        for (const BodyPort& port : body.inputs) {
          ASSERT_TRUE(known.count(port.global_value)) << "an input that no earlier piece gives";
          ASSERT_EQ(known[port.global_value].type, body.graph.type(port.value));
          run.set(port.value, known[port.global_value]);
        }
        run.run();
        for (const BodyPort& port : body.outputs) {
          const Array& made = run.get(port.value);
          if (port.kind == PortKind::loss_sum) {
            loss += made.data[0] / static_cast<double>(graph.losses[port.loss.index()].count);
          } else if (port.kind == PortKind::grad) {
            std::vector<double>& sum = gradients[port.param.index()];
            sum.resize(made.data.size());
            for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += made.data[e];
          } else {
            known[port.global_value] = made;
          }
        }
      }
    }
    EXPECT_NEAR(loss, whole.total_loss(), 1e-12);
    for (std::size_t p = 0; p < graph.params.size(); ++p) {
      const Array expected = whole.gradient(ParamId::at(p));
      ASSERT_EQ(gradients[p].size(), expected.data.size());
      for (std::size_t e = 0; e < expected.data.size(); ++e)
        ASSERT_NEAR(gradients[p][e], expected.data[e], 1e-12);
    }
  });
}

TEST_F(LocaliseModels, PortsSayWhatTheyCarry) {
  const Graph graph = differentiated(mlp_model(context, size));
  std::set<std::size_t> cuts;
  for (std::size_t n = 1; n < graph.nodes().size() && graph.nodes()[n].pass == Pass::F; ++n) {
    if (graph.nodes()[n].region != graph.nodes()[n - 1].region) cuts.insert(n);
  }
  const auto chunk_of = chunks_by_cuts(graph, cuts);
  passes::BodyExtractor extractor(graph, chunk_of);
  std::string text;
  for (const Segment& segment : segments(graph, chunk_of, true)) {
    const passes::Extraction made = extractor.extract(segment.nodes, 2);
    ASSERT_EQ(made.error, "");
    const auto print_ports = [&](const char* word, const std::vector<BodyPort>& ports) {
      for (const BodyPort& port : ports)
        text += std::string("  ") + word + " " + std::string(port_kind_name(port.kind)) + " " +
                value_text(made.body.graph, port.value) + " for " +
                value_text(graph, port.global_value) + "\n";
    };
    text += "chunk " + std::to_string(segment.chunk) + " " +
            std::string(pass_name(graph.node(segment.nodes[0]).pass)) + "\n";
    print_ports("in", made.body.inputs);
    llvm::raw_string_ostream os(text);
    LocationText locations(graph.context().locations);
    print_lines(made.body.graph, os, locations, {.indent = 4});
    os.flush();
    print_ports("out", made.body.outputs);
  }
  expect_golden("tests/passes/testdata/localise/mlp.out", text);
}

TEST_F(LocaliseModels, EqualBlocksHaveEqualBodies) {
  size.layers = 3;
  const Graph graph = differentiated(gpt_model(context, size));
  const Symbol block = context.symbol("block");
  std::vector<std::uint32_t> chunk_of;
  std::map<std::pair<int, Pass>, std::vector<NodeId>> nodes;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    const auto coordinate = graph.regions.coordinate(node.region, block);
    const std::uint32_t head =
        node.region.valid() && graph.regions.coordinate(node.region, context.symbol("head")) ? 5
                                                                                             : 4;
    chunk_of.push_back(coordinate ? *coordinate : head);
    nodes[{static_cast<int>(chunk_of.back()), node.pass}].push_back(NodeId::at(n));
  }
  passes::BodyExtractor extractor(graph, chunk_of);
  for (const Pass pass : {Pass::F, Pass::BI, Pass::BW}) {
    const Body zero = extractor.extract(nodes.at({0, pass}), 2).body,
               one = extractor.extract(nodes.at({1, pass}), 2).body;
    const Body two = extractor.extract(nodes.at({2, pass}), 2).body,
               halves = extractor.extract(nodes.at({1, pass}), 4).body;
    EXPECT_TRUE(passes::same_body(zero, one)) << print(zero.graph) << print(one.graph);
    // The last block's result has one reader, the others' two: their adjoint is a sum, made by BI.
    EXPECT_EQ(passes::same_body(one, two), pass != Pass::BI);
    EXPECT_EQ(passes::hash_body(zero), passes::hash_body(one));
    EXPECT_FALSE(passes::same_body(one, halves));
    EXPECT_FALSE(passes::same_body(one, extractor.extract(nodes.at({5, pass}), 2).body));
    for (const BodyPort& port : one.inputs)
      EXPECT_EQ(port.param.valid(), port.kind == PortKind::param);
  }
}

TEST_F(LocaliseModels, AnUnevenDivisionIsAnErrorWithItsDimension) {
  const Graph graph = differentiated(mlp_model(context, size));
  const auto chunk_of = chunks_by_cuts(graph, {});
  passes::BodyExtractor extractor(graph, chunk_of);
  const passes::Extraction made = extractor.extract(segments(graph, chunk_of, false)[0].nodes, 3);
  EXPECT_EQ(made.error, "dimension `batch` of 4 samples does not divide into 3 equal parts");
}

}  // namespace
}  // namespace piper::test
