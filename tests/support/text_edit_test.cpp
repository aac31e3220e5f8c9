#include "tests/support/text_edit.h"

#include <gtest/gtest.h>

namespace piper::test {
namespace {

constexpr const char* kText = "stream a\nstream b\nrole a on stream a\n";

TEST(TextEdit, ReplacesDeletesAndMoves) {
  static constexpr struct {
    const char *edits, *result;
  } kRows[] = {
      {"- role a\n+ role b\n", "stream a\nstream b\nrole b on stream a\n"},
      // The line, though the text stands in another one too.
      {"- stream a\n+ stream c\n", "stream c\nstream b\nrole a on stream a\n"},
      {"- stream b\n", "stream a\nrole a on stream a\n"},
      {"- stream b\n+ stream b\n+ stream c\n",
       "stream a\nstream b\nstream c\nrole a on stream a\n"},
      {"- stream b\n- role a on stream a\n+ role a on stream a\n+ stream b\n",
       "stream a\nrole a on stream a\nstream b\n"},
  };
  for (const auto& row : kRows) {
    std::string error;
    const std::string result = edited(kText, row.edits, error);
    EXPECT_EQ(error, "") << row.edits;
    EXPECT_EQ(result, row.result) << row.edits;
  }
}

TEST(TextEdit, WithoutLocationsHasNeitherReferencesNorTable) {
  EXPECT_EQ(
      without_locations("mesh a(b: 2) #1\nstream c #12 {\n}\nlocations {\n  1 \"a\":1:1-1:2\n}\n"),
      "mesh a(b: 2)\nstream c {\n}\n");
  EXPECT_EQ(without_locations(kText), kText);
}

TEST(TextEdit, RefusesAbsentAndRepeatedText) {
  for (const char* edits : {"- stream c\n", "- stream\n", "stream a\n", "-\n"}) {
    std::string error;
    edited(kText, edits, error);
    EXPECT_NE(error, "") << edits;
  }
}

}  // namespace
}  // namespace piper::test
