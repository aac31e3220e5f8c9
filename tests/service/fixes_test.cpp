// Every fix of every error golden works: after it, its diagnostic is gone. For a syntax error no
// new one stands before it; earlier names may be reported if their expression had no type until
// then, and of several unclosed brackets one is reported.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "frontend/service/workspace.h"
#include "tests/support/caret_expectations.h"
#include "tests/support/file_test.h"

namespace piper::service {
namespace {

bool is_syntax(Code code) { return static_cast<int>(code) < 2000; }

using Places = std::set<std::pair<std::uint32_t, Code>>;

/// The diagnostics of a text: of the syntax alone, or of the whole check.
std::vector<Diagnostic> diagnostics_of(const std::string& path, const std::string& text,
                                       bool syntax) {
  const source::RealFileSystem disk;
  Workspace workspace(disk);
  workspace.open(path, text);
  const auto document = workspace.document(path);
  std::vector<Diagnostic> found =
      syntax ? document->syntax().diagnostics : document->check().diagnostics;
  std::erase_if(found, [&](const Diagnostic& each) {
    return !each.range.valid() || document->files().name(each.range.file) != path ||
           each.code == Code::errors_not_shown;
  });
  return found;
}

Places places_of(const std::vector<Diagnostic>& diagnostics) {
  Places places;
  for (const Diagnostic& each : diagnostics) places.emplace(each.range.begin, each.code);
  return places;
}

std::size_t check_fixes(const std::string& path, const std::string& text, bool syntax) {
  const std::vector<Diagnostic> before = diagnostics_of(path, text, syntax);
  const Places known = places_of(before);
  std::size_t checked = 0;
  for (const Diagnostic& diagnostic : before) {
    for (const Fix& fix : diagnostic.fixes) {
      if (is_syntax(diagnostic.code) != syntax) continue;
      SCOPED_TRACE(path + ": " + code_text(diagnostic.code) + " at byte " +
                   std::to_string(diagnostic.range.begin) + ": " + diagnostic.message + "; " +
                   fix.title);
      const std::string fixed = apply_fix(text, diagnostic.range.file, fix);
      EXPECT_NE(fixed, text);
      EXPECT_FALSE(fix.title.empty());
      if (!syntax) {
        EXPECT_LE(diagnostics_of(path, fixed, true).size(), diagnostics_of(path, text, true).size())
            << "it breaks the syntax";
      }
      for (const auto& [begin, code] : places_of(diagnostics_of(path, fixed, syntax))) {
        EXPECT_FALSE(begin == diagnostic.range.begin && code == diagnostic.code)
            << "it is still there";
        EXPECT_TRUE(!syntax || code == Code::unclosed_bracket || begin >= diagnostic.range.begin ||
                    known.contains({begin, code}))
            << "new: " << code_text(code) << " at byte " << begin;
      }
      ++checked;
    }
  }
  return checked;
}

/// The minimum number of fixes in the goldens; a file without one needs none.
const auto check_file = [](const test::FileTest& test) {
  const std::string source = test::parse_annotated(test.text).source;
  const std::size_t checked =
      check_fixes(test.path, source, true) + check_fixes(test.path, source, false);
  static const std::map<std::string, std::size_t> kAtLeast = {
      {"tests/frontend/testdata/parse/errors/foreign.pipe", 2},
      {"tests/frontend/testdata/parse/errors/foreign_values.pipe", 5},
      {"tests/frontend/testdata/parse/errors/misspelt_keywords.pipe", 3},
      {"tests/frontend/testdata/sema/errors/names.pipe", 3}};
  if (const auto row = kAtLeast.find(test.path); row != kAtLeast.end()) {
    EXPECT_GE(checked, row->second);
  }
};

PIPER_FILE_TEST(ParseFixes, "tests/frontend/testdata/parse/errors", ".pipe", check_file);
PIPER_FILE_TEST(SemaFixes, "tests/frontend/testdata/sema/errors", ".pipe", check_file);
PIPER_FILE_TEST(LowerFixes, "tests/frontend/testdata/lower/errors", ".pipe", check_file);
PIPER_FILE_TEST(ModelFixes, "tests/frontend/testdata/models/errors", ".pipe", check_file);

struct Row {
  const char* wrong;
  Code code;
  const char* fixed;
};

/// In a body, behind `let a = 2` and `var x = 1`.
constexpr Row kStatements[] = {
    {"let y = a&&b", Code::foreign_form, "let y = a and b"},
    {"let y = !a", Code::foreign_form, "let y = not a"},
    {"let y = mb[0..=3]", Code::foreign_form, "let y = mb[0..4]"},
    {"let y = mb[0:4]", Code::foreign_form, "let y = mb[0..4]"},
    {"let y = mb[0:8:2]", Code::foreign_form, "let y = mb[0..8 by 2]"},
    {"x -= a + b", Code::foreign_form, "x = x - (a + b)"},
    {"x++", Code::foreign_form, "x = x + 1"},
    {"z := a", Code::foreign_form, "let z = a"},
    {"const z = a", Code::foreign_form, "let z = a"},
    {"let s = 'text'", Code::unknown_character, "let s = \"text\""},
    {"let n = 3MB", Code::malformed_number, "let n = 3MiB"},
    {"let n = .5", Code::unexpected_token, "let n = 0.5"},
    {"let n = (a + b", Code::unclosed_bracket, "let n = (a + b)"},
    {"let n = a\n    + b", Code::unexpected_token, "let n = a +\n     b"},
    {"retrun a", Code::unexpected_token, "return a"},
};

TEST(Fixes, AreWhatTheHintSays) {
  for (const Row& row : kStatements) {
    const std::string head = "def f(a: int, b: int) -> int {\n    ", tail = "\n    return a\n}\n";
    const std::string text = head + row.wrong + tail;
    SCOPED_TRACE(row.wrong);
    bool offered = false;
    for (const Diagnostic& diagnostic : diagnostics_of("a.pipe", text, true)) {
      if (diagnostic.code != row.code) continue;
      ASSERT_EQ(diagnostic.fixes.size(), 1u) << diagnostic.message;
      EXPECT_EQ(apply_fix(text, diagnostic.range.file, diagnostic.fixes[0]),
                head + row.fixed + tail);
      offered = true;
    }
    EXPECT_TRUE(offered);
  }
}

TEST(Fixes, AreNotOfferedWhereSeveralThingsMayBeMeant) {
  for (const char* statement : {"let y = a ** 2", "let y = mb[0...3]", "let y = mb[:4]",
                                "x += ", "let y = a ? 1 : 2", "let n = \"open"}) {
    const std::string text =
        std::string("def f(a: int, b: int) -> int {\n    ") + statement + "\n    return a\n}\n";
    for (const Diagnostic& diagnostic : diagnostics_of("a.pipe", text, true))
      EXPECT_TRUE(diagnostic.fixes.empty()) << statement;
  }
}

TEST(Fixes, AreInJson) {
  const source::RealFileSystem disk;
  Workspace workspace(disk);
  workspace.open("a.pipe", "def f(count: int) -> int { return coun }\n");
  const auto document = workspace.document("a.pipe");
  const auto program = document->program();
  ASSERT_EQ(program.diagnostics.size(), 1u);
  EXPECT_NE(
      render_json(program.diagnostics, document->files())
          .find(
              "\"fixes\":[{\"title\":\"replace `coun` by `count`\",\"edits\":[{\"file\":\"a.pipe\",\"start\":{\"line\":1,\"column\":35},\"end\":{\"line\":1,"
              "\"column\":39},\"text\":\"count\"}]}]"),
      std::string::npos)
      << render_json(program.diagnostics, document->files());
}

}  // namespace
}  // namespace piper::service
