// Entries of earlier sessions: kept, shortened, not kept.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "frontend/repl/history_file.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {
namespace {

using repl::HistoryFile;
using List = std::vector<std::string>;

TEST(HistoryFile, EntriesComeBackAsTheyWere) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "state" / "history").string();
  const List entries = {":grid zbv p=4", "schedule s(p: axis) {\n    let a = 1\n}",
                        "a \\n b",       "\\",
                        "größe = 1",     ":grid zbv p=4"};
  EXPECT_EQ(HistoryFile(path).read(), List());
  for (const std::string& entry : entries) EXPECT_EQ(HistoryFile(path).append(entry), "");
  EXPECT_EQ(HistoryFile(path).append(""), "");
  EXPECT_EQ(HistoryFile(path).read(), entries);
  struct stat status = {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0600u);
}

TEST(HistoryFile, TheLastOnesAreKept) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "history").string();
  const HistoryFile file(path);
  const auto lines = [&] {
    std::ifstream in(path);
    std::size_t count = 0;
    for (std::string line; std::getline(in, line);) ++count;
    return count;
  };
  for (std::size_t i = 0; i < 2 * HistoryFile::kKept; ++i) {
    if (i + 1 == 2 * HistoryFile::kKept) {
      EXPECT_EQ(file.read().size(), HistoryFile::kKept);
      EXPECT_EQ(lines(), i);
    }
    ASSERT_EQ(file.append("entry " + std::to_string(i)), "");
  }
  const List kept = file.read();
  ASSERT_EQ(kept.size(), HistoryFile::kKept);
  EXPECT_EQ(kept.back(), "entry " + std::to_string(2 * HistoryFile::kKept - 1));
  EXPECT_EQ(lines(), HistoryFile::kKept);
  EXPECT_EQ(file.read(), kept);
}

TEST(HistoryFile, ReportsUnwritableFiles) {
  const TemporaryFolder folder;
  EXPECT_EQ(HistoryFile("").append("a"), "");
  EXPECT_EQ(HistoryFile("").read(), List());
  const std::string as_folder = folder.path().string();
  EXPECT_EQ(HistoryFile(as_folder).read(), List());
  EXPECT_NE(HistoryFile(as_folder).append("a").find("is not kept for later sessions"),
            std::string::npos);
  const std::string pipe = (folder.path() / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(HistoryFile(pipe).read(), List());
  EXPECT_NE(HistoryFile(pipe).append("a"), "");
}

}  // namespace
}  // namespace piper::test
