// The text of a program at any level says all that the passes after it need: it goes on to the plan that the program itself has. What devices hold of
// values is at every level what their readers take.

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/dag/parse.h"
#include "ir/dag/print.h"
#include "ir/dag/value_layout.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "passes/pipeline.h"
#include "tests/support/random_programs.h"

namespace piper::test {
namespace {

/// The text read and taken to a plan, as text.
std::string plan_of(const std::string& text, Context& context, DiagnosticSink& sink) {
  std::vector<directive::Directive> directives;
  std::optional<dag::Dag> dag = dag::parse(context.locations.files().add("level.pir", text), context, sink, &directives);
  if (!dag) return "";
  directive::Strategy strategy{.mesh = dag->mesh, .device_sets = dag->device_sets, .directives = std::move(directives), .settings = dag->settings, .missing = {}};
  return passes::advance(*dag, strategy, sink, {}) ? dag::print(*dag) : "";
}

void for_each_program(llvm::function_ref<void(Context&, RandomProgram&, DiagnosticSink&)> look_at) {
  for_each_case(40, [&](Random& random) {
    Context context;
    RandomProgram program = random_program(context, random);
    SCOPED_TRACE(program.source);
    DiagnosticSink sink(context.locations);
    look_at(context, program, sink);
  });
}

/// Nodes may stand in any order: what brings samples and takes losses before the work, say.
std::string surroundings_first(const std::string& text) {
  const std::size_t graph = text.find("\ngraph") + 1, first = text.find('\n', graph) + 1, end = text.find("\n}", first) + 1;
  std::string work, others;
  for (std::size_t at = first; at < end;) {
    const std::size_t next = text.find('\n', at) + 1;
    const std::string line = text.substr(at, next - at);
    (line.find(" @") != std::string::npos ? work : others) += line;
    at = next;
  }
  return text.substr(0, first) + others + work + text.substr(end);
}

TEST(Levels, TextGoesOnToTheSamePlan) {
  using dag::Level;
  for_each_program([](Context& context, RandomProgram& program, DiagnosticSink& sink) {
    const auto planned = passes::compile(program.model, program.strategy, sink, {});
    ASSERT_TRUE(planned) << render_text(sink.sorted(), context.locations.files());
    const std::string wanted = dag::print(*planned);
    for (const Level level : {Level::built, Level::split, Level::placed, Level::communicating, Level::ordered}) {
      SCOPED_TRACE(level_name(level));
      passes::Options options;
      options.stop_at = level;
      const auto dag = passes::compile(program.model, program.strategy, sink, options);
      ASSERT_TRUE(dag);
      const std::string text = dag::print(*dag, program.strategy.directives);
      ASSERT_EQ(plan_of(text, context, sink), wanted) << text << render_text(sink.sorted(), context.locations.files());
      if (level >= Level::communicating) continue;  // what surrounds the work is not made anew, and the order of lines decides between equals
      ASSERT_EQ(plan_of(surroundings_first(text), context, sink), wanted) << text << render_text(sink.sorted(), context.locations.files());
    }
  });
}

/// What reaches a chunk is what its ports say, through messages and copies; its extents are those of the box that each device holds.
void expect_layouts(const dag::Dag& dag) {
  const std::vector<std::uint32_t> first(dag.mesh.axes.size(), 0);
  for (std::size_t n = 0; n < dag.nodes.size(); ++n) {
    const dag::Node& node = dag.nodes[n];
    if (!runs_body(node.kind)) continue;
    const dag::Body& body = dag.bodies[node.body.index()];
    for (const dag::Input& input : dag.inputs_of(node)) {
      const dag::BodyPort& port = body.inputs[input.port];
      if (port.kind != dag::PortKind::data && port.kind != dag::PortKind::saved) continue;
      EXPECT_EQ(dag::layout_of(dag, input.source), body.graph.value(port.value).layout) << dag.name(dag::NodeId::at(n)) << " " << input.port;
      const Stretch samples = dag::samples_of(dag, node, first);
      for (const tensor::Dim& dim : body.graph.type(port.value).dims) EXPECT_TRUE(!dim.sampled || dim.extent == samples.extent);
    }
    for (std::uint32_t o = 0; o < body.outputs.size(); ++o) {
      if (body.outputs[o].kind != dag::PortKind::grad) continue;
      const auto bucket = std::find_if(dag.buckets.begin(), dag.buckets.end(), [&](const dag::Bucket& each) {
        return std::find(each.params.begin(), each.params.end(), body.outputs[o].param) != each.params.end();
      });
      ASSERT_NE(bucket, dag.buckets.end());
      EXPECT_EQ(dag::summed_axes(dag, {dag::NodeId::at(n), o}), dag.reduced_over(*bucket));
    }
  }
}

TEST(Levels, LayoutsAgreeAlongEdges) {
  using dag::Level;
  for_each_program([](Context& context, RandomProgram& program, DiagnosticSink& sink) {
    for (const Level level : {Level::placed, Level::communicating, Level::ordered, Level::planned}) {
      SCOPED_TRACE(level_name(level));
      passes::Options options;
      options.stop_at = level;
      const auto dag = passes::compile(program.model, program.strategy, sink, options);
      ASSERT_TRUE(dag) << render_text(sink.sorted(), context.locations.files());
      expect_layouts(*dag);
    }
  });
}

}  // namespace
}  // namespace piper::test
