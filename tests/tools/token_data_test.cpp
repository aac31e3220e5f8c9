// `tokens(...)` from the program to the run: checks before compilation, training, resuming, and
// files that are kept from outputs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"
#include "tests/tools/transcript.h"

namespace piper::test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kProgram = R"(use std.models.gpt
mesh pair(d: 2)
param ids = "none"
param vocab = 300
train words = gpt(layers: 1, dim: 16, heads: 2, vocab: vocab) on pair {
    data:     tokens(ids, batch: 4, seq: 8, sampling: epoch)
    held_out: tokens(ids, batch: 4, seq: 8)
    optim:    adamw(lr: 1e-3)
    steps:    4
    replicate model over d
}
)";

/// Ids 0 to 299, over and over, as u16.
std::string ids(int number) {
  std::string bytes;
  for (int i = 0; i < number; ++i) {
    bytes += static_cast<char>(i % 300 & 0xFF);
    bytes += static_cast<char>(i % 300 >> 8);
  }
  return bytes;
}

class TokenData : public testing::Test {
 protected:
  TokenData() { folder_.write("words.pipe", kProgram); }

  ToolResult run(std::vector<std::string> words, const std::string& path,
                 const std::string& further = "") {
    words.insert(words.end(), {folder_.path() / "words.pipe", "-D", "ids=" + path});
    if (!further.empty()) words.insert(words.end(), {"-D", further});
    return run_tool(words);
  }

  TemporaryFolder folder_;
};

TEST_F(TokenData, TrainsAndIsEvaluated) {
  const std::string path = folder_.write("ids.bin", ids(333));
  EXPECT_EQ(run({"check"}, path).err, "");
  const ToolResult trained = run({"train", "--interpret"}, path);
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  // 41 windows side by side; the last batch has one.
  EXPECT_THAT(trained.out, HasSubstr(" over 11 batches, 41 samples\n"));
  EXPECT_THAT(trained.out, Not(HasSubstr("bigram")));
  const ToolResult compared = run({"train", "--interpret", "--reference"}, path);
  EXPECT_EQ(compared.exit_code, 0) << compared.out << compared.err;
}

TEST_F(TokenData, ForeignIdsAreNamedBeforeTheRun) {
  const std::string path = folder_.write("ids.bin", ids(333));
  const std::string warning = "warning P6108: `" + path +
                              "` has the token `200` at `200`, but the table that is looked "
                              "up has 200 rows\n";
  for (const char* command : {"check", "train"}) {
    const ToolResult result = run({command}, path, "vocab=200");
    EXPECT_THAT(result.err, HasSubstr(warning));
    EXPECT_THAT(result.err, HasSubstr("hint: ids are from 0 to 199: "));
  }
}

TEST_F(TokenData, DamagedFilesAreRefusedBeforeTheRun) {
  struct Row {
    std::string content, code, message;
  };
  const std::string path = folder_.path() / "ids.bin";
  for (const Row& row : {Row{ids(8), "P6007", "has `8` tokens; a window of `seq: 8` needs `9`"},
                         Row{ids(8) + "x", "P6060", "it has `17` bytes, no multiple of the `2`"}}) {
    folder_.write("ids.bin", row.content);
    const ToolResult checked = run({"check"}, path), trained = run({"train"}, path);
    EXPECT_EQ(checked.exit_code, 0);
    EXPECT_THAT(checked.err, HasSubstr("words.pipe:6:22: warning P6107: "));
    EXPECT_THAT(checked.err, HasSubstr(row.message));
    EXPECT_THAT(checked.err, HasSubstr("hint: `train` needs it: "));
    EXPECT_EQ(trained.exit_code, 1);
    EXPECT_THAT(trained.err, HasSubstr("words.pipe:6:22: error " + row.code + ": "));
    EXPECT_THAT(trained.err, HasSubstr(row.message));
  }
}

TEST_F(TokenData, ARunGoesOnWithTheSameTokensOnly) {
  const std::string path = folder_.write("ids.bin", ids(333)), out = folder_.path() / "run";
  ASSERT_EQ(run({"train", "--interpret", "--steps", "2", "--out", out}, path).exit_code, 0);
  const ToolResult resumed = run({"train", "--interpret", "--resume", out}, path);
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  folder_.write("ids.bin", ids(334));
  const ToolResult refused = run({"train", "--interpret", "--resume", out + ":2"}, path);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("error P6043: "));
  EXPECT_THAT(refused.err, HasSubstr("tokens, windows of 8 in epochs, 334 tokens, u16, crc32 "));
}

TEST_F(TokenData, ARunGoesOnInTheSameOrderOnly) {
  const std::string path = folder_.write("ids.bin", ids(333)), out = folder_.path() / "run";
  ASSERT_EQ(run({"train", "--interpret", "--steps", "2", "--out", out}, path).exit_code, 0);
  std::string other = kProgram;
  other.replace(other.find("sampling: epoch"), 15, "sampling: replacement");
  folder_.write("words.pipe", other);
  const ToolResult refused = run({"train", "--interpret", "--resume", out}, path);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("error P6043: "));
  EXPECT_THAT(refused.err, HasSubstr("tokens, windows of 8 in epochs, 333 tokens, u16, crc32 "));
  EXPECT_THAT(refused.err,
              HasSubstr("tokens, windows of 8 with replacement, 333 tokens, u16, crc32 "));
  // A new training with the weights may have any order.
  const ToolResult begun = run({"train", "--interpret", "--resume", out, "--only", "weights",
                                "--out", folder_.path() / "next"},
                               path);
  EXPECT_EQ(begun.exit_code, 0) << begun.err;
}

TEST_F(TokenData, NoOutputReplacesTokensOrTheirIndex) {
  const std::string path = folder_.write("ids.bin", ids(333)),
                    index = folder_.write("ids.idx", "no index");
  for (const std::string& file : {path, index}) {
    const ToolResult refused = run({"train", "--interpret", "--trace", file}, path);
    EXPECT_EQ(refused.exit_code, 1) << refused.out;
    EXPECT_THAT(refused.err, HasSubstr(file));
  }
}

}  // namespace
}  // namespace piper::test
