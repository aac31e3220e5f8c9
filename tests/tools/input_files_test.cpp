// Files that a command or its program reads are never replaced by an output of the command.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"
#include "tests/tools/transcript.h"

namespace piper::test {
namespace {

using testing::HasSubstr;

constexpr const char* kProgram = R"(use lib.mine
model net() {
    input x: tensor[batch, one: 1]
    weight a[one] = constant(1)
    loss square(a * x)
}
train t = net() on pair {
    data:     arrays("DIR/rows.csv", batch: 2)
    held_out: arrays("DIR/rest.csv", batch: 2)
    optim:    sgd(lr: 0.1)
    steps:    1
    place model on p[0]
}
)";

struct File {
  const char* name;
  const char* text;
};
constexpr File kFiles[] = {
    {"lib/mine.pipe", "mesh pair(p: 1)\n"},
    {"rows.csv", "x\n1\n2\n"},
    {"rest.csv", "x\n3\n4\n"},
    {"machines.pipe",
     "mesh pair(p: 1)\nmachine lab on pair { all: device(flops: 1e9, bandwidth: 1GiB) }\n"},
    {"costs.json", "{\"schema\":1,\"bodies\":{}}\n"},
};

class InputFiles : public testing::Test {
 protected:
  InputFiles() {
    for (const File& file : kFiles) folder_.write(file.name, file.text);
    std::string program = kProgram;
    for (std::size_t at; (at = program.find("DIR")) != std::string::npos;)
      program.replace(at, 3, folder_.path().string());
    folder_.write("t.pipe", program);
  }

  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  std::string read(const std::string& name) const {
    std::ifstream in(path(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }

  TemporaryFolder folder_;
};

TEST_F(InputFiles, StayAsTheyAre) {
  struct Row {
    std::vector<std::string> words;
    std::string output;
  };
  const std::string program = path("t.pipe");
  const std::vector<Row> rows = {
      {{"train", program, "--interpret", "--profile"}, "t.pipe"},
      {{"train", program, "--interpret", "--trace"}, "t.pipe"},
      {{"train", program, "--interpret", "--profile"}, "rows.csv"},
      {{"train", program, "--interpret", "--trace"}, "rest.csv"},
      {{"train", program, "--interpret", "--profile"}, "lib/mine.pipe"},
      {{"show", "orders", program, "-o"}, "t.pipe"},
      {{"show", "orders", program, "-o"}, "lib/../t.pipe"},
      {{"show", "orders", program, "-o"}, "rows.csv"},
      {{"show", "grid", program, "-o"}, "lib/mine.pipe"},
      {{"simulate", program, "--machine", path("machines.pipe") + ":lab", "-o"}, "machines.pipe"},
      {{"simulate", program, "--costs", path("costs.json"), "-o"}, "costs.json"},
  };
  for (const Row& row : rows) {
    const std::string before = read(row.output);
    std::vector<std::string> words = row.words;
    words.push_back(path(row.output));
    const ToolResult run = run_tool(words);
    EXPECT_EQ(run.exit_code, 1) << words[0] << " " << row.output << "\n" << run.out << run.err;
    EXPECT_THAT(run.err, HasSubstr("error P6102: ")) << row.output;
    EXPECT_EQ(read(row.output), before) << words[0] << " " << row.output;
  }
  const ToolResult beside = run_tool({"show", "orders", program, "-o", path("orders.txt")});
  EXPECT_EQ(beside.exit_code, 0) << beside.err;
}

TEST_F(InputFiles, AreNotTheOtherFilesOfANamedFolder) {
  folder_.write("run/metrics.jsonl", "{\"phase\":\"training\",\"step\":1,\"loss\":2}\n");
  const auto show = [&](const std::string& output) {
    return run_tool({"show", "metrics", path("run"), "-o", path(output)});
  };
  for (int time = 0; time < 2; ++time) EXPECT_EQ(show("run/loss.txt").exit_code, 0);
  EXPECT_THAT(show("run/metrics.jsonl").err, HasSubstr("error P6102: "));
}

TEST_F(InputFiles, AreAllFilesOfAFolderOfTexts) {
  folder_.write("texts/a.txt", "some text that is long enough for a window");
  const std::string program =
      "use std.models.gpt\nmesh one(d: 1)\ntrain t = gpt(layers: 1, dim: 8, heads: 1, vocab: 256) on one { data: bytes(\"" +
      path("texts") + "\", batch: 2, seq: 8); optim: sgd(lr: 0.1); steps: 1 }\n";
  folder_.write("g.pipe", program);
  EXPECT_THAT(run_tool({"show", "orders", path("g.pipe"), "-o", path("texts/a.txt")}).err,
              HasSubstr("error P6102: "));
  EXPECT_EQ(run_tool({"show", "orders", path("g.pipe"), "-o", path("texts/new.txt")}).exit_code, 0);
}

TEST_F(InputFiles, AreTheWeightsThatATrainBeginsWith) {
  folder_.write("base/model.safetensors", "is read by a run alone");
  folder_.write("one.safetensors", "and this one, too");
  for (const std::string name : {"base", "one.safetensors"}) {
    folder_.write(
        "w.pipe",
        "model net() { input x: tensor[batch, one: 1]; weight a[one]; loss square(x * a) }\n"
        "mesh m(p: 1)\n"
        "train t = net() on m { data: synthetic(batch: 2); optim: sgd(lr: 0.1); steps: 1; init: weights(\"" +
            path(name) + "\") }\n");
    const std::string file = name == "base" ? path("base/model.safetensors") : path(name);
    const std::string before = read(file.substr(folder_.path().string().size() + 1));
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"show", "orders", path("w.pipe"), "-o", file},
          {"export", path("w.pipe"), "-o", path("one.safetensors")}}) {
      if (words[0] == "export" && name == "base") continue;
      EXPECT_THAT(run_tool(words).err, HasSubstr("error P6102: ")) << name;
    }
    EXPECT_EQ(read(file.substr(folder_.path().string().size() + 1)), before);
  }
}

TEST_F(InputFiles, TwoOutputsHaveTwoNames) {
  EXPECT_EQ(run_tool({"train", path("t.pipe"), "--interpret", "--profile", path("x.json"),
                      "--trace", path("x.json")})
                .exit_code,
            2);
}

}  // namespace
}  // namespace piper::test
