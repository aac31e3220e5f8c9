// The program itself, as a process, and the examples with it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "tests/support/golden.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/transcript.h"

namespace piper::test {
namespace {

using testing::HasSubstr;
using testing::Not;

// The dynamic linker names every library that a process opens, so none is missed, whenever it is loaded.
TEST(Program, CheckLoadsNoTensorLibrary) {
  ProcessOptions options;
  options.environment = {{"LD_DEBUG", "files"}};
  const ProcessResult checked = run_process({program_path("piper"), "check", "zbv", "-D", "p=4", "-D", "m=8"}, options);
  EXPECT_EQ(checked.exit_code, 0);
  ASSERT_THAT(checked.err, HasSubstr("libstdc++")) << "the linker says what it loads";
  for (const char* library : {"libtorch", "libc10", "libgomp", "libcuda", "libnccl", "libmpi", "piper_torch"}) EXPECT_THAT(checked.err, Not(HasSubstr(library)));
}

TEST(Program, ExitCodes) {
  const auto exit_code = [](std::vector<std::string> words) {
    words.insert(words.begin(), program_path("piper"));
    return run_process(words).exit_code;
  };
  EXPECT_EQ(exit_code({"check", "zbv", "-D", "p=4", "-D", "m=8"}), 0);
  EXPECT_EQ(exit_code({"check", "zbw"}), 1);
  EXPECT_EQ(exit_code({"chekc"}), 2);
  EXPECT_EQ(exit_code({}), 2);
}

TEST(Program, StreamsAreSeparate) {
  const ProcessResult shown = run_process({program_path("piper"), "show", "orders", "gpipe", "-D", "p=2", "-D", "m=2"});
  EXPECT_EQ(shown.out, "rank 0: F0 F1 B0 B1\nrank 1: F0 F1 B0 B1\n");
  EXPECT_EQ(shown.err, "");
  const ProcessResult failed = run_process({program_path("piper"), "show", "orders", "gpipe"});
  EXPECT_EQ(failed.out, "");
  EXPECT_THAT(failed.err, HasSubstr("error P2322"));
}

// An output that takes no more is one diagnostic, not a silent half.
TEST(Program, FullOutputIsADiagnostic) {
  const ProcessResult shown =
      run_process({"/bin/sh", "-c", "exec \"$0\" show orders gpipe -D p=2 -D m=2 >/dev/full", program_path("piper")});
  EXPECT_EQ(shown.exit_code, 1);
  EXPECT_THAT(shown.err, HasSubstr("error P6102"));
}

std::set<std::string> example_files() {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("examples")) {
    if (entry.path().extension() == ".pipe") files.insert(entry.path().string());
  }
  return files;
}

TEST(Examples, AllAreClean) {
  const std::set<std::string> files = example_files();
  EXPECT_GE(files.size(), 4u);
  for (const std::string& file : files) {
    const ToolResult checked = run_tool({"check", file});
    EXPECT_EQ(checked.exit_code, 0) << file;
    EXPECT_EQ(checked.err, "") << file;
  }
}

TEST(Examples, SmallOnesTrain) {
  for (const char* file : {"examples/mlp/mlp.pipe", "examples/two_towers/two_towers.pipe", "examples/tied/tied.pipe"}) {
    const ToolResult run = run_tool({"train", file, "--steps", "2", "--interpret"});
    EXPECT_EQ(run.exit_code, 0) << file << ": " << run.err;
    EXPECT_THAT(run.out, HasSubstr("2 steps in ")) << file;
  }
}

TEST(Examples, AFileWithASettingOfItsOwnTextTrains) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 40; ++i) text += "a line of text that is number " + std::to_string(i) + "\n";
  const std::string corpus = folder.write("corpus.txt", text);
  const std::map<std::string, std::string> files = {{"text.pipe",
                                                     "use std.models.gpt\n"
                                                     "mesh one(d: 2)\n"
                                                     "param corpus = \"\"\n"
                                                     "train text = gpt(layers: 1, dim: 16, heads: 2, vocab: 256) on one {\n"
                                                     "    data:     bytes(corpus, batch: 4, seq: 8)\n"
                                                     "    held_out: bytes(corpus, batch: 4, seq: 8)\n"
                                                     "    optim:    adamw(lr: 1e-3)\n"
                                                     "    steps:    2\n"
                                                     "    replicate model over d\n"
                                                     "}\n"}};
  const ToolResult run = run_tool({"train", "text.pipe", "-D", "corpus=" + corpus, "--interpret"}, files);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("held-out loss "));
  EXPECT_THAT(run.out, HasSubstr("bigram model on the same text "));
}

}  // namespace
}  // namespace piper::test
