// `piper show checkpoint` on checkpoints that no run of the tests writes, and the checkpoints in the
// JSON of `train`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "llvm/Support/JSON.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/piece_sums.h"
#include "runtime/checkpoint/safetensors.h"
#include "tests/support/golden.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/shell.h"
#include "tests/tools/transcript.h"

namespace piper::test {
namespace {

using runtime::StoredTensor;
using runtime::StoredType;
using testing::HasSubstr;
using testing::Not;

class ShowCheckpoint : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  /// Writes a checkpoint with these tensors in one file.
  void write(const std::string& name, std::vector<StoredTensor> tensors,
             const std::string& train = "t") {
    runtime::lay_out(tensors);
    std::string file = runtime::safetensors_header(tensors);
    if (!tensors.empty()) file.append(tensors.back().end, '\0');
    runtime::Manifest manifest;
    manifest.step = 3;
    manifest.train = train;
    manifest.files.push_back({"model.safetensors", file.size(), {}});
    std::vector<runtime::PartSum> sums;
    runtime::add_sums(0, 0, file.data(), file.size(), sums);
    ASSERT_TRUE(runtime::combine_sums(sums, manifest.files));
    folder_.write(name + "/model.safetensors", file);
    folder_.write(name + "/manifest.json", runtime::manifest_json(manifest));
  }

  ToolResult show(const std::string& name, std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {"show", "checkpoint", path(name)};
    words.insert(words.end(), more.begin(), more.end());
    return run_tool(words);
  }

  TemporaryFolder folder_;
};

TEST_F(ShowCheckpoint, NamesDoNotReachTheTerminalAsTheyAre) {
  const std::string name = "a\x1b[2J\nb", long_name(1000, 'n');
  write("run/step-3", {{name, StoredType::f32, {2}}, {long_name, StoredType::i64, {}}}, "t\x07");
  const ToolResult text = show("run");
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("\na\\x1b[2J\\x0ab "));
  EXPECT_THAT(text.out, HasSubstr("\ntrain      t\\x07\n"));
  EXPECT_THAT(text.out, HasSubstr("nnn...  "));
  EXPECT_THAT(text.out, Not(HasSubstr("\x1b")));
  const ToolResult json = show("run", {"--format", "json"});
  const auto value = llvm::cantFail(llvm::json::parse(json.out));
  const llvm::json::Array& parameters = *value.getAsObject()->getArray("parameters");
  ASSERT_EQ(parameters.size(), 2u);
  EXPECT_EQ(parameters[0].getAsObject()->getString("key"), llvm::StringRef(name));
  EXPECT_EQ(parameters[1].getAsObject()->getString("key"), llvm::StringRef(long_name));
}

TEST_F(ShowCheckpoint, EveryParameterHasARow) {
  std::vector<StoredTensor> tensors;
  for (int i = 0; i < 3000; ++i) {
    const std::string name = "layer." + std::to_string(i) + ".w";
    for (const char* part : {"", "m/", "v/"})
      tensors.push_back({part + name, StoredType::bf16, {4, 2}});
  }
  write("run/step-3", tensors);
  const ToolResult text = show("run/step-3");
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_EQ(std::count(text.out.begin(), text.out.end(), ','), 2 * 3000);
  EXPECT_THAT(text.out, testing::ContainsRegex(
                            "\nlayer.2999.w +\\[4, 2\\]  BF16 +16 bytes  m, v +32 bytes\n"));
  EXPECT_THAT(text.out,
              testing::ContainsRegex("\n3000 parameters  24000 elements +46.9KiB +93.8KiB\n"));
}

// Piper writes no such file.
TEST_F(ShowCheckpoint, OptimizerTensorsWithoutTheirParameterAreRows) {
  write(
      "run/step-3",
      {{"m/w", StoredType::f32, {2}}, {"v/x", StoredType::f32, {2}}, {"x", StoredType::f32, {2}}});
  const ToolResult text = show("run");
  EXPECT_THAT(text.out, HasSubstr("\nm/w "));
  EXPECT_THAT(text.out, Not(HasSubstr("\nv/x ")));
  EXPECT_THAT(text.out, HasSubstr("\n2 parameters "));
}

TEST_F(ShowCheckpoint, ARunWithoutTensorsIsShown) {
  write("run/step-3", {});
  const ToolResult text = show("run");
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("\n0 parameters  0 elements "));
}

TEST_F(ShowCheckpoint, ADamagedOneNamesTheOthersOfItsRun) {
  for (const char* name : {"run/step-1", "run/step-2", "run/step-3"})
    write(name, {{"w", StoredType::f32, {2}}});
  std::filesystem::resize_file(path("run/step-3/model.safetensors"), 20);
  for (const char* name : {"run", "run/step-3"}) {
    const ToolResult shown = show(name);
    EXPECT_EQ(shown.exit_code, 1) << name;
    EXPECT_THAT(shown.err, HasSubstr("error P6042: cannot read `"));
    EXPECT_THAT(shown.err, HasSubstr("` also has checkpoints of steps 1, 2\n"));
    EXPECT_EQ(shown.out, "");
  }
  EXPECT_EQ(show("run:2").exit_code, 0);
  const ToolResult listed = show("run:1");
  for (const char* row : {"\nstep-1 +[0-9]+ bytes  this one\n", "\nstep-2 +[0-9]+ bytes\n",
                          "\nstep-3 +[0-9]+ bytes\n"})
    EXPECT_THAT(listed.out, testing::ContainsRegex(row));
}

TEST_F(ShowCheckpoint, AnOutputReplacesNoFileOfTheRun) {
  for (const char* name : {"run/step-1", "run/step-3"}) write(name, {{"w", StoredType::f32, {2}}});
  for (const char* file : {"step-3/model.safetensors", "step-3/manifest.json",
                           "step-1/model.safetensors", "step-1/manifest.json"}) {
    const std::string before = read_text(path("run") + "/" + file).value_or("");
    EXPECT_THAT(show("run", {"-o", path("run") + "/" + file}).err, HasSubstr("error P6102: "));
    EXPECT_EQ(read_text(path("run") + "/" + file), before) << file;
  }
  EXPECT_EQ(show("run/step-3", {"-o", path("run/step-3/manifest.json")}).exit_code, 1);
  for (int time = 0; time < 2; ++time)
    EXPECT_EQ(show("run", {"-o", path("run/checkpoint.txt")}).exit_code, 0);
  EXPECT_THAT(read_text(path("run/checkpoint.txt")).value_or(""), HasSubstr("\nstep "));
}

/// The object that `train` prints.
llvm::json::Object train_json(std::vector<std::string> more, const std::string& program = kTiny) {
  std::vector<std::string> words = {"train", "tiny.pipe", "--interpret", "--format", "json"};
  words.insert(words.end(), more.begin(), more.end());
  const ToolResult run = run_tool(words, {{"tiny.pipe", program}});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  auto value = llvm::json::parse(run.out);
  EXPECT_TRUE(static_cast<bool>(value)) << run.out;
  return value ? *value->getAsObject() : llvm::json::Object();
}

TEST(TrainJson, HasTheCheckpointsOfTheRun) {
  const TemporaryFolder folder;
  const std::string run = (folder.path() / "run").string(),
                    beside = (folder.path() / "beside").string();
  const llvm::json::Object without = train_json({});
  for (const char* field : {"checkpoint", "resumed_from", "first_step", "held_out_losses"})
    EXPECT_EQ(without.get(field), nullptr) << field;

  const llvm::json::Object first = train_json({"--out", run});
  EXPECT_EQ(first.getString("checkpoint"), llvm::StringRef(run + "/step-3"));
  EXPECT_EQ(first.get("resumed_from"), nullptr);
  EXPECT_EQ(first.get("first_step"), nullptr);

  const llvm::json::Object second = train_json({"--resume", run, "--steps", "2"});
  EXPECT_EQ(second.getString("resumed_from"), llvm::StringRef(run + "/step-3"));
  EXPECT_EQ(second.getInteger("first_step"), 4);
  EXPECT_EQ(second.getInteger("steps"), 2);
  EXPECT_EQ(second.getString("checkpoint"), llvm::StringRef(run + "/step-5"));

  const llvm::json::Object anew =
      train_json({"--resume", run + ":3", "--only", "weights", "--out", beside});
  EXPECT_EQ(anew.getString("resumed_from"), llvm::StringRef(run + "/step-3"));
  EXPECT_EQ(anew.getInteger("first_step"), 1);
  EXPECT_EQ(anew.getString("checkpoint"), llvm::StringRef(beside + "/step-3"));
}

// 372 parameters with the two tensors of `adamw`, in f32.
TEST(CheckpointMemory, IsPlannedIfTheTrainKeepsCheckpoints) {
  const auto program = [](const std::string& lines) {
    return std::map<std::string, std::string>{
        {"kept.pipe",
         "use std.models.mlp\n"
         "mesh one(d: 1)\n"
         "train kept = mlp(layers: 2, features: 4, hidden: 6, classes: 3) on one {\n"
         "    data:  synthetic(batch: 8, classes: 3)\n"
         "    optim: adamw(lr: 1e-3)\n"
         "    steps: 3\n" +
             lines + "}\n"}};
  };
  const std::string keeps = "    checkpoint: every(2)\n";
  EXPECT_THAT(run_tool({"show", "memory", "kept.pipe", "--format", "json"}, program(keeps)).out,
              HasSubstr("\"checkpoint_bytes\":4464"));
  EXPECT_THAT(run_tool({"show", "memory", "kept.pipe", "--format", "json"}, program("")).out,
              Not(HasSubstr("checkpoint_bytes")));
  EXPECT_THAT(run_tool({"show", "memory", "kept.pipe"}, program(keeps)).out,
              HasSubstr("  checkpoint  "));
  const auto bounded = [&](const std::string& bound, const std::string& lines) {
    return run_tool({"check", "kept.pipe"},
                    program(lines + "    require host_memory " + bound + "\n"));
  };
  EXPECT_EQ(bounded("<= 4464", keeps).exit_code, 0);
  EXPECT_EQ(bounded("<= 0", "").exit_code, 0);
  const ToolResult refused = bounded("< 4464", keeps);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("error P4305: `host_memory` is 4.4KiB on rank "));
}

TEST(TrainJson, HasTheLossOfEveryEvaluation) {
  std::string program = kTiny;
  program.insert(program.find("    optim:"), "    held_out: synthetic(batch: 8, classes: 3)\n");
  const llvm::json::Object printed = train_json({}, program);
  const llvm::json::Array* losses = printed.getArray("held_out_losses");
  ASSERT_NE(losses, nullptr);
  ASSERT_EQ(losses->size(), 1u);
  EXPECT_EQ((*losses)[0].getAsObject()->getInteger("step"), 3);
  EXPECT_EQ((*losses)[0].getAsObject()->getNumber("loss"), printed.getNumber("held_out_loss"));
}

}  // namespace
}  // namespace piper::test
