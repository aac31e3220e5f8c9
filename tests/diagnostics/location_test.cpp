#include "ir/location.h"

#include <gtest/gtest.h>

#include <unordered_set>

#include "llvm/ADT/DenseMap.h"
#include "tests/support/random_cases.h"

namespace piper {
namespace {

TEST(Ids, InvalidIdsAreKeysToo) {
  using TestId = Id<struct TestTag>;
  EXPECT_FALSE(TestId().valid());
  EXPECT_TRUE(TestId(0).valid());
  EXPECT_LT(TestId(1), TestId(2));
  llvm::DenseMap<TestId, int> map;
  map[TestId()] = 1;
  map[TestId::at(7)] = 2;
  EXPECT_EQ(map.lookup(TestId()), 1);
  EXPECT_EQ(map.lookup(TestId(7)), 2);
  EXPECT_EQ((std::unordered_set<TestId>{TestId(), TestId(1), TestId(1)}).size(), 2u);
}

TEST(Sources, ColumnsInEachUnit) {
  const std::string e = "\xC3\xA9", sun = "\xE6\x97\xA5", clef = "\xF0\x9D\x84\x9E",
                    mark = "\xEF\xBB\xBF";
  struct Row {
    std::string text;
    std::uint32_t offset;
    std::uint32_t line, byte, utf16, code_point;
  };
  const Row rows[] = {
      {"abc", 0, 1, 1, 1, 1},
      {"abc", 3, 1, 4, 4, 4},
      {"abc", 99, 1, 4, 4, 4},
      {e + "b", 2, 1, 3, 2, 2},
      {sun + "b", 3, 1, 4, 2, 2},
      {clef + "b", 4, 1, 5, 3, 2},
      {clef + clef + "b", 8, 1, 9, 5, 3},
      {"\t" + e + "\tb", 4, 1, 5, 4, 4},
      {"a\r\nb", 1, 1, 2, 2, 2},
      {"a\r\nb", 3, 2, 1, 1, 1},
      {e + "\r\n" + clef + "b", 8, 2, 5, 3, 2},
      {mark + e + "b", 5, 1, 3, 2, 2},
      {"a\n" + mark + "b", 5, 2, 4, 2, 2},
      {"\xFF"
       "b",
       1, 1, 2, 2, 2},
      {"", 0, 1, 1, 1, 1},
  };
  for (const Row& row : rows) {
    SourceTable files;
    const FileId file = files.add("a", row.text);
    SCOPED_TRACE(row.text);
    const std::pair<ColumnUnit, std::uint32_t> columns[] = {
        {ColumnUnit::byte, row.byte},
        {ColumnUnit::utf16, row.utf16},
        {ColumnUnit::code_point, row.code_point}};
    for (const auto& [unit, column] : columns) {
      const LineColumn at{row.line, column};
      EXPECT_EQ(files.line_column(file, row.offset, unit), at) << static_cast<int>(unit);
      EXPECT_EQ(files.offset(file, at, unit), std::min<std::size_t>(row.offset, row.text.size()))
          << static_cast<int>(unit);
    }
    EXPECT_EQ(files.line_column(file, row.offset), (LineColumn{row.line, row.code_point}));
  }
}

TEST(Sources, ColumnsBehindALineAreItsEnd) {
  const std::string clef = "\xF0\x9D\x84\x9E";
  SourceTable files;
  const FileId file = files.add("a", clef + "\r\nb\n");
  EXPECT_EQ(files.offset(file, {1, 99}, ColumnUnit::utf16), 4u);  // before CR LF
  EXPECT_EQ(files.offset(file, {1, 2}, ColumnUnit::utf16), 0u);   // inside a pair of units
  EXPECT_EQ(files.offset(file, {2, 99}, ColumnUnit::byte), 7u);
  EXPECT_EQ(files.offset(file, {9, 1}, ColumnUnit::byte), 8u);
}

TEST(Sources, PositionsAndOffsetsAreInverse) {
  test::for_each_case(300, [](test::Random& random) {
    static const std::vector<std::string> kParts = {"a", "\n", "\t", "ö", "日", "\r\n", "𝄞", " "};
    std::string text = random.chance(0.2) ? "\xEF\xBB\xBF" : "";
    std::vector<std::uint32_t> starts;
    for (std::int64_t count = random.between(0, 40); count > 0; --count) {
      starts.push_back(static_cast<std::uint32_t>(text.size()));
      text += random.pick(kParts);
    }
    starts.push_back(static_cast<std::uint32_t>(text.size()));
    SourceTable files;
    FileId file = files.add("a", text);
    LineColumn before{0, 0};
    for (std::uint32_t start : starts) {
      LineColumn at = files.line_column(file, start);
      EXPECT_LT(before, at);
      EXPECT_EQ(files.offset(file, at), start);
      EXPECT_LE(at.line, files.line_count(file));
      before = at;
    }
  });
}

TEST(Sources, LinesAreWithoutTheirBreak) {
  SourceTable files;
  FileId file = files.add("a", "one\r\ntwo\n\nlast");
  EXPECT_EQ(files.line_count(file), 4u);
  EXPECT_EQ(files.line_text(file, 1), "one");
  EXPECT_EQ(files.line_text(file, 2), "two");
  EXPECT_EQ(files.line_text(file, 3), "");
  EXPECT_EQ(files.line_text(file, 4), "last");
  EXPECT_EQ(files.line_text(file, 5), "");
  EXPECT_EQ(files.line_text(file, 0), "");
}

TEST(Sources, TextsStayWhereTheyAre) {
  SourceTable files;
  std::string_view text = files.text(files.add("a", "short"));
  for (int i = 0; i < 1000; ++i) files.add(std::to_string(i), "x");
  EXPECT_EQ(text, "short");
}

TEST(Locations, PrimaryIsTheInnermostLineOfTheUser) {
  LocationTable table;
  FileId user = table.files().add("a.pipe", "train\ncall\n");
  FileId library = table.files().add("std/x.pipe", "inner\nouter\n", true);
  LocId train = table.intern({user, 0, 5});
  LocId call = table.intern({user, 6, 10}, train);
  LocId outer = table.intern({library, 6, 11}, call);
  LocId inner = table.intern({library, 0, 5}, outer);
  EXPECT_EQ(table.primary(inner), (SourceRange{user, 6, 10}));
  EXPECT_EQ(table.primary(table.intern({library, 0, 5})), (SourceRange{library, 0, 5}));
  EXPECT_FALSE(table.primary(LocId()).valid());
  EXPECT_EQ(table.frames(inner).size(), 4u);
  EXPECT_EQ(table.intern({library, 0, 5}, outer), inner);
  EXPECT_NE(table.intern({library, 0, 5}, call), inner);
}

}  // namespace
}  // namespace piper
