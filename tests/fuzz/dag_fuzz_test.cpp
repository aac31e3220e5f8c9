// Damaged `.pir` text of every level, and of its directives: the parser and the verifier end,
// accepted texts print and read back, and accepted plans run a step of the interpreter.

#include <gtest/gtest.h>

#include "ir/dag/parse.h"
#include "ir/dag/print.h"
#include "ir/verify/verify.h"
#include "tests/fuzz/fuzz_step.h"
#include "tests/support/compile.h"
#include "tests/support/damage.h"
#include "tests/support/random_programs.h"

namespace piper::test {
namespace {

constexpr dag::Level kLevels[] = {dag::Level::built,   dag::Level::split,
                                  dag::Level::placed,  dag::Level::communicating,
                                  dag::Level::ordered, dag::Level::planned};

/// The text of a small random program at a level, with its directives.
std::string random_text(Random& random, dag::Level level) {
  Context context;
  RandomProgram program = random_program(context, random, {.max_devices = 4});
  DiagnosticSink sink(context.locations);
  passes::Options options;
  options.stop_at = level;
  options.workspace_bytes = backend::workspace_bytes();
  const auto dag = test::compile(program.model, program.strategy, sink, options);
  EXPECT_TRUE(dag) << program.source;
  return dag ? dag::print(*dag, program.strategy.directives) : "";
}

struct Reached {
  int parsed = 0, verified = 0, ran = 0;
};

void run_plan(const dag::Dag& dag, DiagnosticSink& sink, Reached& reached) {
  if (dag.level != dag::Level::planned || dag.forward_only || !runs_quickly(dag)) return;
  const auto job = backend::make_job(dag, nullptr, {.engine = backend::Engine::interpreter}, sink);
  EXPECT_EQ(job == nullptr, sink.has_errors());
  if (job && run_a_step(*job)) ++reached.ran;
}

void follow(const std::string& text, Reached& reached) {
  Context context;
  DiagnosticSink sink(context.locations);
  const auto words = [&] { return render_text(sink.sorted(), context.locations.files()); };
  const FileId file = context.locations.files().add("fuzz.pir", text);
  std::vector<directive::Directive> directives;
  const std::optional<dag::Dag> dag = dag::parse(file, context, sink, &directives);
  ASSERT_EQ(dag.has_value(), !sink.has_errors()) << words();
  if (!dag) return;
  ++reached.parsed;
  const std::string printed = print(*dag, directives);
  Context other;
  DiagnosticSink other_sink(other.locations);
  const FileId again_file = other.locations.files().add("again.pir", printed);
  std::vector<directive::Directive> again_directives;
  const std::optional<dag::Dag> again =
      dag::parse(again_file, other, other_sink, &again_directives);
  ASSERT_TRUE(again) << render_text(other_sink.sorted(), other.locations.files()) << printed;
  EXPECT_EQ(print(*again, again_directives), printed);
  const bool legal = verify::verify(*dag, sink) &&
                     verify::verify_workspaces(*dag, backend::workspace_bytes(), sink);
  ASSERT_EQ(legal, !sink.has_errors()) << words();
  if (!legal) return;
  ++reached.verified;
  run_plan(*dag, sink, reached);
}

const std::vector<std::string> kWords = {
    "(",    ")",      "[",     "]",      "{",         "}",        ",",     ":",
    "%",    "+",      "-",     "on",     "after",     "previous", "reads", "writes",
    "uses", "from",   "to",    "#1",     "locations", "library",  "F",     "B",
    "BI",   "BW",     "param", "grad",   "f32",       "i64",      "f64",   "send",
    "recv", "update", "norm",  "report", "compute",   "mb",       "stage"};

TEST(DagFuzz, DamagedTextsOfEveryLevel) {
  Reached reached;
  constexpr int kCases = 200;
  for_each_case(kCases, [&](Random& random) {
    const dag::Level level =
        random.chance(0.4) ? dag::Level::planned : kLevels[random.below(std::size(kLevels))];
    const std::string legal = random_text(random, level);
    // Half of the time the tables behind the bodies, where a plan's meaning is.
    Damage damage{.edits = 2, .words = kWords};
    if (random.chance(0.5)) damage.begin = std::min(legal.size(), legal.find("\ngraph {"));
    const std::string text = damaged(legal, random, damage);
    SCOPED_TRACE(text);
    follow(text, reached);
  });
  if (case_options().count > 0) return;
  EXPECT_GT(reached.parsed, kCases / 6);
  EXPECT_GT(reached.verified, kCases / 20);
  EXPECT_GT(reached.ran, kCases / 100);
}

TEST(DagFuzz, DamagedDirectives) {
  const std::vector<std::string> words = {
      "partition", "split", "place",   "replicate", "stream",  "require", "order",  "rank",
      "trim",      "fill",  "compact", "squeeze",   "with",    "window",  "bucket", "zero",
      "priority",  "sizes", "into",    "over",      "on",      "in",      "model",  "stage",
      "mb",        "F",     "BW",      "&",         "(",       ")",       "[",      "]",
      "{",         "}",     ";",       ",",         ".reduce", ".send",   "<=",     "else"};
  Reached reached;
  for_each_case(120, [&](Random& random) {
    const std::string legal = random_text(random, dag::Level::split);
    const std::size_t begin = legal.find("\ndirectives {"), end = legal.find("\nbody ", begin);
    ASSERT_NE(begin, std::string::npos) << legal;
    const std::string text = damaged(legal, random,
                                     {.edits = 3,
                                      .words = words,
                                      .begin = begin,
                                      .end = std::min(end, legal.find("\ngraph {"))});
    SCOPED_TRACE(text);
    follow(text, reached);
  });
  EXPECT_GT(reached.parsed + reached.verified, 0);
}

TEST(DagFuzz, EveryPrefixOfAPlan) {
  Random random(5);
  const std::string legal = random_text(random, dag::Level::planned);
  Reached reached;
  // Every line's end, and a place inside every line.
  for (std::size_t at = 0; at < legal.size(); at = legal.find('\n', at) + 1) {
    const std::size_t end = legal.find('\n', at);
    for (const std::size_t size : {at, at + (end - at) / 2}) {
      SCOPED_TRACE(testing::Message() << "the first " << size << " bytes of\n" << legal);
      follow(legal.substr(0, size), reached);
      if (HasFailure()) return;
    }
  }
  EXPECT_EQ(reached.verified, 0);
}

}  // namespace
}  // namespace piper::test
