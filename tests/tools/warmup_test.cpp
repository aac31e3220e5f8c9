// A warm-up that is as long as the train, or longer, is warned of.

#include <gtest/gtest.h>

#include "tests/tools/transcript.h"

namespace piper::test {
namespace {

TEST(WarmUp, AsLongAsTheTrainIsWarnedOf) {
  for (const char* optimizer : {"sgd", "adamw"}) {
    for (const char* schedule : {"cosine", "linear", "flat"}) {
      for (const int steps : {1, 10}) {
        for (const int warmup : {0, 1, 9, 10, 11, 2000}) {
          const std::string source =
              "model net() {\n    input x: tensor[batch, dim: 3]\n    weight w[dim] = ones\n    loss square(x * w)\n}\nmesh one(p: 1)\nparam warm = " +
              std::to_string(warmup) +
              "\ntrain t = net() on one {\n    data:  synthetic(batch: 4)\n    optim: " +
              optimizer + "(lr: " + schedule +
              "(0.5, warmup: warm))\n    steps: " + std::to_string(steps) + "\n}\n";
          const bool as_long = warmup > 0 && warmup == steps, longer = warmup > steps;
          for (const std::vector<std::string>& words :
               {std::vector<std::string>{"check", "t.pipe"}, {"train", "t.pipe", "--interpret"}}) {
            const ToolResult run = run_tool(words, {{"t.pipe", source}});
            EXPECT_EQ(run.exit_code, 0) << run.err;
            EXPECT_EQ(run.err.find("warning P3077: ") != std::string::npos, as_long || longer)
                << source << run.err;
            EXPECT_EQ(run.err.find("reaches `base` in the last one alone") != std::string::npos,
                      as_long)
                << run.err;
            EXPECT_EQ(run.err.find("never reaches `base`, which is `0.5`") != std::string::npos,
                      longer)
                << run.err;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace piper::test
