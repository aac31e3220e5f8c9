#include "frontend/source/source_manager.h"

#include <gtest/gtest.h>

#include "tests/support/temporary_folder.h"

namespace piper {
namespace {

TEST(Source, FilesAreReadOnce) {
  LocationTable table;
  DiagnosticSink sink(table);
  source::MemoryFileSystem memory;
  memory.add("a.pipe", "one");
  std::optional<FileId> file = source::open("a.pipe", {}, memory, table.files(), sink);
  ASSERT_TRUE(file.has_value());
  memory.add("a.pipe", "two");
  EXPECT_EQ(source::open("a.pipe", {}, memory, table.files(), sink), file);
  EXPECT_EQ(table.files().text(*file), "one");
  EXPECT_TRUE(sink.empty());
}

TEST(Source, UnreadableFilesAreReportedWhereTheyWereNamed) {
  LocationTable table;
  DiagnosticSink sink(table);
  source::MemoryFileSystem memory;
  memory.add("large.pipe", std::string(source::kMaxFileSize + 1, ' '));
  memory.add("largest.pipe", std::string(source::kMaxFileSize, ' '));
  // A DAG is larger than its program.
  memory.add("large.pir", std::string(source::kMaxFileSize + 1, ' '));
  FileId main = table.files().add("main.pipe", "use missing");
  EXPECT_FALSE(
      source::open("missing.pipe", {main, 4, 11}, memory, table.files(), sink).has_value());
  EXPECT_FALSE(source::open("large.pipe", {}, memory, table.files(), sink).has_value());
  EXPECT_TRUE(source::open("largest.pipe", {}, memory, table.files(), sink).has_value());
  EXPECT_TRUE(source::open("large.pir", {}, memory, table.files(), sink).has_value());
  std::vector<Diagnostic> list = sink.sorted();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].code, Code::file_too_large);
  EXPECT_EQ(list[1].code, Code::unreadable_file);
  EXPECT_EQ(list[1].message, "cannot read `missing.pipe`: no such file or directory");
  EXPECT_EQ(list[1].range, (SourceRange{main, 4, 11}));
}

TEST(Source, TheDiskGivesBytesAndReasons) {
  test::TemporaryFolder folder;
  std::string path = folder.write("a.pipe", std::string("a\0\r\n\xFF", 5));
  source::RealFileSystem disk;
  EXPECT_EQ(disk.read(path, 100).text, std::string("a\0\r\n\xFF", 5));
  EXPECT_EQ(disk.read(path, 5).text->size(), 5u);
  EXPECT_EQ(disk.read(path, 4).too_large, 5u);
  EXPECT_EQ(disk.read(folder.path().string(), 100).error, "is a directory");
  EXPECT_EQ(disk.read(path + ".none", 100).error, "no such file or directory");
  EXPECT_EQ(disk.read("/dev/zero", 1000).text, std::nullopt);
}

}  // namespace
}  // namespace piper
