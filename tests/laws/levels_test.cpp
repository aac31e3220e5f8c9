// The text of a program at any level has all that later passes need: it continues to the same plan
// as the program itself. At every level devices hold values in the layouts that their readers need.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ir/dag/local_type.h"
#include "ir/dag/parse.h"
#include "ir/dag/print.h"
#include "ir/dag/value_layout.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "tests/support/compile.h"
#include "tests/support/random_programs.h"

namespace piper::test {
namespace {

/// The text read and taken to a plan, as text.
std::string plan_of(const std::string& text, Context& context, DiagnosticSink& sink) {
  std::vector<directive::Directive> directives;
  std::optional<dag::Dag> dag =
      dag::parse(context.locations.files().add("level.pir", text), context, sink, &directives);
  if (!dag) return "";
  directive::Strategy strategy{.mesh = dag->mesh,
                               .device_sets = dag->device_sets,
                               .directives = std::move(directives),
                               .settings = dag->settings};
  return passes::advance(*dag, std::move(strategy), sink, {}) ? dag::print(*dag) : "";
}

/// Loads of one input, microbatch and device set that differ in their layout alone.
constexpr const char* kTwoLayouts = R"(model m(width: int) {
    input x: tensor[batch, dim: 4], y: i64[batch]
    loss left(x, y, width)
    loss right(x, y, width)
}
model left(x: tensor[batch, dim], y: i64[batch], width: int) -> tensor[batch] {
    weight w[dim, class: 3] = normal(0.3)
    return cross_entropy(x @ w, y)
}
model right(x: tensor[batch, dim], y: i64[batch], width: int) -> tensor[batch] {
    weight w[dim, class: 3] = normal(0.3)
    return cross_entropy(x @ w, y)
}
mesh c(dp: 2)
train net = m(width: 4) on c {
    data: synthetic(batch: 8, classes: 3)
    optim: adamw(lr: 1e-2, clip: 0.5)
    steps: 3
    dtype: f64
    split batch into mb: 2
    replicate left over dp
}
)";

void for_each_program(llvm::function_ref<void(Context&, RandomProgram&, DiagnosticSink&)> look_at) {
  for_each_case(40, [&](Random& random) {
    Context context;
    RandomProgram program = random_program(context, random);
    SCOPED_TRACE(program.source);
    DiagnosticSink sink(context.locations);
    look_at(context, program, sink);
  });
}

/// Nodes may stand in any order: for example nodes that load samples and report losses before the
/// work.
std::string surroundings_first(const std::string& text) {
  const std::size_t graph = text.find("\ngraph") + 1, first = text.find('\n', graph) + 1,
                    end = text.find("\n}", first) + 1;
  std::string work, others;
  for (std::size_t at = first; at < end;) {
    const std::size_t next = text.find('\n', at) + 1;
    const std::string line = text.substr(at, next - at);
    (line.find(" @") != std::string::npos ? work : others) += line;
    at = next;
  }
  return text.substr(0, first) + others + work + text.substr(end);
}

void expect_the_same_plan_from_text(Context& context, RandomProgram& program,
                                    DiagnosticSink& sink) {
  using dag::Level;
  const auto planned = test::compile(program.model, program.strategy, sink, {});
  ASSERT_TRUE(planned) << render_text(sink.sorted(), context.locations.files());
  const std::string wanted = dag::print(*planned);
  for (const Level level : {Level::built, Level::split, Level::placed, Level::communicating,
                            Level::ordered, Level::planned}) {
    SCOPED_TRACE(level_name(level));
    passes::Options options;
    options.stop_at = level;
    const auto dag = test::compile(program.model, program.strategy, sink, options);
    ASSERT_TRUE(dag);
    const std::string text = dag::print(*dag, program.strategy.directives);
    ASSERT_EQ(plan_of(text, context, sink), wanted)
        << text << render_text(sink.sorted(), context.locations.files());
    // Nodes around the work are not recreated, and the order of lines decides ties.
    if (level >= Level::communicating) continue;
    ASSERT_EQ(plan_of(surroundings_first(text), context, sink), wanted)
        << text << render_text(sink.sorted(), context.locations.files());
  }
}

TEST(Levels, TextGoesOnToTheSamePlan) { for_each_program(expect_the_same_plan_from_text); }

TEST(Levels, LoadsThatDifferInLayoutAloneHaveNamesOfTheirOwn) {
  Context context;
  RandomProgram program = read_program(context, kTwoLayouts);
  DiagnosticSink sink(context.locations);
  expect_the_same_plan_from_text(context, program, sink);
  const auto planned = test::compile(program.model, program.strategy, sink, {});
  ASSERT_TRUE(planned);
  std::set<std::string> names;
  for (std::size_t n = 0; n < planned->nodes.size(); ++n)
    EXPECT_TRUE(names.insert(planned->name(dag::NodeId::at(n))).second);
  EXPECT_TRUE(names.contains("load.x.mb0.c") && names.contains("load.x.mb0.c.dp"));
}

/// The text with other layouts of samples in one body; it begins at `begin`.
std::string laid_out(const std::string& text, std::size_t begin, const std::string& layout) {
  const std::string of_samples = "<dp: batch>";
  std::string changed = text;
  for (std::size_t at = begin; (at = changed.find(of_samples, at)) < changed.find("\n}", begin);)
    changed.replace(at, of_samples.size(), layout);
  return changed;
}

TEST(Levels, BodiesLaidOutUnlikeTheLinesAreRefused) {
  Context context;
  RandomProgram program = read_program(context, kTwoLayouts);
  DiagnosticSink sink(context.locations);
  std::size_t refused = 0;
  for (const dag::Level level : {dag::Level::built, dag::Level::split}) {
    passes::Options options;
    options.stop_at = level;
    const auto dag = test::compile(program.model, program.strategy, sink, options);
    ASSERT_TRUE(dag) << render_text(sink.sorted(), context.locations.files());
    const std::string text = dag::print(*dag, program.strategy.directives);
    for (std::size_t body = text.find("\nbody @"); body != std::string::npos;
         body = text.find("\nbody @", body + 1)) {
      for (const char* layout : {"", "<dp: +>"}) {
        const std::string changed = laid_out(text, body, layout);
        if (changed == text) continue;
        DiagnosticSink told(context.locations);
        EXPECT_EQ(plan_of(changed, context, told), "") << changed;
        EXPECT_TRUE(told.has_errors());
        ++refused;
      }
    }
  }
  EXPECT_GE(refused, 8u);
}

/// A value reaches a chunk as its ports declare, through messages and copies; its extents are those
/// of the box that each device holds.
void expect_layouts(const dag::Dag& dag) {
  const std::vector<std::uint32_t> first(dag.mesh.axes.size(), 0);
  for (std::size_t n = 0; n < dag.nodes.size(); ++n) {
    const dag::Node& node = dag.nodes[n];
    if (!runs_body(node.kind)) continue;
    const dag::Body& body = dag.bodies[node.body.index()];
    for (const dag::Input& input : dag.inputs_of(node)) {
      const dag::BodyPort& port = body.inputs[input.port];
      if (port.kind != dag::PortKind::data && port.kind != dag::PortKind::saved) continue;
      EXPECT_EQ(dag::layout_of(dag, input.source), body.graph.value(port.value).layout)
          << dag.name(dag::NodeId::at(n)) << " " << input.port;
      const Interval samples = dag::samples_of(dag, node, first);
      for (const tensor::Dim& dim : dag::local_type(dag, input.source, first).dims)
        EXPECT_TRUE(!dim.sampled || dim.extent == samples.extent);
    }
    for (std::uint32_t o = 0; o < body.outputs.size(); ++o) {
      if (body.outputs[o].kind != dag::PortKind::grad) continue;
      const auto bucket =
          std::find_if(dag.buckets.begin(), dag.buckets.end(), [&](const dag::Bucket& each) {
            return std::find(each.params.begin(), each.params.end(), body.outputs[o].param) !=
                   each.params.end();
          });
      ASSERT_NE(bucket, dag.buckets.end());
      EXPECT_EQ(dag::summed_axes(dag, {dag::NodeId::at(n), o}), dag.reduced_over(*bucket));
    }
  }
}

TEST(Levels, LayoutsAgreeAlongEdges) {
  using dag::Level;
  for_each_program([](Context& context, RandomProgram& program, DiagnosticSink& sink) {
    for (const Level level :
         {Level::placed, Level::communicating, Level::ordered, Level::planned}) {
      SCOPED_TRACE(level_name(level));
      passes::Options options;
      options.stop_at = level;
      const auto dag = test::compile(program.model, program.strategy, sink, options);
      ASSERT_TRUE(dag) << render_text(sink.sorted(), context.locations.files());
      expect_layouts(*dag);
    }
  });
}

}  // namespace
}  // namespace piper::test
