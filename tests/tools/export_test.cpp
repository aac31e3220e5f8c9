// `piper export`, and trains that begin with weights of files: values, types, layouts.
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

/// Trains of one model: on one device, on four with sharded state, and frozen in part.
constexpr const char* kProgram = R"(use std.models.mlp
use std.schedules.one_f_one_b
mesh one(d: 1)
mesh four(pp: 2, dp: 2)
train first = mlp(layers: 2, features: 4, hidden: 6, classes: 3) on one {
    data: synthetic(batch: 8, classes: 3); optim: adamw(lr: 0.01); steps: 2; seed: 5; dtype: DTYPE
}
train again = mlp(layers: 2, features: 4, hidden: 6, classes: 3) on one {
    data: synthetic(batch: 8, classes: 3); optim: adamw(lr: 0.01); steps: 2; dtype: DTYPE
    init: weights("w.safetensors")
}
train sharded = mlp(layers: 2, features: 4, hidden: 6, classes: 3) on four {
    data: synthetic(batch: 8, classes: 3); optim: adamw(lr: 0.01); steps: 2; dtype: DTYPE
    init: weights("w.safetensors")
    one_f_one_b(pp, 2)
    replicate model over dp with zero: 3
}
train frozen = mlp(layers: 2, features: 4, hidden: 6, classes: 3) on one {
    data: synthetic(batch: 8, classes: 3); optim: adamw(lr: 0.01); steps: 2; dtype: DTYPE
    init: weights("w.safetensors")
    freeze stem
}
)";

class Weights : public testing::TestWithParam<const char*> {
 protected:
  Weights() {
    std::string program = kProgram;
    for (std::size_t at; (at = program.find("DTYPE")) != std::string::npos;)
      program.replace(at, 5, GetParam());
    folder_.write("t.pipe", program);
  }

  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string text(const std::string& name) const { return *read_text(path(name)); }
  void run(std::vector<std::string> words) {
    if (words[0] == "train") words.push_back("--interpret");
    const ToolResult result = run_tool(words);
    EXPECT_EQ(result.exit_code, 0) << words[0] << " " << words[1] << "\n" << result.err;
    printed_ = result.out;
  }
  void export_to(const std::string& output, std::vector<std::string> words) {
    words.insert(words.begin(), "export");
    words.insert(words.end(), {"-o", path(output)});
    run(words);
  }

  TemporaryFolder folder_;
  std::string printed_;
};

/// The exported first values are those of a run of no step, and any layout begins with them again.
TEST_P(Weights, ComeBackFromTheirFile) {
  const std::string program = path("t.pipe");
  run({"train", program, "first", "--steps", "0", "--out", path("zero")});
  export_to("w.safetensors", {program, "first", "--dtype", "f64"});
  export_to("zero.safetensors", {path("zero"), "--dtype", "f64"});
  EXPECT_EQ(text("w.safetensors"), text("zero.safetensors"));
  for (const std::string train : {"again", "sharded"}) {
    export_to(train + ".safetensors", {program, train, "--dtype", "f64"});
    EXPECT_EQ(text(train + ".safetensors"), text("w.safetensors")) << train;
    run({"train", program, train, "--steps", "0", "--out", path(train)});
    EXPECT_THAT(printed_, HasSubstr("11 parameters from 11 tensors\n"));
    EXPECT_EQ(text(train + "/step-0/model.safetensors"), text("zero/step-0/model.safetensors"))
        << train;
  }
}

/// The one-device step begins with the weights of the file, too.
TEST_P(Weights, AreThoseOfTheReference) {
  const std::string program = path("t.pipe");
  export_to("w.safetensors", {program, "first"});
  run({"train", program, "sharded", "--reference"});
  EXPECT_THAT(printed_, HasSubstr("all bits"));
}

/// A frozen part is that of the file after training.
TEST_P(Weights, StayWhereTheyAreFrozen) {
  const std::string program = path("t.pipe");
  export_to("w.safetensors", {program, "first", "--dtype", GetParam()});
  run({"train", program, "frozen", "--out", path("run")});
  export_to("after.safetensors", {path("run"), "--dtype", GetParam()});
  const std::string before = text("w.safetensors"), after = text("after.safetensors");
  ASSERT_EQ(before.size(), after.size());
  EXPECT_NE(before, after);
  // `stem` is last by name: 6 and 24 numbers.
  const std::size_t bytes = 30 * (GetParam() == std::string("f64")   ? 8
                                  : GetParam() == std::string("f32") ? 4
                                                                     : 2);
  EXPECT_EQ(before.substr(before.size() - bytes), after.substr(after.size() - bytes));
}

INSTANTIATE_TEST_SUITE_P(Types, Weights, testing::Values("f64", "f32", "bf16"));

}  // namespace
}  // namespace piper::test
