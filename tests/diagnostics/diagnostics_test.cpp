#include "ir/diagnostics/diagnostics.h"
#include "ir/diagnostics/forward.h"

#include <gtest/gtest.h>

namespace piper {
namespace {

struct Fixture : testing::Test {
  LocationTable table;
  DiagnosticSink sink{table};

  std::string text() const { return render_text(sink.sorted(), table.files()); }
};
using Diagnostics = Fixture;

TEST_F(Diagnostics, CodesAreFoundByTheirText) {
  EXPECT_EQ(code_text(Code::unexpected_token), "P1010");
  for (const char* form : {"P1010", "p1010", "1010"})
    EXPECT_EQ(parse_code(form), Code::unexpected_token);
  for (const char* form : {"", "P", "P1", "P10100", "P1010x", "Q1010", "P9999", "-1010"})
    EXPECT_EQ(parse_code(form), std::nullopt) << form;
  EXPECT_TRUE(page(Code::unexpected_token).starts_with("# P1010: "));
}

TEST_F(Diagnostics, MessagesTakeTypedArguments) {
  struct Viewable {
    operator std::string_view() const { return "view"; }
  };
  EXPECT_EQ(format_args("`{` {}, {}, {}, {}, {}, {}, {}", "a", std::string("b"), 'c', -4, 2.5, true,
                        Viewable()),
            "`{` a, b, c, -4, 2.5, true, view");
  EXPECT_EQ(format_args("{}", "{}"), "{}");
}

TEST_F(Diagnostics, TextShowsLinesCaretsRelatedAndHint) {
  FileId file = table.files().add("a.pipe", "let x = 1\n\tplace stage[0] on größe\nlast");
  sink.report(Code::unexpected_token, {file, 29, 36}, "no axis is named `{}`", "größe")
      .related(SourceRange{file, 0, 3}, "the axes are here")
      .hint("did you mean `{}`?", "pp");
  EXPECT_EQ(text(),
            "a.pipe:2:20: error P1010: no axis is named `größe`\n"
            "   2 | \tplace stage[0] on größe\n"
            "     | \t                  ^^^^^\n"
            "  a.pipe:1:1: the axes are here\n"
            "   1 | let x = 1\n"
            "     | ^^^\n"
            "  hint: did you mean `pp`?\n");
}

TEST_F(Diagnostics, TextOfRangesOverLinesEndsAndNoFile) {
  FileId file = table.files().add("a.pipe", "order {\n}\n");
  FileId elsewhere = table.files().add_without_text("far.pipe");
  std::uint32_t at = table.files().offset(elsewhere, {7, 3});
  sink.report(Code::unexpected_token, {file, 6, 9}, "over lines");
  sink.report(Code::unexpected_token, {file, 10, 10}, "at the end");
  sink.report(Code::unexpected_token, {elsewhere, at, at}, "without its text");
  sink.report(Code::unreadable_file, SourceRange{}, "no file");
  EXPECT_EQ(text(),
            "error P1001: no file\n"
            "a.pipe:1:7: error P1010: over lines\n   1 | order {\n     |       ^\n"
            "a.pipe:3:1: error P1010: at the end\n   3 | \n     | ^\n"
            "far.pipe:7:3: error P1010: without its text\n");
}

TEST_F(Diagnostics, TextNeverShowsControlBytesOrBrokenCharacters) {
  FileId file = table.files().add("a.pipe", "a\x1b[31m\xF6 b\n");
  sink.report(Code::unknown_character, {file, 7, 8}, "x");
  EXPECT_EQ(
      text(),
      "a.pipe:1:8: error P1014: x\n   1 | a\xEF\xBF\xBD[31m\xEF\xBF\xBD b\n     |        ^\n");
}

TEST_F(Diagnostics, LongLinesShowThePartAroundTheCarets) {
  FileId file = table.files().add("a.pipe", std::string(5000, 'x') + "!" + std::string(5000, 'y'));
  sink.report(Code::unknown_character, {file, 5000, 5001}, "x");
  std::string shown = text();
  EXPECT_LT(shown.size(), 500u);
  std::size_t line = shown.find("   1 | "), carets = shown.find("\n     | ") + 1;
  EXPECT_EQ(shown.find('!') - line, shown.find('^') - carets) << shown;
}

TEST_F(Diagnostics, JsonHasThePromisedFields) {
  FileId file = table.files().add("a.pipe", "param x = y\n");
  sink.report(Code::unexpected_token, {file, 10, 11}, "a \"message\"")
      .related(SourceRange{file, 0, 5}, "here")
      .hint("h");
  sink.report(Code::unreadable_file, SourceRange{}, "cannot read \xFF");
  std::vector<Diagnostic> list = sink.sorted();
  EXPECT_EQ(
      render_json(list[1], table.files()),
      R"({"code":"P1010","severity":"error","message":"a \"message\"","file":"a.pipe",)"
      R"("range":{"start":{"line":1,"column":11},"end":{"line":1,"column":12}},)"
      R"("related":[{"message":"here","file":"a.pipe","range":{"start":{"line":1,"column":1},"end":{"line":1,"column":6}}}],"hint":"h","fixes":[]})");
  EXPECT_EQ(
      render_json(list, table.files()),
      R"({"schema":1,"diagnostics":[{"code":"P1001","severity":"error","message":"cannot read )"
      "\xEF\xBF\xBD"
      R"(","file":null,"range":null,"related":[],"hint":null,"fixes":[]},)" +
          render_json(list[1], table.files()) + "]}");
}

TEST_F(Diagnostics, SortedByPlaceAndWithoutRepetition) {
  FileId first = table.files().add("b.pipe", "aaaa\nbbbb\n"),
         second = table.files().add("a.pipe", "cccc\n");
  sink.report(Code::unexpected_token, {second, 0, 1}, "four");
  sink.report(Code::unexpected_token, {first, 5, 6}, "three");
  sink.report(Code::unexpected_token, {first, 0, 4}, "two");
  sink.report(Code::unexpected_token, {first, 0, 1}, "one");
  sink.report(Code::unexpected_token, {first, 5, 6}, "and a half");
  sink.report(Code::unexpected_token, {first, 5, 6}, "three");
  std::vector<std::string> messages;
  for (const Diagnostic& diagnostic : sink.sorted()) messages.push_back(diagnostic.message);
  EXPECT_EQ(messages, (std::vector<std::string>{"one", "two", "three", "and a half", "four"}));
  EXPECT_EQ(sink.error_count(), 6u);
}

TEST_F(Diagnostics, CallChainsBecomeRelatedLocations) {
  FileId user = table.files().add("a.pipe", "gpipe(pp)\n");
  FileId library = table.files().add("std/gpipe.pipe", "place stage[s] on p[s]\n", true);
  LocId call = table.intern({user, 0, 9});
  sink.report(Code::unexpected_token, table.intern({library, 0, 22}, call), "no such stage");
  EXPECT_EQ(text(),
            "a.pipe:1:1: error P1010: no such stage\n   1 | gpipe(pp)\n     | ^^^^^^^^^\n"
            "  std/gpipe.pipe:1:1: by this line of the standard library\n"
            "   1 | place stage[s] on p[s]\n     | ^^^^^^^^^^^^^^^^^^^^^^\n");
}

TEST_F(Diagnostics, LongCallChainsAreAbbreviated) {
  const FileId file = table.files().add("a.pipe", std::string(200, 'x'));
  const auto notes = [&](std::uint32_t calls) {
    DiagnosticSink own(table);
    LocId loc;
    for (std::uint32_t i = 0; i <= calls; ++i) loc = table.intern({file, i, i + 1}, loc);
    own.report(Code::calls_too_deep, loc, "deep");
    return own.sorted()[0].related;
  };
  EXPECT_EQ(notes(7).size(), 7u);
  const std::vector<Related> many = notes(100);
  ASSERT_EQ(many.size(), 6u);
  EXPECT_EQ(many[3].message, "called from here");
  EXPECT_EQ(many[4].message, "called from here, through 94 more calls");
  EXPECT_EQ(many[5].range.begin, 0u);
}

TEST_F(Diagnostics, RangesAreNarrowedToTheTextTheyBeginWith) {
  const FileId file = table.files().add("a.pipe", "place stag[0] on p[0]\n");
  sink.report(Code::unknown_region, SourceRange{file, 6, 13}, "a").narrow_to("stag");
  sink.report(Code::unknown_region, SourceRange{file, 6, 13}, "b").narrow_to("stage");
  sink.report(Code::unknown_region, SourceRange{}, "c").narrow_to("stag");
  const std::vector<Diagnostic> list = sink.sorted();
  EXPECT_EQ(list[1].range, (SourceRange{file, 6, 10}));
  EXPECT_EQ(list[2].range, (SourceRange{file, 6, 13}));
}

/// One mistake in one line, on 64 ranks, is reported once and counted; many mistakes are reported
/// up to a page.
TEST(Forward, TellsAPage) {
  LocationTable table;
  const FileId file = table.files().add("a.pipe", std::string(100, 'x'));
  DiagnosticSink found(table), told(table);
  for (int i = 0; i < 64; ++i)
    found
        .report(Code::order_lacks_work, SourceRange{file, 1, 2}, "the order of rank {} lacks work",
                i)
        .hint("hint {}", i);
  found.report(Code::repeated_work, SourceRange{file, 1, 2}, "a warning");
  forward(found, told);
  ASSERT_EQ(told.sorted().size(), 2u);
  EXPECT_EQ(told.sorted()[0].related.back().message, "and 63 more of this kind from the same line");
  EXPECT_EQ(told.sorted()[0].hint, "hint 0");

  DiagnosticSink many(table), page(table);
  for (std::uint32_t i = 0; i < 30; ++i)
    many.report(Code::selector_matches_nothing, SourceRange{file, i, i + 1}, "nothing {}", i);
  forward(many, page);
  ASSERT_EQ(page.sorted().size(), kShownErrors + 1);
  EXPECT_EQ(page.sorted().back().code, Code::errors_not_shown);
  EXPECT_EQ(page.sorted().back().message, "10 further errors are not shown, the last one is here");
}

}  // namespace
}  // namespace piper
