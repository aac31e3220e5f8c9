// Checkpoints on the command line: `train --out`, `--resume` and `--only`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <vector>

#include "tests/support/golden.h"
#include "tests/tools/shell.h"

namespace piper::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

/// kTiny with an edit: state of the optimizer, and what the test changes.
std::string tiny(const std::string& from = "", const std::string& to = "") {
  std::string text = kTiny;
  text.replace(text.find("sgd(lr: 0.1)"), 12, "adamw(lr: cosine(0.1))");
  if (!from.empty()) text.replace(text.find(from), from.size(), to);
  return text;
}

/// A folder with the train, its whole run in `whole`, and its first two steps in `out`.
class Resume : public testing::Test {
 protected:
  void SetUp() override {
    folder_.write("tiny.pipe", tiny());
    const ProcessResult run = shell(folder_,
                                    "set -e; \"$0\" train tiny.pipe --interpret --out whole\n"
                                    "\"$0\" train tiny.pipe --interpret --out out --steps 2");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    ASSERT_THAT(run.out, HasSubstr("checkpoint whole/step-3\n"));
    ASSERT_THAT(run.out, HasSubstr("checkpoint out/step-2\n"));
  }

  ProcessResult train(const std::string& arguments) {
    return shell(folder_, "exec \"$0\" train " + arguments + " --interpret");
  }
  std::vector<std::string> names_in(const std::string& name) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path() / name))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  std::string read(const std::string& name) const {
    return read_text(folder_.path() / name).value_or("no file " + name);
  }
  /// Whether all files of two checkpoints are equal.
  bool are_equal(const std::string& a, const std::string& b) const {
    for (const char* const file : {"model.safetensors", "optimizer.safetensors", "manifest.json"}) {
      const auto text = read_text(folder_.path() / a / file);
      if (!text || text != read_text(folder_.path() / b / file)) return false;
    }
    return true;
  }
  /// The steps and losses of the metrics, without times.
  std::vector<std::string> losses(const std::string& out) const {
    std::vector<std::string> list;
    std::istringstream text(read(out + "/metrics.jsonl"));
    for (std::string line; std::getline(text, line);) {
      const std::size_t begin = std::min(line.find("\"step\""), line.size());
      list.push_back(line.substr(begin, line.find(",\"losses\"") - begin));
    }
    return list;
  }

  TemporaryFolder folder_;
};

TEST_F(Resume, ARunLeavesItsStateAndGoesOnFromIt) {
  EXPECT_EQ(
      names_in("whole/step-3"),
      (std::vector<std::string>{"manifest.json", "model.safetensors", "optimizer.safetensors"}));
  const ProcessResult run = train("tiny.pipe --resume out");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("resumed from out/step-2, after 16 samples\n"));
  EXPECT_THAT(run.out, HasSubstr("\n1 step in "));
  EXPECT_THAT(run.out, HasSubstr("checkpoint out/step-3\n"));
  EXPECT_THAT(run.out, Not(HasSubstr("kept in")));
  EXPECT_EQ(names_in("out"), (std::vector<std::string>{"flight.0", "flight.1", "metrics.jsonl",
                                                       "step-2", "step-3"}));
  EXPECT_TRUE(are_equal("out/step-3", "whole/step-3"));
  EXPECT_EQ(losses("out"), losses("whole"));
  EXPECT_EQ(losses("out").size(), 3u);
}

struct Row {
  const char* arguments;
  const char* out;  // the folder of the new checkpoint
};

/// Every way to name the same checkpoint.
TEST_F(Resume, TheCommandLineNamesACheckpoint) {
  for (const Row& row : {Row{"tiny.pipe --resume out:2 --out a", "a/step-3"},
                         Row{"tiny.pipe --resume out/step-2 --out b", "b/step-3"},
                         Row{"tiny.pipe --resume out/ --steps 1 --out c", "c/step-3"},
                         Row{"tiny.pipe --resume out/step-2/", "out/step-3"}}) {
    const ProcessResult run = train(row.arguments);
    ASSERT_EQ(run.exit_code, 0) << row.arguments << run.err;
    EXPECT_THAT(run.out, HasSubstr(std::string("checkpoint ") + row.out + "\n"));
    EXPECT_TRUE(are_equal(row.out, "whole/step-3")) << row.arguments;
  }
  // In the folder of the run, where the name of the checkpoint has no folder before it.
  for (const char* const script :
       {"cd out && exec \"$0\" train ../tiny.pipe --resume step-2 --interpret",
        "cd out/step-2 && exec \"$0\" train ../../tiny.pipe --resume . --interpret"}) {
    const ProcessResult run = shell(folder_, script);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_TRUE(are_equal("out/step-3", "whole/step-3"));
    EXPECT_EQ(losses("out"), losses("whole"));
    EXPECT_TRUE(fs::exists(folder_.path() / "out/step-2"));
  }
}

/// Repeated steps leave the table; TensorBoard gets an event file per run, in order.
TEST_F(Resume, LogsGoOn) {
  const std::string both = " --log csv --log=tensorboard --log csv";
  ASSERT_EQ(train("tiny.pipe --out logs --steps 2" + both).exit_code, 0);
  for (const char* const from : {"logs", "logs:2"}) {
    const ProcessResult run = train("tiny.pipe --resume " + (from + both));
    ASSERT_EQ(run.exit_code, 0) << run.err;
    std::istringstream table(read("logs/metrics.csv"));
    std::vector<std::string> steps;
    for (std::string line; std::getline(table, line);)
      steps.push_back(line.substr(0, line.find(',')));
    EXPECT_EQ(steps, (std::vector<std::string>{"step", "1", "2", "3"}));
  }
  EXPECT_EQ(names_in("logs/tensorboard").size(), 3u);
  for (const std::string& name : names_in("logs/tensorboard"))
    EXPECT_THAT(read("logs/tensorboard/" + name), HasSubstr("brain.Event:2"));
  const ProcessResult next = train("tiny.pipe --out logs --log csv");
  EXPECT_EQ(next.exit_code, 0) << next.err;
  EXPECT_THAT(next.out, HasSubstr("the metrics of the run before are kept in logs/metrics.1.jsonl, "
                                  "logs/metrics.1.csv and logs/tensorboard.1\n"));
  EXPECT_EQ(names_in("logs/tensorboard.1").size(), 3u);
  EXPECT_FALSE(fs::exists(folder_.path() / "logs/tensorboard"));
  // Another loss has another column.
  folder_.write("logs/metrics.csv", "step,loss,losses/other\n");
  const ProcessResult other = train("tiny.pipe --resume logs --steps 1 --log csv");
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.err, HasSubstr("error P6012: cannot write `logs/metrics.csv`: it has other "
                                   "columns than this run; no rows would be kept"));
}

/// Checkpoints and metrics of the steps that a run repeats are moved aside or removed.
TEST_F(Resume, LaterStepsAreKeptAside) {
  const ProcessResult first = train("tiny.pipe --resume whole --steps 2");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("checkpoint whole/step-5\n"));
  EXPECT_EQ(losses("whole").size(), 5u);
  const ProcessResult again = train("tiny.pipe --resume whole:3 --steps 1");
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("later checkpoints are kept in whole/checkpoints.1\n"));
  EXPECT_EQ(names_in("whole/checkpoints.1"), std::vector<std::string>{"step-5"});
  EXPECT_EQ(names_in("whole"), (std::vector<std::string>{"checkpoints.1", "flight.0", "flight.1",
                                                         "metrics.jsonl", "step-3", "step-4"}));
  EXPECT_EQ(losses("whole").size(), 4u);
  // A new run in the folder keeps all of it aside.
  const ProcessResult other = train("tiny.pipe --out whole --steps 1");
  ASSERT_EQ(other.exit_code, 0) << other.err;
  EXPECT_THAT(other.out,
              HasSubstr("the checkpoints of the run before are kept in whole/checkpoints.2\n"));
  EXPECT_EQ(names_in("whole"),
            (std::vector<std::string>{"checkpoints.1", "checkpoints.2", "flight.0", "flight.1",
                                      "metrics.1.jsonl", "metrics.jsonl", "step-1"}));
}

TEST_F(Resume, AnotherLayoutGoesOn) {
  const std::string line = "replicate model over pp";
  for (
      const char* const other :
      {"place model on pp[0]", "replicate model over pp with zero: 3",
       "partition model into stage: 2; split batch into mb: 2; for s in 0..2 { place stage[s] on pp[s] }"}) {
    folder_.write("other.pipe", tiny(line, other));
    const ProcessResult run = train("other.pipe --resume out --out other");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("resumed from out/step-2, after 16 samples\n"));
    EXPECT_THAT(run.out, HasSubstr("checkpoint other/step-3\n"));
    EXPECT_EQ(names_in("out"),
              (std::vector<std::string>{"flight.0", "flight.1", "metrics.jsonl", "step-2"}));
  }
}

/// Steps are counted in batches, so those of the run before are others.
TEST_F(Resume, AnotherBatchGoesOnBySamples) {
  struct Batch {
    const char *batch, *steps, *words, *checkpoint;
  };
  for (const Batch& row :
       {Batch{"16", "2", "the batch was 8 and is 16: those samples are 1 step\n", "step-3"},
        Batch{"4", "1", "the batch was 8 and is 4: those samples are 4 steps\n", "step-5"}}) {
    folder_.write("other.pipe", tiny("batch: 8", std::string("batch: ") + row.batch));
    const ProcessResult copied = shell(folder_, "rm -rf other; cp -r out other");
    ASSERT_EQ(copied.exit_code, 0);
    const ProcessResult run = train(std::string("other.pipe --resume other --steps ") + row.steps);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr(row.words));
    EXPECT_THAT(run.out,
                HasSubstr("the checkpoints of the run before are kept in other/checkpoints.1\n"));
    EXPECT_EQ(names_in("other"),
              (std::vector<std::string>{"checkpoints.1", "flight.0", "flight.1", "metrics.1.jsonl",
                                        "metrics.jsonl", row.checkpoint}));
    const std::string manifest = read(std::string("other/") + row.checkpoint + "/manifest.json");
    EXPECT_THAT(manifest,
                HasSubstr(std::string("\"updates\":") + (row.steps[0] == '2' ? "4" : "3")));
  }
}

TEST_F(Resume, OtherSettingsAreNamed) {
  folder_.write("other.pipe", tiny("cosine(0.1)", "0.2"));
  const ProcessResult run = train("other.pipe --resume out --out other");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(
      run.out,
      HasSubstr("the learning rate was cosine from 0.1 to 0, 3 steps and is constant 0.2\n"));
  const ProcessResult over = train("tiny.pipe --resume whole");
  ASSERT_EQ(over.exit_code, 0) << over.err;
  EXPECT_THAT(over.out, HasSubstr("the train has no further step: `steps` is 3 or less\n"));
  EXPECT_THAT(over.out, Not(HasSubstr("checkpoint whole")));
  EXPECT_EQ(losses("whole").size(), 3u);
  // With more steps it has some.
  folder_.write("longer.pipe", tiny("steps: 3", "steps: 5"));
  const ProcessResult longer = train("longer.pipe --resume whole");
  ASSERT_EQ(longer.exit_code, 0) << longer.err;
  EXPECT_THAT(longer.out, HasSubstr("checkpoint whole/step-5\n"));
}

/// Parameters alone begin a new training.
TEST_F(Resume, OnlyWeightsBeginANewTrain) {
  std::string text = tiny("cosine(0.1)", "0.05");
  text.replace(text.find("steps: 3"), 8, "steps: 1; seed: 5; dtype: bf16");
  folder_.write("other.pipe", text);
  const ProcessResult refused = train("other.pipe --resume out");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err,
              HasSubstr("error P6043: `out/step-2` is a checkpoint of another training"));
  EXPECT_THAT(refused.err, HasSubstr("its seed is"));
  EXPECT_THAT(refused.err, HasSubstr("--only weights"));
  const ProcessResult run = train("other.pipe --resume out --only weights --out new");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("parameters of out/step-2, after 2 steps\n"));
  EXPECT_THAT(run.out, HasSubstr("checkpoint new/step-1\n"));
  EXPECT_THAT(read("new/step-1/manifest.json"), HasSubstr("\"samples\":8,\"updates\":1"));
  EXPECT_EQ(losses("new").size(), 1u);
}

struct Refused {
  const char* name;
  const char* script;
  int exit_code;
  std::vector<const char*> words;
};

TEST_F(Resume, OtherTrainsAndDamageAreRefused) {
  folder_.write("wider.pipe", tiny("hidden: 6", "hidden: 7"));
  folder_.write("sgd.pipe", kTiny);
  folder_.write("file", "");
  for (
      const Refused& row : {
          Refused{"another model",
                  "exec \"$0\" train wider.pipe --resume out --interpret",
                  1,
                  {"error P6043: `out/step-2` is a checkpoint of another training",
                   "and that of this model is F32[", "hint: "}},
          Refused{"weights of another model",
                  "exec \"$0\" train wider.pipe --resume out --only weights --interpret --out new",
                  1,
                  {"error P6043: `out/step-2` has other parameters than this model"}},
          Refused{"another optimizer",
                  "exec \"$0\" train sgd.pipe --resume out --interpret",
                  1,
                  {"error P6043: ", "its optimizer is `adamw`, and that of this train is `sgd`"}},
          Refused{"no folder",
                  "exec \"$0\" train tiny.pipe --resume none --interpret",
                  1,
                  {"error P6044: there is no folder `none`", "hint: "}},
          Refused{"no checkpoint",
                  "exec \"$0\" train tiny.pipe --resume . --interpret",
                  1,
                  {"error P6044: `.` has no complete checkpoint"}},
          Refused{
              "no such step",
              "exec \"$0\" train tiny.pipe --resume out:7 --interpret",
              1,
              {"error P6044: `out` has no checkpoint of step 7", "hint: it has those of steps 2"}},
          Refused{
              "a file that is cut short",
              "cp -r out cut; truncate -s 200 cut/step-2/optimizer.safetensors; exec \"$0\" train "
              "tiny.pipe --resume cut --interpret",
              1,
              {"error P6042: cannot read `cut/step-2/optimizer.safetensors`: it has `200` bytes"}},
          Refused{
              "a damaged byte",
              "cp -r out bad; printf x | dd of=bad/step-2/model.safetensors bs=1 seek=900 "
              "conv=notrunc 2>dd.err; exec \"$0\" train tiny.pipe --resume bad --interpret",
              1,
              {"error P6042: cannot read `bad/step-2/model.safetensors`: the bytes from 0 to "}},
          Refused{
              "metrics that are no file",
              "cp -r out fifo; rm fifo/metrics.jsonl; mkfifo fifo/metrics.jsonl; exec \"$0\" train "
              "tiny.pipe --resume fifo --interpret",
              1,
              {"error P6012: cannot write `fifo/metrics.jsonl`: it is no plain file"}},
          Refused{"an unwritable folder",
                  "exec \"$0\" train tiny.pipe --resume out --out file/new --interpret",
                  1,
                  {"error P6102: the folder `file/new` cannot be made: not a directory"}},
          Refused{"parts without a checkpoint",
                  "exec \"$0\" train tiny.pipe --only weights --interpret",
                  2,
                  {"`--only` says what is taken from a checkpoint: write `--resume DIR`, too"}},
          Refused{"other parts",
                  "exec \"$0\" train tiny.pipe --resume out --only optimizer --interpret",
                  2,
                  {"`--only optimizer` is no part of a checkpoint: write `--only weights`"}},
          Refused{"a comparison",
                  "exec \"$0\" train tiny.pipe --resume out --reference --interpret",
                  2,
                  {"`--resume` is of a training run: leave out `--reference`"}},
      }) {
    SCOPED_TRACE(row.name);
    const ProcessResult run = shell(folder_, row.script);
    EXPECT_FALSE(run.timed_out);
    EXPECT_EQ(run.exit_code, row.exit_code) << run.err;
    for (const char* const words : row.words) EXPECT_THAT(run.err, HasSubstr(words));
    // The folder of the run is as it was.
    EXPECT_EQ(names_in("out"),
              (std::vector<std::string>{"flight.0", "flight.1", "metrics.jsonl", "step-2"}));
  }
  const ProcessResult run = train("tiny.pipe --resume out");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(are_equal("out/step-3", "whole/step-3"));
}

/// Remains of a killed run are removed by the next one.
TEST_F(Resume, RemainsOfAKilledRunAreRemoved) {
  folder_.write("out/.step-3.partial/model.safetensors", std::string(100'000, 'x'));
  folder_.write("out/.step-1.removed/manifest.json", "");
  const ProcessResult run = train("tiny.pipe --resume out");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(are_equal("out/step-3", "whole/step-3"));
  EXPECT_EQ(names_in("out"), (std::vector<std::string>{"flight.0", "flight.1", "metrics.jsonl",
                                                       "step-2", "step-3"}));
}

/// A signal ends the run at a step, and its state is kept: resumed, it is as if it had never ended.
TEST_F(Resume, AnInterruptedRunKeepsItsState) {
  folder_.write("long.pipe", tiny("steps: 3", "steps: 100000000"));
  const ProcessResult run =
      shell(folder_,
            "\"$0\" train long.pipe --interpret --out long >long.out 2>long.err & first=$!\n"
            "until [ -s long/metrics.jsonl ]; do kill -0 $first || exit 9; sleep 0.02; done\n"
            "kill -TERM $first; wait $first; [ $? = 130 ] || exit 8\n"
            "set -e; cat long.out; cp -r long copy\n"
            "\"$0\" train long.pipe --interpret --resume long --steps 2\n"
            "\"$0\" train long.pipe --interpret --resume copy --steps 1\n"
            "\"$0\" train long.pipe --interpret --resume copy --steps 1\n");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  std::vector<std::string> steps;
  for (const std::string& name : names_in("long")) {
    if (name.starts_with("step-")) steps.push_back(name.substr(5));
  }
  ASSERT_EQ(steps.size(), 2u);
  const std::uint64_t stopped = std::min(std::stoull(steps[0]), std::stoull(steps[1])),
                      end = std::max(std::stoull(steps[0]), std::stoull(steps[1]));
  EXPECT_EQ(end, stopped + 2);
  EXPECT_THAT(run.out, HasSubstr("checkpoint long/step-" + std::to_string(stopped) +
                                 ": `--resume long/step-" + std::to_string(stopped) +
                                 "` goes on from it\n"));
  EXPECT_TRUE(are_equal("long/step-" + std::to_string(end), "copy/step-" + std::to_string(end)));
  EXPECT_EQ(losses("long"), losses("copy"));
}

}  // namespace
}  // namespace piper::test
