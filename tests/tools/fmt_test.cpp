// `piper fmt` on the disk, and `piper completion` in a shell.

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

TEST(Completion, ShellsCompleteCommandsAndOptions) {
  const TemporaryFolder folder;
  folder.write("a.pipe", "mesh m(p: 2)\n");
  const std::string asks = "complete() { :; }; eval \"$(\"$0\" completion bash)\"; ask() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _piper; echo \"${COMPREPLY[@]}\"; }; ";
  const ProcessResult result = shell(folder, "exec bash -c '" + asks + "ask piper exp; ask piper train --ref; ask piper check a' \"$0\"");
  EXPECT_EQ(result.out, "explain\n--reference\na.pipe\n") << result.err;
  EXPECT_EQ(shell(folder, "\"$0\" completion tcsh").exit_code, 2);
  const ProcessResult fish = shell(folder, "\"$0\" completion fish");
  EXPECT_NE(fish.out.find("__fish_seen_subcommand_from train' -l reference -d "), std::string::npos) << fish.out;
  const ProcessResult zsh = shell(folder, "\"$0\" completion zsh");
  EXPECT_NE(zsh.out.find("'*--steps[number of steps]:N:'"), std::string::npos) << zsh.out;
}

}  // namespace
}  // namespace piper::test
