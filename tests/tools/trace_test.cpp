// `train --trace`: the actions that ran are those of the plan, in its order.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "llvm/Support/JSON.h"
#include "tests/support/golden.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/transcript.h"

namespace piper::test {
namespace {

constexpr const char* kProgram = R"(use std.models.mlp
use std.schedules.one_f_one_b
mesh grid(pp: 2, dp: 2)
train net = mlp(layers: 2, features: 4, hidden: 4, classes: 2) on grid {
    data:     synthetic(batch: 8, classes: 2)
    held_out: synthetic(batch: 8, classes: 2)
    optim: sgd(lr: 0.1)
    steps: 3
    one_f_one_b(pp, 4)
    replicate model over dp
}
)";

struct Slice {
  std::string name;
  double start, end;
};

/// Slices by process and thread, both by name, in the order of the file.
std::map<std::string, std::map<std::string, std::vector<Slice>>> slices_of(
    const std::string& text) {
  auto value = llvm::json::parse(text);
  if (!value) {
    ADD_FAILURE() << llvm::toString(value.takeError());
    return {};
  }
  std::map<std::int64_t, std::string> processes;
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> threads;
  std::map<std::string, std::map<std::string, std::vector<Slice>>> slices;
  for (const llvm::json::Value& each : *value->getAsObject()->getArray("traceEvents")) {
    const llvm::json::Object& event = *each.getAsObject();
    const std::int64_t process = *event.getInteger("pid"), thread = *event.getInteger("tid");
    if (*event.getString("name") == "process_name")
      processes[process] = event.getObject("args")->getString("name")->str();
    if (*event.getString("name") == "thread_name")
      threads[{process, thread}] = event.getObject("args")->getString("name")->str();
    if (*event.getString("ph") != "X") continue;
    const double start = *event.getNumber("ts");
    slices[processes[process]][threads[{process, thread}]].push_back(
        {event.getString("name")->str(), start, start + *event.getNumber("dur")});
  }
  return slices;
}

TEST(Trace, HasEveryActionOfThePlanOnEveryDevice) {
  for (const char* engine : {"--interpret", "--steps=1"}) {
    const TemporaryFolder folder;
    const std::string path = (folder.path() / "trace.json").string();
    const ToolResult run =
        run_tool({"train", "net.pipe", engine, "--trace", path}, {{"net.pipe", kProgram}});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto slices = slices_of(read_text(path).value_or(""));
    ASSERT_EQ(slices.size(), 4u + 2u);
    double first = 1e300;
    for (std::uint64_t rank = 0; rank < 4; ++rank) {
      const std::string role = rank < 2 ? "pp0" : "pp1";
      const auto measured =
                     slices.find("net, measured: rank " + std::to_string(rank) + " (" + role + ")"),
                 planned = slices.find("net, planned: " + role + " x 2");
      ASSERT_TRUE(measured != slices.end() && planned != slices.end());
      EXPECT_GE(measured->second.size(), 2u);
      for (const auto& [lane, actions] : planned->second) {
        ASSERT_TRUE(measured->second.contains(lane)) << lane;
        const std::vector<Slice>& ran = measured->second.at(lane);
        ASSERT_EQ(ran.size(), actions.size()) << lane;
        for (std::size_t i = 0; i < ran.size(); ++i) {
          EXPECT_EQ(ran[i].name, actions[i].name);
          EXPECT_LE(i == 0 ? 0 : ran[i - 1].end, ran[i].start + 1e-3) << ran[i].name;
          first = std::min(first, ran[i].start);
        }
      }
    }
    EXPECT_EQ(first, 0);
  }
}

TEST(Trace, PagesHoldBoth) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "trace.html").string();
  ASSERT_EQ(
      run_tool({"train", "net.pipe", "--interpret", "--trace", path}, {{"net.pipe", kProgram}})
          .exit_code,
      0);
  const std::string page = read_text(path).value_or("");
  EXPECT_NE(page.find("\"net, measured\""), std::string::npos);
  EXPECT_NE(page.find("\"net, planned\""), std::string::npos);
}

TEST(Trace, ThatCannotBeWrittenIsToldBeforeTheRun) {
  const TemporaryFolder folder;
  for (const std::string& path :
       {folder.path().string(), (folder.path() / "missing" / "trace.json").string()}) {
    const ToolResult run =
        run_tool({"train", "net.pipe", "--interpret", "--trace", path}, {{"net.pipe", kProgram}});
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_NE(run.err.find("error P6102: "), std::string::npos) << run.err;
    EXPECT_EQ(run.err.find("step 1/"), std::string::npos);
  }
}

}  // namespace
}  // namespace piper::test
