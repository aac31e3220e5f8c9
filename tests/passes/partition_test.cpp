// Partition, pieces and selection against brute force.
#include "passes/build/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "passes/build/differentiate.h"
#include "passes/build/place_sums.h"
#include "passes/build/segments.h"
#include "passes/selectors/select.h"
#include "tests/support/compile.h"
#include "tests/support/golden.h"
#include "tests/support/random_cases.h"
#include "tests/support/random_programs.h"
#include "tests/support/sample_models.h"

namespace piper::test {
namespace {

using tensor::Graph;

/// Every way to cut in order of the cuts: the first of the least maximum, and of the least sum of
/// squares among these, is the answer.
std::vector<std::size_t> cuts_by_trying(const std::vector<std::uint64_t>& costs, std::size_t n) {
  std::vector<std::size_t> best, cuts;
  using Figures = std::pair<std::uint64_t, std::uint64_t>;  // largest cost, sum of squares
  Figures least{~0ull, ~0ull};
  const auto with = [](const Figures& figures, std::uint64_t cost) {
    return Figures(std::max(figures.first, cost), figures.second + cost * cost);
  };
  const std::function<void(std::size_t, Figures)> go = [&](std::size_t from, Figures figures) {
    if (cuts.size() + 1 == n) {
      if (from >= costs.size()) return;
      figures = with(figures, std::accumulate(costs.begin() + static_cast<std::ptrdiff_t>(from),
                                              costs.end(), std::uint64_t{0}));
      if (figures < least) {
        least = figures;
        best = cuts;
      }
      return;
    }
    std::uint64_t run = 0;
    for (std::size_t to = from + 1; to < costs.size(); ++to) {
      run += costs[to - 1];
      cuts.push_back(to);
      go(to, with(figures, run));
      cuts.pop_back();
    }
  };
  go(0, {0, 0});
  return best;
}

TEST(Partition, CutsAreTheEarliestOfTheMostEven) {
  for_each_case(400, [](Random& random) {
    std::vector<std::uint64_t> costs;
    const std::size_t units = 1 + random.below(9);
    for (std::size_t u = 0; u < units; ++u)
      costs.push_back(random.below(random.chance(0.5) ? 3 : 50));
    const std::size_t n = 1 + random.below(units);
    EXPECT_EQ(passes::balanced_cuts(costs, n), cuts_by_trying(costs, n));
  });
}

/// One line per forward operation: region path and operation.
std::string regions_text(const Graph& model) {
  std::string text;
  for (const tensor::Node& node : model.nodes()) {
    if (node.pass != Pass::F) continue;
    text += model.regions.print(node.region, model.context().symbols) + "  " +
            std::string(tensor::info(node.op).name) + "\n";
  }
  return text;
}

std::string partitioned(const std::function<Graph(Context&)>& make,
                        const std::function<void(StrategyBuilder&)>& say) {
  Context context;
  Graph model = make(context);
  DiagnosticSink sink(context.locations);
  StrategyBuilder build(context, {{"pp", 2}});
  say(build);
  EXPECT_TRUE(passes::differentiate(model, sink));
  EXPECT_TRUE(passes::partition(model, build.strategy(), sink))
      << render_text(sink.sorted(), context.locations.files());
  for (const tensor::Node& node : model.nodes()) {
    if (!node.origin.valid()) continue;
    EXPECT_EQ(node.region, model.node(node.origin).region);
  }
  return regions_text(model);
}

TEST(Partition, UnitsAreRegionsWithTheLooseOperationsBefore) {
  const auto gpt = [](Context& context) { return small_gpt(context, {.layers = 2}); };
  expect_golden("tests/passes/testdata/partition/balanced.out",
                partitioned(gpt, [](StrategyBuilder& b) { b.partition("stage", 2); }));
  expect_golden("tests/passes/testdata/partition/sizes.out",
                partitioned(gpt, [](StrategyBuilder& b) { b.partition("stage", 2, {1, 3}); }));
  // Five parts of four units: the costliest gives way to its inside.
  expect_golden("tests/passes/testdata/partition/inside.out",
                partitioned(gpt, [](StrategyBuilder& b) { b.partition("stage", 6); }));
  expect_golden("tests/passes/testdata/partition/single_operations.out",
                partitioned([](Context& context) { return mlp_chain(context, {.layers = 1}); },
                            [](StrategyBuilder& b) { b.partition("stage", 7); }));
  expect_golden("tests/passes/testdata/partition/part_of_a_part.out",
                partitioned(gpt, [](StrategyBuilder& b) {
                  b.partition("half", 2, {}, {{"stage", 1}}).partition("stage", 2);
                }));
}

TEST(Partition, TakesTheRegionsThatTheModelMarks) {
  const auto mlp = [](Context& context) { return mlp_chain(context, {.layers = 3}); };
  const std::string model = partitioned(mlp, [](StrategyBuilder&) {});
  std::string expected = model;
  for (std::size_t at; (at = expected.find("mlp[0]  ")) != std::string::npos;)
    expected.insert(at + std::string_view("mlp[0]").size(), ".layer[2]");
  EXPECT_NE(expected, model);
  EXPECT_EQ(partitioned(mlp, [](StrategyBuilder& b) { b.partition("layer", 3); }), expected)
      << "what follows the last region goes with it";
  const auto with_rest = [](StrategyBuilder& b) {
    directive::Place place{{b.selector({{"mlp", 0}})}, b.devices({}), b.next_line()};
    directive::Coordinate rest = place.targets[0].coordinates[0];
    rest.all = rest.rest = true;
    place.targets[0].coordinates.push_back(rest);
    b.partition("layer", 3).add(place);
  };
  EXPECT_EQ(partitioned(mlp, with_rest), model) << "what a directive names stays outside";
}

TEST(Partition, OrderOfTheLinesDoesNotMatter) {
  const auto gpt = [](Context& context) { return small_gpt(context, {.layers = 3}); };
  EXPECT_EQ(partitioned(gpt,
                        [](StrategyBuilder& b) {
                          b.partition("half", 2, {}, {{"stage", 0}}).partition("stage", 3);
                        }),
            partitioned(gpt, [](StrategyBuilder& b) {
              b.partition("stage", 3).partition("half", 2, {}, {{"stage", 0}});
            }));
}

/// Segments with sums of adjoints as if every segment had its own devices: then additions keep
/// their order.
passes::Segments placed_segments(const Graph& model, std::span<const Symbol> selected) {
  passes::Segments segments = passes::cut_segments(model, selected);
  std::vector<passes::SegmentDevices> devices(segments.segments.size());
  for (std::size_t p = 0; p < devices.size(); ++p)
    devices[p].number = static_cast<std::uint32_t>(p);
  EXPECT_FALSE(passes::place_sums(model, segments, devices));
  return segments;
}

/// No more adjoints travel between pieces than values do, each once per piece that reads it.
testing::AssertionResult adjoints_leave_once(const Graph& model, const passes::Segments& segments) {
  std::set<std::pair<tensor::ValueId, std::uint32_t>> values, adjoints;
  for (std::size_t n = 0; n < model.nodes().size(); ++n) {
    const bool forward = model.nodes()[n].pass == Pass::F;
    for (const tensor::ValueId value : model.operands(model.nodes()[n])) {
      const tensor::NodeId def = model.value(value).def;
      if (!def.valid() || segments.segment_of[def.index()] == segments.segment_of[n]) continue;
      if (forward) values.insert({value, segments.segment_of[n]});
      if (!forward && model.node(def).pass != Pass::F)
        adjoints.insert({value, segments.segment_of[n]});
    }
  }
  if (adjoints.size() > values.size())
    return testing::AssertionFailure()
           << adjoints.size() << " adjoints travel, and " << values.size() << " values";
  return testing::AssertionSuccess();
}

/// A row of layers, each of which adds to its input: the adjoint of every layer's result has two
/// terms, one of them from the layer after the next.
TEST(Segments, AdjointsOfLayersLeaveTheLayerThatReadsThem) {
  Context context;
  DiagnosticSink sink(context.locations);
  Graph model = mlp_chain(context, {.layers = 4});
  ASSERT_TRUE(passes::differentiate(model, sink));
  const Symbol layer = context.symbol("layer");
  const passes::Segments segments = placed_segments(model, std::span(&layer, 1));
  ASSERT_GE(segments.segments.size(), 4u);
  EXPECT_TRUE(adjoints_leave_once(model, segments));
}

/// A region whose only inputs are integers has no adjoint to pass on: its BI is empty, by itself or
/// with its successor.
TEST(Segments, ASegmentFedByIntegersHasAnEmptyInputPass) {
  Context context;
  DiagnosticSink sink(context.locations);
  Graph model = small_gpt(context, {.layers = 2});
  ASSERT_TRUE(passes::differentiate(model, sink));
  const std::vector<Symbol> selected = {context.symbol("embed"), context.symbol("block")};
  const passes::Segments segments = placed_segments(model, selected);
  const passes::Segments::Segment& embed = segments.segments.front();
  ASSERT_TRUE(segments.regions.coordinate(embed.region, selected[0]));
  EXPECT_FALSE(embed.backward.empty());
  for (const tensor::NodeId node : embed.backward) EXPECT_EQ(model.node(node).pass, Pass::BW);
}

TEST(Segments, AreConvexCompleteAndNumberedInOrder) {
  for_each_case(60, [](Random& random) {
    Context context;
    DiagnosticSink sink(context.locations);
    Graph model =
        random.chance(0.5)
            ? small_gpt(context, {.layers = static_cast<std::uint32_t>(random.between(1, 4)),
                                  .tied = random.chance(0.5)})
            : two_towers(context, {.layers = static_cast<std::uint32_t>(random.between(1, 3))});
    ASSERT_TRUE(passes::differentiate(model, sink));
    std::vector<Symbol> selected;
    for (const std::string_view name : {"gpt", "block", "norm", "attention", "mlp", "embed", "head",
                                        "left", "right", "layer", "join"}) {
      if (random.chance(0.4)) selected.push_back(context.symbol(name));
    }
    const passes::Segments segments = placed_segments(model, selected);
    std::set<std::pair<RegionId, std::uint32_t>> seen;
    for (const passes::Segments::Segment& segment : segments.segments) {
      EXPECT_TRUE(seen.insert({segment.region, segment.number}).second);
      EXPECT_FALSE(segment.forward.empty());
    }
    for (std::size_t n = 0; n < model.nodes().size(); ++n) {
      const tensor::Node& node = model.nodes()[n];
      const std::uint32_t segment = segments.segment_of[n];
      ASSERT_NE(segment, passes::Segments::kNone);
      // The path of the piece is the operation's path, cut to the selected names.
      if (node.pass == Pass::F) {
        std::vector<std::pair<Symbol, std::uint32_t>> cut, kept;
        for (RegionId r = segments.segments[segment].region; r.valid();
             r = segments.regions.parent(r))
          cut.push_back({segments.regions.name(r), segments.regions.index(r)});
        for (RegionId r = node.region; r.valid(); r = model.regions.parent(r)) {
          if (std::find(selected.begin(), selected.end(), model.regions.name(r)) != selected.end())
            kept.push_back({model.regions.name(r), model.regions.index(r)});
        }
        EXPECT_EQ(cut, kept);
      }
      // Forward values go to the same or later pieces, backward values to the same or earlier ones,
      // so no piece waits for itself.
      for (const tensor::ValueId value : model.operands(node)) {
        const tensor::NodeId def = model.value(value).def;
        if (!def.valid() || (node.pass != Pass::F) != (model.node(def).pass != Pass::F)) continue;
        const std::uint32_t from = segments.segment_of[def.index()];
        EXPECT_TRUE(node.pass == Pass::F ? from <= segment : from >= segment);
      }
    }
    EXPECT_TRUE(adjoints_leave_once(model, segments));
    if (selected.empty()) {
      EXPECT_EQ(segments.segments.size(), 1u);
    }
  });
}

TEST(Selection, FindsWhatAScanFinds) {
  for_each_case(60, [](Random& random) {
    Context context;
    DiagnosticSink sink(context.locations);
    RandomProgram program = random_program(context, random, {.order = false});
    passes::Options options;
    options.stop_at = dag::Level::split;
    const std::optional<dag::Dag> dag =
        test::compile(program.model, program.strategy, sink, options);
    ASSERT_TRUE(dag);
    passes::Selection selection(*dag);
    for (int repeat = 0; repeat < 20; ++repeat) {
      directive::Selector selector;
      for (const std::string_view name : {"stage", "mb", "copy"}) {
        if (!random.chance(0.6)) continue;
        directive::Coordinate coordinate{context.symbol(name), random.chance(0.2), {}, {}};
        if (!coordinate.all) {
          for (std::uint64_t i = 0; i <= random.below(3); ++i)
            coordinate.indices.push_back(static_cast<std::uint32_t>(random.below(4)));
          std::sort(coordinate.indices.begin(), coordinate.indices.end());
          coordinate.indices.erase(
              std::unique(coordinate.indices.begin(), coordinate.indices.end()),
              coordinate.indices.end());
        }
        selector.coordinates.push_back(coordinate);
      }
      std::set<dag::NodeId> expected;
      bool out_of_range = false;
      for (const directive::Coordinate& c : selector.coordinates) {
        const bool is_dim =
            std::any_of(dag->dims.begin(), dag->dims.end(),
                        [&](const dag::SplitDim& dim) { return dim.name == c.name; });
        if (!is_dim && context.text(c.name) != "stage") out_of_range = true;
        for (const dag::SplitDim& dim : dag->dims) {
          for (const std::uint32_t index : c.indices)
            out_of_range = out_of_range || (dim.name == c.name && index >= dim.extent);
        }
      }
      for (std::size_t n = 0; n < dag->nodes.size() && !out_of_range; ++n) {
        const dag::Node& node = dag->nodes[n];
        if (!runs_body(node.kind)) continue;
        bool in = true;
        for (const directive::Coordinate& c : selector.coordinates) {
          std::optional<std::uint32_t> at =
              dag->regions.coordinate(dag->chunks[node.chunk.index()].region, c.name);
          for (std::size_t d = 0; d < dag->dims.size(); ++d) {
            if (dag->dims[d].name == c.name) at = static_cast<std::uint32_t>(node.instance.at[d]);
          }
          in = in && at &&
               (c.all || std::find(c.indices.begin(), c.indices.end(), *at) != c.indices.end());
        }
        if (in) expected.insert(dag::NodeId::at(n));
      }
      std::vector<dag::NodeId> found;
      EXPECT_EQ(selection.nodes(selector, sink, found), !expected.empty());
      EXPECT_EQ(std::set<dag::NodeId>(found.begin(), found.end()), expected);
      EXPECT_EQ(found.size(), expected.size());
    }
  });
}

TEST(Levels, ALargeProgramHasNodesInProportion) {
  const auto count_nodes = [](std::uint32_t ranks, std::uint32_t microbatches) -> std::size_t {
    Context context;
    DiagnosticSink sink(context.locations);
    Graph model =
        mlp_chain(context, {.layers = 2 * ranks, .batch = microbatches, .dim = 2, .hidden = 2});
    StrategyBuilder build(context, {{"pp", ranks}});
    build.partition("stage", 2 * ranks).split({{"mb", microbatches}});
    for (std::uint32_t s = 0; s < 2 * ranks; ++s)
      build.place({{"stage", s}}, {{"pp", std::min(s, 2 * ranks - 1 - s)}});
    passes::Options options;
    options.stop_at = dag::Level::communicating;
    const std::optional<dag::Dag> dag = test::compile(model, build.strategy(), sink, options);
    return dag ? dag->nodes.size() : 0;
  };
  // F and B, a message each way between neighbours (the two in the middle share a rank), loads at
  // both ends of the chain.
  const std::size_t small = count_nodes(16, 64), large = count_nodes(64, 256);
  EXPECT_GT(small, std::size_t{4} * 16 * 64);
  EXPECT_GT(large, 15 * small);
  EXPECT_LT(large, 17 * small);
}

}  // namespace
}  // namespace piper::test
