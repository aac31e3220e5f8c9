// Origins of nodes: nodes of a line in a called schedule name that line and its call, not the
// train.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/tools/transcript.h"

namespace piper::test {
namespace {

/// The schedules of the user; the model is the library's, so its nodes name the train.
constexpr const char* kSchedules = R"(schedule copies(dp: axis, z: int = 0) {
    replicate model over dp with zero: z
}
schedule stages(pp: axis, m: int = 2) {
    partition model into stage: pp
    split batch into mb: m
    for s in 0..pp { place stage[s] on pp[s] }
}
schedule again() {
    recompute model
}
schedule away() {
    offload model with window: 1
}
schedule state_away() {
    offload model with what: optimizer
}
schedule streams() {
    stream extra: model.send, model.recv, model.reduce
}
schedule ordered(pp: axis, m: int = 2) {
    order { rank r in pp { F stage[r]; B stage[r]; B stage[r].reduce } }
}
schedule everything(pp: axis, dp: axis) {
    stages(pp)
    copies(dp, z: 3)
    again()
}
)";

struct LineCase {
  const char* calls;  // each on a separate line, after `data`, `optim` and `steps`
  // The line of the schedules that makes the nodes: its beginning; of the library: empty.
  const char* made;
  std::vector<const char*> nodes;  // how their names begin
  int call;                        // which of the calls leads there, counted from 0
};
const LineCase kCases[] = {
    {"zero(dp)",
     "",
     {"all_gather.", "reduce_scatter.", "update.", "all_reduce.norm.", "all_reduce.loss"},
     0},
    {"zero(dp, stage: 1)",
     "",
     {"all_gather.", "reduce_scatter.", "update.", "sum_squares.", "all_reduce."},
     0},
    {"zero(dp, stage: 2)", "", {"all_gather.", "reduce_scatter.", "update."}, 0},
    {"copies(dp)", "    replicate model", {"all_reduce.model", "all_reduce.loss", "update."}, 0},
    {"copies(dp, z: 1)",
     "    replicate model",
     {"all_gather.", "reduce_scatter.", "update.", "all_reduce."},
     0},
    {"copies(dp, z: 3)", "    replicate model", {"all_gather.", "reduce_scatter.", "update."}, 0},
    {"stages(pp)\ncopies(dp, z: 1)",
     "    replicate model",
     {"all_gather.", "reduce_scatter.", "update."},
     1},
    {"stages(pp)\ncopies(dp)", "    for s in", {"send.", "recv.", "all_gather_v."}, 0},
    {"gpipe(pp, 2)\ncopies(dp)", "", {"send.", "recv.", "all_gather_v.", "F.", "B."}, 0},
    {"one_f_one_b(pp, 2)\nzero(dp)", "", {"all_gather.", "reduce_scatter.", "update."}, 1},
    {"stages(pp)\ncopies(dp)\nagain()", "    recompute model", {"R."}, 2},
    {"one_f_one_b(pp, 2)\ncopies(dp)\nagain()", "    recompute model", {"R."}, 2},
    {"stages(pp)\ncopies(dp)\naway()", "    offload model with window", {"offload.", "fetch."}, 2},
    {"copies(dp)\nstate_away()", "    offload model with what", {"offload.", "fetch."}, 1},
    {"stages(pp)\ncopies(dp)\nstreams()", "    for s in", {"send.", "recv."}, 0},
    {"stages(pp)\ncopies(dp)\nordered(pp)", "    order {", {"F.", "B.", "all_reduce.stage"}, 2},
    {"everything(pp, dp)", "    replicate model", {"all_gather.", "reduce_scatter.", "update."}, 0},
    {"everything(pp, dp)", "    recompute model", {"R."}, 0},
    {"everything(pp, dp)", "    for s in", {"send.", "recv."}, 0},
};

int line_of(const std::string& text, std::string_view beginning) {
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.starts_with(beginning)) return number;
  }
  return 0;
}

/// The lines of the user's file that the location of a line of a text goes through, innermost
/// first.
std::vector<int> lines_of(const std::string& node, const std::string& text) {
  std::vector<int> lines;
  const std::size_t number = node.rfind(" #");
  if (number == std::string::npos) return lines;
  const std::size_t begin =
      text.find("\n  " + node.substr(number + 2) + ' ', text.find("\nlocations {"));
  const std::string entry = text.substr(begin, text.find('\n', begin + 1) - begin);
  for (std::size_t at = entry.find("\"a.pipe\":"); at != std::string::npos;
       at = entry.find("\"a.pipe\":", at + 1))
    lines.push_back(std::stoi(entry.substr(at + 9)));
  return lines;
}

TEST(Locations, NodesNameTheLineThatMadeThemAndItsCall) {
  for (const LineCase& one : kCases) {
    std::string text =
        std::string(
            "use std.models.mlp\nuse std.schedules.gpipe\nuse std.schedules.one_f_one_b\nuse std.schedules.zero\n") +
        kSchedules + "mesh grid(pp: 2, dp: 2)\nmesh flat(dp: 2)\n";
    const bool staged = std::string_view(one.calls).find("pp") != std::string_view::npos;
    text +=
        std::string("train t = mlp(layers: 2, features: 4, hidden: 8, classes: 2) on ") +
        (staged ? "grid" : "flat") +
        " {\n    data: synthetic(batch: 8, classes: 2)\n    optim: adamw(lr: 0.1, clip: 1)\n    steps: 1\n";
    const int first_call = static_cast<int>(std::count(text.begin(), text.end(), '\n')) + 1;
    text += std::string(one.calls) + "\n}\n";
    const int made = *one.made == '\0' ? 0 : line_of(text, one.made), call = first_call + one.call;
    const ToolResult run = run_tool({"show", "dag", "a.pipe"}, {{"a.pipe", text}});
    ASSERT_EQ(run.exit_code, 0) << one.calls << "\n" << run.err;
    std::set<std::string_view> found;
    std::istringstream lines(run.out);
    for (std::string line; std::getline(lines, line);) {
      for (const char* node : one.nodes) {
        if (!line.starts_with(std::string("  ") + node) || line.find(" = ") == std::string::npos)
          continue;
        found.insert(node);
        const std::vector<int> through = lines_of(line, run.out);
        ASSERT_FALSE(through.empty()) << line;
        EXPECT_EQ(through.front(), made > 0 ? made : call) << one.calls << "\n" << line;
        EXPECT_NE(std::find(through.begin(), through.end(), call), through.end())
            << one.calls << "\n"
            << line;
      }
    }
    EXPECT_EQ(found.size(), one.nodes.size()) << one.calls;
  }
}

}  // namespace
}  // namespace piper::test
