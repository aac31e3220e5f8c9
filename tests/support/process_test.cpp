#include "tests/support/process.h"

#include <gtest/gtest.h>

#include "tests/support/temporary_folder.h"

namespace piper::test {
namespace {

TEST(Process, CollectsOutputAndExitCode) {
  const ProcessResult result = run_process({"sh", "-c", "echo out; echo err >&2; exit 3"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.out, "out\n");
  EXPECT_EQ(result.err, "err\n");
  EXPECT_FALSE(result.timed_out);
}

TEST(Process, ReadsMoreThanAPipeHolds) {
  EXPECT_EQ(run_process({"sh", "-c", "head -c 1000000 /dev/zero"}).out.size(), 1000000u);
}

TEST(Process, KillsWhatRunsTooLong) {
  const ProcessResult result = run_process(
      {"sleep", "60"},
      {.environment = {}, .working_directory = {}, .limit = std::chrono::milliseconds(50)});
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.exit_code, 128 + 9);
}

TEST(Process, SetsEnvironmentAndFolder) {
  const TemporaryFolder folder;
  const ProcessResult result =
      run_process({"sh", "-c", "echo $PIPER_TEST_VALUE; pwd"},
                  {.environment = {{"PIPER_TEST_VALUE", "7"}}, .working_directory = folder.path()});
  EXPECT_EQ(result.out, "7\n" + folder.path().string() + "\n");
}

TEST(Process, MissingProgramIsExitCode127) {
  EXPECT_EQ(run_process({"no-such-program-anywhere"}).exit_code, 127);
}

}  // namespace
}  // namespace piper::test
