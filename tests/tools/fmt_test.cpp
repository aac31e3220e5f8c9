// `piper fmt` on the disk.

#include <gtest/gtest.h>

#include "tests/tools/shell.h"

namespace piper::test {
namespace {

TEST(Fmt, RewritesFilesAndStandardInput) {
  const TemporaryFolder folder;
  folder.write("a.pipe", "mesh  m(p:2)\n");
  folder.write("b.pipe", "mesh m(p: 2)\n");
  const ProcessResult checked = shell(folder, "\"$0\" fmt --check a.pipe b.pipe");
  EXPECT_EQ(checked.exit_code, 1);
  EXPECT_EQ(checked.out, "a.pipe\n");
  const ProcessResult run = shell(folder, "chmod 640 a.pipe; ln -s a.pipe link.pipe; \"$0\" fmt link.pipe b.pipe && cat a.pipe && stat -c %a a.pipe && readlink link.pipe && ls");
  EXPECT_EQ(run.out, "mesh m(p: 2)\n640\na.pipe\na.pipe\nb.pipe\nlink.pipe\n") << run.err;
  EXPECT_EQ(shell(folder, "\"$0\" fmt --check a.pipe b.pipe").exit_code, 0);
  EXPECT_EQ(shell(folder, "printf 'mesh  m( p:2 )' | \"$0\" fmt -").out, "mesh m(p: 2)\n");
  EXPECT_EQ(shell(folder, "printf 'mesh  m( p:2 )' | \"$0\" fmt --check -").exit_code, 1);
  const ProcessResult missing = shell(folder, "\"$0\" fmt missing.pipe b.pipe");
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_NE(missing.err.find("P1001"), std::string::npos) << missing.err;
}

}  // namespace
}  // namespace piper::test
