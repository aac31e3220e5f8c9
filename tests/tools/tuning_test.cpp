// Trains with tuned weights, moving averages and skipped steps, as commands run them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/golden.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/transcript.h"

namespace piper::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

constexpr const char* kProgram = R"(use std.models.mlp
mesh one(d: 1)
mesh two(d: 2)
param limit = 1e9
train plain = mlp(layers: 2, features: 4, hidden: 6, classes: 3) on one {
    data: synthetic(batch: 8, classes: 3)
    optim: adamw(lr: 0.01, weight_decay: 0.1)
    steps: 3
}
train averaged = mlp(layers: 2, features: 4, hidden: 6, classes: 3) on two {
    data: synthetic(batch: 8, classes: 3)
    optim: adamw(lr: 0.01, weight_decay: 0.1)
    steps: 3
    ema: 0.75
    skip_step: norm > limit
    tune stem with rate: 0
    freeze classify
    replicate model over d with zero: 2
}
train best = mlp(layers: 2, features: 4, hidden: 6, classes: 3) on one {
    data: synthetic(batch: 8, classes: 3)
    held_out: synthetic(batch: 8, classes: 3)
    optim: sgd(lr: 3)
    steps: 6
    checkpoint: every(1, keep: 1, best: true)
}
)";

class Tuning : public testing::Test {
 protected:
  Tuning() { folder_.write("t.pipe", kProgram); }

  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string text(const std::string& name) const { return *read_text(path(name)); }
  /// Runs a command; what it prints.
  std::string run(std::vector<std::string> words, int exit_code = 0) {
    if (words[0] == "train") words.push_back("--interpret");
    const ToolResult result = run_tool(words);
    EXPECT_EQ(result.exit_code, exit_code) << words[0] << " " << words[1] << "\n" << result.err;
    return result.out + result.err;
  }

  TemporaryFolder folder_;
};

TEST_F(Tuning, ExportsAverages) {
  EXPECT_THAT(run({"train", path("t.pipe"), "averaged", "--out", path("run")}),
              Not(HasSubstr("skipped")));
  const std::string shown = run({"show", "checkpoint", path("run")});
  EXPECT_THAT(shown, HasSubstr("ema, m, v"));
  run({"export", path("run"), "-o", path("weights.safetensors")});
  EXPECT_THAT(run({"export", path("run"), "--ema", "-o", path("averages.safetensors")}),
              HasSubstr("11 parameters of the averages of " + path("run/step-3") + " in "));
  EXPECT_NE(text("weights.safetensors"), text("averages.safetensors"));
  EXPECT_EQ(text("weights.safetensors").size(), text("averages.safetensors").size());
  run({"train", path("t.pipe"), "plain", "--out", path("plain")});
  EXPECT_THAT(run({"export", path("plain"), "--ema", "-o", path("none.safetensors")}, 1),
              HasSubstr("has no moving averages"));
  EXPECT_THAT(run({"export", path("t.pipe"), "plain", "--ema", "-o", path("none.safetensors")}, 2),
              HasSubstr("`--ema` is of a checkpoint"));
}

TEST_F(Tuning, SkipsEveryStep) {
  const std::string printed =
      run({"train", path("t.pipe"), "averaged", "--out", path("run"), "-D", "limit=1e-9"});
  EXPECT_THAT(printed,
              HasSubstr("skipped 3 steps: the gradient norm was above the limit of `skip_step`"));
  const std::string metrics = text("run/metrics.jsonl");
  EXPECT_THAT(metrics, HasSubstr("\"skipped\":true"));
  run({"train", path("t.pipe"), "averaged", "--out", path("zero"), "--steps", "0"});
  EXPECT_EQ(text("run/step-3/model.safetensors"), text("zero/step-0/model.safetensors"));
  EXPECT_EQ(text("run/step-3/optimizer.safetensors"), text("zero/step-0/optimizer.safetensors"));
}

TEST_F(Tuning, AveragesBeginAndEndWithARun) {
  const std::string program = path("t.pipe");
  std::string with = kProgram;
  const std::string optimizer = "weight_decay: 0.1)\n    steps: 3\n}";
  with.replace(with.find(optimizer), optimizer.size(),
               "weight_decay: 0.1)\n    steps: 3\n    ema: 0.5\n}");
  folder_.write("with.pipe", with);
  run({"train", program, "plain", "--out", path("run")});
  EXPECT_THAT(run({"train", path("with.pipe"), "plain", "--resume", path("run"), "--steps", "1"}),
              HasSubstr("the checkpoint has no moving averages: they begin at its parameters\n"));
  EXPECT_THAT(
      run({"train", program, "plain", "--resume", path("run"), "--steps", "1"}),
      HasSubstr(
          "the checkpoint has moving averages, and this train keeps none: they are left out\n"));
}

TEST_F(Tuning, ShowsFactors) {
  const std::string shown = run({"show", "dag", path("t.pipe"), "averaged", "--format", "pir"});
  EXPECT_THAT(shown, HasSubstr("rate 0"));
  EXPECT_THAT(shown, HasSubstr("  ema 0.75"));
  EXPECT_THAT(shown, HasSubstr("  skip_step norm > 1e+09"));
}

/// The rate is too high on purpose: held-out losses are 1.68, 2.60, 4.59, 1.46, 4.84 and 3.77.
TEST_F(Tuning, KeepsTheBestCheckpoint) {
  EXPECT_THAT(run({"train", path("t.pipe"), "best", "--out", path("run")}),
              HasSubstr("step 4: held-out loss 1.4"));
  EXPECT_THAT(run({"show", "checkpoint", path("run")}), HasSubstr("held out   loss 3.7"));
  std::vector<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(path("run"))) {
    if (entry.is_directory()) folders.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(folders, UnorderedElementsAre("step-4", "step-6"));
}

TEST_F(Tuning, WarnsOfCheckpointsWithoutAFolder) {
  EXPECT_THAT(run({"train", path("t.pipe"), "best"}),
              HasSubstr("warning P6114: the run has no folder, so it keeps no checkpoint"));
  EXPECT_THAT(run({"train", path("t.pipe"), "plain"}), Not(HasSubstr("P6114")));
}

}  // namespace
}  // namespace piper::test
