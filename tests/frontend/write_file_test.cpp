// Files are written whole: replaced at once, through links, with the permissions that they had.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "frontend/source/write_file.h"
#include "tests/support/golden.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {
namespace {

namespace fs = std::filesystem;

TEST(WriteFile, ReplacesWhatIsThere) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a.txt", "old"),
                    link = (folder.path() / "link.txt").string(),
                    fresh = (folder.path() / "fresh.txt").string();
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
  const fs::perms before = fs::status(path).permissions();
  fs::create_symlink("a.txt", link);
  EXPECT_FALSE(source::write_file(link, "new"));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(read_text(path), "new");
  EXPECT_EQ(fs::status(path).permissions(), before);
  EXPECT_FALSE(source::write_file(fresh, "first"));
  EXPECT_EQ(read_text(fresh), "first");
  EXPECT_TRUE(source::same_file(path, link));
  EXPECT_FALSE(source::same_file(path, fresh));
  EXPECT_FALSE(source::same_file(path, (folder.path() / "nothing").string()));
}

TEST(WriteFile, SaysWhatItCannot) {
  const TemporaryFolder folder;
  EXPECT_TRUE(source::write_file(folder.path().string(), "text"));
  EXPECT_TRUE(source::write_file((folder.path() / "no/folder.txt").string(), "text"));
  EXPECT_TRUE(source::write_file("/dev/full", "text"));
  EXPECT_FALSE(source::write_file("/dev/null", "text"));
}

TEST(WriteFile, LooksWithoutWriting) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a.txt", "old"),
                    fresh = (folder.path() / "fresh.txt").string();
  EXPECT_FALSE(source::check_writable(path));
  EXPECT_EQ(read_text(path), "old");
  EXPECT_FALSE(source::check_writable(fresh));
  EXPECT_FALSE(source::check_writable("/dev/null"));
  EXPECT_TRUE(source::check_writable(folder.path().string()));
  EXPECT_TRUE(source::check_writable((folder.path() / "no/folder.txt").string()));
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder.path())) ++files;
  EXPECT_EQ(files, 1u);
}

/// A concurrent reader sees one text or the other.
TEST(WriteFile, NobodyReadsAHalf) {
  const TemporaryFolder folder;
  const std::string a(100'000, 'a'), b(70'000, 'b'), path = folder.write("page.html", a);
  std::thread writer([&] {
    for (int i = 0; i < 50; ++i) EXPECT_FALSE(source::write_file(path, i % 2 == 0 ? b : a));
  });
  for (int i = 0; i < 200; ++i) {
    const std::string text = read_text(path).value_or("");
    EXPECT_TRUE(text == a || text == b) << text.size();
  }
  writer.join();
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder.path())) ++files;
  EXPECT_EQ(files, 1u);
}

}  // namespace
}  // namespace piper::test
