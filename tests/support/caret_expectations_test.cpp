#include "tests/support/caret_expectations.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {
namespace {

constexpr const char* kAnnotated =
    "// a comment\n"
    "place stage[0] on q\n"
    "//                ^ error P2004: no axis is named `q`\n"
    "//    ^^^^^ note: declared here\n"
    "x\n"
    "// @1-2 error P2001: unknown\n"
    "// @2-+1:3 warning P2002: two\\nlines\n"
    "end\n"
    "// @none error P6001: about no place\n";

const std::vector<Finding> kFindings = {{0, 1, 0, 1, "error", "P6001", "about no place"},
                                        {2, 7, 2, 12, "note", "", "declared here"},
                                        {2, 19, 2, 20, "error", "P2004", "no axis is named `q`"},
                                        {3, 1, 3, 2, "error", "P2001", "unknown"},
                                        {3, 2, 4, 3, "warning", "P2002", "two\nlines"}};

FileTest test_of(std::string text) { return {"a.pipe", "a", std::move(text)}; }

TEST(CaretExpectations, ParsesRangesSeverityCodeAndText) {
  const AnnotatedSource parsed = parse_annotated(kAnnotated);
  EXPECT_EQ(parsed.source, "// a comment\nplace stage[0] on q\nx\nend\n");
  EXPECT_TRUE(parsed.malformed.empty());
  std::vector<Finding> expected = parsed.expected;
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(expected, kFindings);
}

TEST(CaretExpectations, RoundTrips) {
  const std::string source = parse_annotated(kAnnotated).source;
  AnnotatedSource again = parse_annotated(annotate(source, kFindings));
  EXPECT_EQ(again.source, source);
  std::sort(again.expected.begin(), again.expected.end());
  EXPECT_EQ(again.expected, kFindings);
}

TEST(CaretExpectations, FindingBelowTheLastLineStandsUnderIt) {
  const std::string text = annotate("a {\n", {{2, 1, 2, 1, "error", "P1001", "the text ends"}});
  EXPECT_EQ(text, "a {\n// @+1:1-+1:1 error P1001: the text ends\n");
  EXPECT_EQ(parse_annotated(text).expected.at(0).line, 2);
}

TEST(CaretExpectations, EmptySourceCanHaveFindings) {
  const std::string text = annotate("", {{1, 1, 1, 1, "error", "P1001", "nothing here"}});
  EXPECT_EQ(text, "// @1-1 error P1001: nothing here\n");
  EXPECT_EQ(parse_annotated(text).expected.at(0),
            (Finding{1, 1, 1, 1, "error", "P1001", "nothing here"}));
}

TEST(CaretExpectations, EqualFindingsPass) {
  expect_findings(test_of(kAnnotated),
                  [](const std::string&, const std::string&) { return kFindings; });
}

TEST(CaretExpectations, EveryDifferenceFails) {
  for (std::size_t i = 0; i < kFindings.size(); ++i) {
    static std::vector<Finding> found;  // the macro's statement cannot capture
    found = kFindings;
    const CheckSource check = [](const std::string&, const std::string&) { return found; };
    const FileTest test = test_of(kAnnotated);
    found.erase(found.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_NONFATAL_FAILURE(expect_findings(test, check), "expected, but not found");
    found = kFindings;
    found.push_back(found[i]);
    EXPECT_NONFATAL_FAILURE(expect_findings(test, check), "found, but not expected");
    for (const auto change :
         {+[](Finding& f) { ++f.end_column; }, +[](Finding& f) { f.severity = "hint"; },
          +[](Finding& f) { f.code = "P9999"; }, +[](Finding& f) { f.message += "."; }}) {
      found = kFindings;
      change(found[i]);
      EXPECT_NONFATAL_FAILURE(expect_findings(test, check), "expected, but not found");
    }
  }
}

TEST(CaretExpectations, MalformedExpectationFails) {
  const CheckSource nothing = [](const std::string&, const std::string&) {
    return std::vector<Finding>();
  };
  const FileTest test = test_of("abc\n// ^^ P2004 no severity\n");
  EXPECT_NONFATAL_FAILURE(expect_findings(test, nothing), "not an expectation");
}

TEST(CaretExpectations, UpdateRewritesTheFile) {
  const TemporaryFolder folder;
  const std::string text = "abcd\n//  ^ error P1: old\nefgh\n";
  const FileTest test = {folder.write("a.pipe", text), "a", text};
  const bool before = updating();
  set_updating(true);
  expect_findings(test, [](const std::string&, const std::string& source) {
    EXPECT_EQ(source, "abcd\nefgh\n");
    return std::vector<Finding>{{2, 3, 2, 5, "error", "P2", "new"}};
  });
  set_updating(before);
  EXPECT_EQ(read_text(test.path), "abcd\nefgh\n//^^ error P2: new\n");
}

}  // namespace
}  // namespace piper::test
