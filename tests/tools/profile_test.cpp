// `train --profile`: the costs of a run are those of its program's bodies, and `simulate --costs`
// takes them.
#include <gtest/gtest.h>

#include <numeric>
#include <sstream>

#include "llvm/Support/JSON.h"
#include "tests/support/golden.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/transcript.h"

namespace piper::test {
namespace {

std::string program(const std::string& model, int replicas) {
  return "use std.models.gpt\nuse std.models.mlp\nuse std.schedules.one_f_one_b\nmesh grid(pp: 2, dp: " +
         std::to_string(replicas) + ")\ntrain net = " + model +
         " on grid {\n    data:  synthetic(batch: 8, classes: 4" +
         (model.starts_with("gpt") ? ", seq: 4" : "") +
         ")\n    optim: sgd(lr: 0.1)\n    steps: 4\n    one_f_one_b(pp, 4)\n    replicate model over dp\n}\n";
}

/// The times behind the name of a rank, in seconds: `rank 0 (pp0)  1.2 ms  300 us  0`.
std::vector<double> times_of(const std::string& line) {
  std::vector<double> times;
  std::istringstream words(line.substr(line.find(')') + 1));
  for (std::string word; words >> word;) {
    const double scale = word == "ns"   ? 1e-9
                         : word == "us" ? 1e-6
                         : word == "ms" ? 1e-3
                         : word == "s"  ? 1
                                        : 0;
    if (scale > 0) {
      times.back() *= scale;
    } else {
      times.push_back(std::stod(word));
    }
  }
  return times;
}

TEST(Profile, HasTimesOfEveryBodyThatSimulateTakes) {
  for (const char* engine : {"--interpret", "--threads=1"}) {
    for (const auto& [model, replicas] :
         {std::pair("mlp(layers: 2, features: 4, hidden: 4, classes: 4)", 2),
          {"gpt(layers: 2, dim: 8, heads: 2, vocab: 4)", 1}}) {
      const TemporaryFolder folder;
      const std::string path = (folder.path() / "costs.json").string();
      const std::map<std::string, std::string> files = {
          {"net.pipe", program(model, replicas)},
          {"other.pipe", program("mlp(layers: 2, features: 4, hidden: 4, classes: 4)", replicas)}};
      const ToolResult run = run_tool({"train", "net.pipe", engine, "--profile", path}, files);
      ASSERT_EQ(run.exit_code, 0) << run.err;
      auto parsed = llvm::json::parse(read_text(path).value_or(""));
      ASSERT_TRUE(static_cast<bool>(parsed)) << llvm::toString(parsed.takeError());
      const llvm::json::Object& root = *parsed->getAsObject();
      EXPECT_EQ(root.getInteger("schema"), 1);
      EXPECT_EQ(root.getObject("bodies")->size(), 4u);  // F and B of two stages
      for (const char* part : {"bodies", "actions", "rates"}) {
        for (const auto& [key, value] : *root.getObject(part))
          EXPECT_GE(*value.getAsNumber(), 0) << part << " " << key.str();
      }
      EXPECT_FALSE(root.getObject("actions")->empty());
      // The parts of a rank's step are the step.
      std::size_t ranks = 0;
      for (std::size_t at = run.out.find("last step");
           at != std::string::npos && at < run.out.size(); at = run.out.find('\n', at) + 1) {
        const std::string line = run.out.substr(at, run.out.find('\n', at) - at);
        if (!line.starts_with("rank ")) {
          if (ranks > 0) break;
          continue;
        }
        ++ranks;
        const std::vector<double> times = times_of(line);
        ASSERT_EQ(times.size(), 6u) << line;
        EXPECT_NEAR(std::accumulate(times.begin() + 1, times.end(), 0.0), times[0], 0.02 * times[0])
            << line;
        EXPECT_GT(times[1], 0) << line;
        EXPECT_EQ(times[2] > 0, std::string(model).starts_with("gpt")) << line;
      }
      EXPECT_EQ(ranks, static_cast<std::size_t>(2 * replicas)) << run.out;
      const ToolResult simulated = run_tool({"simulate", "net.pipe", "--costs", path}, files);
      EXPECT_EQ(simulated.exit_code, 0);
      EXPECT_EQ(simulated.err, "");
      EXPECT_EQ(simulated.out.find("makespan "), 0u);
    }
  }
}

TEST(Profile, AnotherProgramGivesItsRates) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "costs.json").string();
  ASSERT_EQ(
      run_tool({"train", "net.pipe", "--interpret", "--profile", path},
               {{"net.pipe", program("mlp(layers: 2, features: 4, hidden: 4, classes: 4)", 1)}})
          .exit_code,
      0);
  const ToolResult simulated =
      run_tool({"simulate", "gpipe", "-D", "p=4", "-D", "m=4", "--costs", path});
  EXPECT_EQ(simulated.exit_code, 0);
  EXPECT_NE(simulated.err.find(
                "warning P6132: the file of costs has times of 4 of the program's 8 bodies"),
            std::string::npos)
      << simulated.err;
}

TEST(Profile, ThatCannotBeWrittenIsToldBeforeTheRun) {
  const TemporaryFolder folder;
  const ToolResult run =
      run_tool({"train", "net.pipe", "--interpret", "--profile",
                (folder.path() / "missing" / "costs.json").string()},
               {{"net.pipe", program("mlp(layers: 2, features: 4, hidden: 4, classes: 4)", 1)}});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_NE(run.err.find("error P6102: "), std::string::npos) << run.err;
  EXPECT_EQ(run.err.find("step 1/"), std::string::npos);
}

}  // namespace
}  // namespace piper::test
