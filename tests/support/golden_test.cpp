#include "tests/support/golden.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "tests/support/temporary_folder.h"

namespace piper::test {
namespace {

// Switches updating for one scope: these tests need both ways, whatever the program was started
// with.
class Updating {
 public:
  explicit Updating(bool on) : before_(updating()) { set_updating(on); }
  ~Updating() { set_updating(before_); }

 private:
  bool before_;
};

TEST(Golden, EqualTextPasses) {
  const TemporaryFolder folder;
  const Updating off(false);
  expect_golden(folder.write("a.out", "one\ntwo\n"), "one\ntwo\n");
}

TEST(Golden, DifferentTextFails) {
  const TemporaryFolder folder;
  const Updating off(false);
  const std::string path = folder.write("a.out", "one\ntwo\n");
  EXPECT_NONFATAL_FAILURE(expect_golden(path, "one\n2\n"), "- two\n+ 2\n");
  EXPECT_NONFATAL_FAILURE(expect_golden(path, "one\ntwo"), "no line break at the end");
}

TEST(Golden, MissingFileFails) {
  const TemporaryFolder folder;
  const Updating off(false);
  EXPECT_NONFATAL_FAILURE(expect_golden(folder.path() / "a.out", "one\n"), "does not exist");
}

TEST(Golden, UpdateWrites) {
  const TemporaryFolder folder;
  const Updating on(true);
  expect_golden(folder.path() / "new" / "a.out", "one\n");
  EXPECT_EQ(read_text(folder.path() / "new" / "a.out"), "one\n");
}

TEST(LineDifference, ShowsChangedLinesInContext) {
  EXPECT_EQ(line_difference("a\nb\nc\nd\ne\nf\n", "a\nb\nc\nX\nY\ne\nf\n"),
            "line 2:\n  b\n  c\n- d\n+ X\n+ Y\n  e\n  f\n");
  EXPECT_EQ(line_difference("a\n", "a\n"), "");
}

}  // namespace
}  // namespace piper::test
