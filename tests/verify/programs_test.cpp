// Programs that the compiler makes, random ones included: verify accepts them at every level, and
// their text reads back.

#include <gtest/gtest.h>

#include "ir/dag/parse.h"
#include "ir/dag/print.h"
#include "ir/verify/verify.h"
#include "tests/support/compile.h"
#include "tests/support/random_programs.h"

namespace piper::test {
namespace {

void expect_legal(const dag::Dag& dag, const std::string& what) {
  DiagnosticSink sink(dag.context->locations);
  EXPECT_TRUE(verify::verify(dag, sink))
      << what << "\n"
      << render_text(sink.sorted(), dag.context->locations.files());
  const std::string text = print(dag);
  Context context;
  DiagnosticSink parse_sink(context.locations);
  const std::optional<dag::Dag> parsed = dag::parse(text, context, parse_sink);
  ASSERT_TRUE(parsed) << what << "\n"
                      << render_text(parse_sink.sorted(), context.locations.files());
  EXPECT_EQ(print(*parsed), text) << what;
  EXPECT_TRUE(verify::verify(*parsed, parse_sink))
      << what << "\n"
      << render_text(parse_sink.sorted(), context.locations.files());
}

void compile_and_check(Random& random, dag::Level last, bool forward_only) {
  Context context;
  RandomProgram program = random_program(context, random);
  SCOPED_TRACE(program.source);
  DiagnosticSink sink(context.locations);
  passes::Options options;
  options.stop_at = last;
  options.forward_only = forward_only;
  const std::optional<dag::Dag> dag = test::compile(program.model, program.strategy, sink, options);
  ASSERT_TRUE(dag) << render_text(sink.sorted(), context.locations.files());
  expect_legal(*dag, std::string(level_name(last)));
}

TEST(CompiledPrograms, EveryLevelUpToCommunicating) {
  for_each_case(60, [](Random& random) {
    const std::uint64_t seed = random.next();
    for (const dag::Level level :
         {dag::Level::built, dag::Level::split, dag::Level::placed, dag::Level::communicating}) {
      Random same(seed);
      compile_and_check(same, level, false);
    }
  });
}

TEST(CompiledPrograms, ForwardAlone) {
  for_each_case(40,
                [](Random& random) { compile_and_check(random, dag::Level::communicating, true); });
}

}  // namespace
}  // namespace piper::test
