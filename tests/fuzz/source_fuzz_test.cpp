// Damaged `.pipe` text through the whole compiler, and accepted programs through a step of the
// interpreter.

#include <gtest/gtest.h>

#include <set>

#include "frontend/lower/lower.h"
#include "ir/verify/verify.h"
#include "tests/fuzz/fuzz_step.h"
#include "tests/support/compile.h"
#include "tests/support/damage.h"
#include "tests/support/library_declarations.h"
#include "tests/support/random_programs.h"

namespace piper::test {
namespace {

const std::vector<std::string> kWords = {
    "F",      "B",      "BI",    "BW",   "pp",    "dp",    "model",     "stage",     "mb",
    "copy",   "net",    "x",     "wide", "batch", "seq",   "r",         "s",         "c0",
    "&",      "{",      "}",     "[",    "]",     "(",     ")",         "..",        "repeat",
    "at",     "if",     "order", "rank", "place", "split", "partition", "replicate", "loss",
    "weight", "region", "@",     "+",    "let",   "return"};

// A number, so that this does not count as a test that provokes the code.
constexpr int kCompilerBug = 4009;

/// How far a text came.
struct Reached {
  int lowered = 0, planned = 0, ran = 0;
};

/// Every phase ends with a result, or with an error and no result; a compiled program verifies and
/// runs.
void follow(const std::string& text, Reached& reached) {
  Context context;
  DiagnosticSink sink(context.locations);
  const auto words = [&] { return render_text(sink.sorted(), context.locations.files()); };
  const FileId file = context.locations.files().add("fuzz.pipe", text);
  const sema::Program program = sema::analyse(file, source::MemoryFileSystem(), context, sink);
  ASSERT_EQ(program.ok, !sink.has_errors()) << words();
  render_json(sink.sorted(), context.locations.files());
  for (std::size_t i = 0; i < program.trains.size(); ++i) {
    if (!program.trains[i].runnable) continue;
    DiagnosticSink own(context.locations);
    const auto report = [&] { return render_text(own.sorted(), context.locations.files()); };
    auto lowered = lower::lower_train(program, sema::TrainId::at(i), {}, context, own);
    ASSERT_EQ(lowered.has_value(), program.trains[i].sound && !own.has_errors()) << report();
    if (!lowered) continue;
    ++reached.lowered;
    const directive::Strategy& strategy = lowered->strategy;
    if (strategy.mesh.devices() > 64 || lowered->model.values().size() > 2000) continue;
    passes::Options options;
    options.workspace_bytes = backend::workspace_bytes();
    const auto dag = test::compile(lowered->model, strategy, own, options);
    ASSERT_EQ(dag.has_value(), !own.has_errors()) << report();
    for (const Diagnostic& diagnostic : own.sorted())
      EXPECT_NE(static_cast<int>(diagnostic.code), kCompilerBug) << report();
    if (!dag) continue;
    ++reached.planned;
    EXPECT_TRUE(verify::verify(*dag, own)) << report();
    if (!runs_quickly(*dag)) continue;
    const auto job =
        backend::make_job(*dag, nullptr, {.engine = backend::Engine::interpreter}, own);
    ASSERT_TRUE(job) << report();
    if (run_a_step(*job)) ++reached.ran;
  }
}

TEST(SourceFuzz, DamagedProgramsEndInADiagnosticOrRun) {
  Reached reached;
  constexpr int kCases = 200;
  for_each_case(kCases, [&](Random& random) {
    Context context;
    const std::string legal = random_program(context, random, {.max_devices = 4}).source;
    // The train holds the directives; models are damaged as often, though they are longer.
    const std::size_t train = legal.find("mesh grid");
    Damage damage{.edits = 2, .words = kWords};
    (random.chance(0.6) ? damage.begin : damage.end) = train;
    const std::string text = damaged(legal, random, damage);
    SCOPED_TRACE(text);
    follow(text, reached);
  });
  if (case_options().count > 0) return;
  EXPECT_GT(reached.lowered, kCases / 8);
  EXPECT_GT(reached.planned, kCases / 12);
  EXPECT_GT(reached.ran, kCases / 12);
}

TEST(SourceFuzz, HalfTypedProgramsEndInADiagnosticOrRun) {
  Reached reached;
  for_each_case(40, [&](Random& random) {
    Context context;
    std::string text = random_program(context, random, {.max_devices = 4}).source;
    // A line that is being typed, in a program that is otherwise whole; or the end is missing.
    const std::size_t at = random.below(text.size());
    if (random.chance(0.7)) {
      const std::size_t line = text.find('\n', at);
      text.erase(at, line == std::string::npos ? line : line - at);
    } else {
      text.resize(at);
    }
    SCOPED_TRACE(text);
    follow(text, reached);
  });
}

/// The tests over random programs see every directive that works.
TEST(RandomPrograms, DrawEveryDirective) {
  std::set<std::string_view> missing;
  for (const directive::DirectiveRow& row : directive::directive_rows()) {
    if (row.works()) missing.insert(row.keyword);
  }
  for_each_case(200, [&](Random& random) {
    if (missing.empty()) return;
    Context context;
    for (const directive::Directive& line :
         random_program(context, random, {.order = false}).strategy.directives) {
      if (const directive::DirectiveRow* row = directive::find_row(line))
        missing.erase(row->keyword);
    }
  });
  if (case_options().count > 0) return;
  EXPECT_TRUE(missing.empty()) << *missing.begin();
}

TEST(SourceFuzz, BytesOfAnyKind) {
  Reached reached;
  for_each_case(60, [&](Random& random) {
    std::string text;
    for (std::int64_t count = random.between(0, 400); count > 0; --count)
      text += static_cast<char>(random.chance(0.3) ? random.below(256) : 32 + random.below(95));
    SCOPED_TRACE(text);
    follow(text, reached);
  });
}

/// Nesting within the parser's bound passes every later phase.
TEST(SourceFuzz, NestingOfAnyDepth) {
  Reached reached;
  const std::vector<std::pair<std::string, std::string>> kForms = {{"if true { ", " }"},
                                                                   {"for i in 0..1 { ", " }"},
                                                                   {"F a & { ", " }"},
                                                                   {"region r { ", " }"},
                                                                   {"[", "]"},
                                                                   {"f(", ")"},
                                                                   {"-", ""},
                                                                   {"stage[", "]"},
                                                                   {"not ", ""},
                                                                   {"if a then ", " else b"},
                                                                   {"1 + ", ""}};
  for (const auto& [open, close] : kForms) {
    for (const int depth : {60, 390, 1000}) {
      for (const char* around : {"schedule s(p: axis) { ", "param p = "}) {
        std::string text = around;
        for (int i = 0; i < depth; ++i) text += open;
        text += "1";
        for (int i = 0; i < depth; ++i) text += close;
        SCOPED_TRACE(std::string(around) + open + " " + std::to_string(depth) + " deep");
        follow(text, reached);
      }
    }
  }
}

TEST(SourceFuzz, ValuesFromTheCommandLine) {
  const std::vector<LibraryDeclaration> schedules = library_schedules();
  ASSERT_GE(schedules.size(), 7u);
  const std::vector<std::string> values = {"0",
                                           "1",
                                           "2",
                                           "3",
                                           "4",
                                           "5",
                                           "8",
                                           "-1",
                                           "",
                                           " ",
                                           "2 ",
                                           "0x10",
                                           "1e3",
                                           "1.5",
                                           "nan",
                                           "true",
                                           "\"a\"",
                                           "[1, 2]",
                                           "p",
                                           "4;",
                                           "9223372036854775807",
                                           "9223372036854775808",
                                           "-9223372036854775808",
                                           "4294967296",
                                           "100000000000",
                                           "1KiB",
                                           std::string(5000, '7'),
                                           std::string("\0\xff", 2)};
  for_each_case(150, [&](Random& random) {
    Context context;
    DiagnosticSink sink(context.locations);
    const std::string& name = schedules[random.below(schedules.size())].name;
    const auto file = sema::open_library("std.schedules." + name, context.locations.files());
    ASSERT_TRUE(file);
    const sema::Program program = sema::analyse(*file, source::MemoryFileSystem(), context, sink);
    ASSERT_TRUE(program.ok);
    std::vector<lower::Override> overrides;
    std::string trace = name;
    for (std::int64_t count = random.between(0, 4); count > 0; --count) {
      const std::string parameter =
          random.pick(std::vector<std::string>{"p", "p", "m", "m", "v", "group", "x", ""});
      overrides.push_back({parameter, random.pick(values)});
      trace += " -D " + parameter + "=" + overrides.back().value;
    }
    SCOPED_TRACE(trace);
    auto lowered =
        lower::lower_schedule(program, program.find_schedule(name), overrides, context, sink);
    ASSERT_EQ(lowered.has_value(), !sink.has_errors())
        << render_text(sink.sorted(), context.locations.files());
    if (!lowered || lowered->strategy.mesh.devices() > 64) return;
    passes::Options options;
    const auto dag = test::compile(lowered->model, lowered->strategy, sink, options);
    ASSERT_EQ(dag.has_value(), !sink.has_errors());
    if (dag) {
      EXPECT_TRUE(verify::verify(*dag, sink))
          << render_text(sink.sorted(), context.locations.files());
    }
  });
}

}  // namespace
}  // namespace piper::test
