// The text of a program at any level says all that the passes after it need: it goes on to the plan that the program itself has.

#include <gtest/gtest.h>

#include "ir/dag/parse.h"
#include "ir/dag/print.h"
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

TEST(Levels, TextGoesOnToTheSamePlan) {
  using dag::Level;
  for_each_case(40, [&](Random& random) {
    Context context;
    RandomProgram program = random_program(context, random);
    SCOPED_TRACE(program.source);
    DiagnosticSink sink(context.locations);
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
    }
  });
}

}  // namespace
}  // namespace piper::test
