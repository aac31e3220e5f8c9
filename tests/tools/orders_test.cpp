// Orders and grids: the output for a schedule by itself holds with every model, and grids on pages
// equal the real output.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include "tests/support/golden.h"
#include "tests/tools/transcript.h"

namespace piper::test {
namespace {

// ---- a schedule is legal or not by itself

struct OrderCase {
  const char* what;
  const char* steps;  // of rank r
  bool legal;
};
constexpr OrderCase kOrders[] = {
    {"one forward, one half of a backward",
     "cursor a = stage[r] mb[0..m]; repeat p - 1 - r { F a }; repeat left(F a) { F a; BI a }; repeat left(B a) { BI a }; repeat left(BW a) { BW a }",
     true},
    {"the same without the input gradients of later stages",
     "cursor a = stage[r] mb[0..m]; repeat r { F a }; repeat left(F a) { F a; BI a }; repeat left(B a) { BI a }; repeat left(BW a) { BW a }",
     false},
    {"all forwards first",
     "cursor a = stage[r] mb[0..m]; repeat left(F a) { F a }; repeat left(B a) { BI a; BW a }",
     true},
    {"whole backwards beside halves",
     "cursor a = stage[r] mb[0..m]; repeat left(F a) { F a }; for i in 0..m { if r == 0 { B a } else { BI a } }; if r > 0 { repeat left(BW a) { BW a } }",
     true},
    {"the last microbatch goes back first on one rank",
     "for i in 0..m { F stage[r] mb[i] }; for i in 0..m { let k = if r == 0 then m - 1 - i else i; BI stage[r] mb[k] }; repeat m { BW }",
     true},
};

/// How the model is cut, and which model.
struct ModelCase {
  const char* model;  // empty: the schedule by itself
  const char* sizes;
};
constexpr ModelCase kModels[] = {
    {"", ""},
    {"", " with sizes: [1, 3]"},
    {"mlp(layers: 2, features: 4, hidden: 4, classes: 2)", ""},
    {"mlp(layers: 2, features: 4, hidden: 4, classes: 2)", " with sizes: [1, 3]"},
    {"mlp(layers: 2, features: 4, hidden: 4, classes: 2)", " with sizes: [3, 1]"},
    {"mlp(layers: 0, features: 4, hidden: 4, classes: 2)", ""},
};

TEST(Schedules, AreLegalOrNotWhateverTheModel) {
  for (const OrderCase& order : kOrders) {
    std::string first;
    for (const ModelCase& model : kModels) {
      std::string steps = order.steps;
      for (std::size_t at = 0; (at = steps.find("; ", at)) != std::string::npos;)
        steps.replace(at, 2, "\n");
      std::string text =
          "use std.models.mlp\nmesh pair(pp: 2)\nschedule own(p: axis, m: int) {\n    partition model into stage: p" +
          std::string(model.sizes) +
          "\n    split batch into mb: m\n    for s in 0..p { place stage[s] on p[s] }\n    order { rank r in p {\n" +
          steps + "\n    } }\n}\n";
      std::vector<std::string> words = {"check", "a.pipe", "own", "-D", "p=2", "-D", "m=4"};
      if (*model.model != '\0') {
        text +=
            "train net = " + std::string(model.model) +
            " on pair {\n    data: synthetic(batch: 4, classes: 2)\n    optim: sgd(lr: 0.1)\n    steps: 1\n    own(pp, 4)\n}\n";
        words = {"check", "a.pipe"};
      }
      const ToolResult run = run_tool(words, {{"a.pipe", text}});
      const std::string where = std::string(order.what) + ", " + model.model + model.sizes;
      EXPECT_EQ(run.exit_code, order.legal ? 0 : 1) << where << "\n" << run.err;
      EXPECT_EQ(run.err.find("error P3108: ") != std::string::npos, !order.legal) << where << "\n"
                                                                                  << run.err;
    }
  }
}

// ---- one grid, as text and as an image

using Starts = std::multiset<std::pair<int, int>>;  // row and unit of time of each operation

Starts starts_of_text(const std::string& grid) {
  Starts starts;
  std::istringstream lines(grid);
  int row = 0;
  std::size_t indent = 0, unit = 0;
  static const std::regex cell("(&?)[A-Z]+[0-9.]+");
  for (std::string line; std::getline(lines, line) && line.starts_with("rank "); ++row) {
    int begins = 0;
    for (std::sregex_iterator found(line.begin(), line.end(), cell), end; found != end; ++found) {
      const auto at = static_cast<std::size_t>(found->position());
      if (row == 0 && indent == 0) {
        indent = at;
      } else if (row == 0 && unit == 0) {
        unit = at - indent;  // the second operation follows the first
      }
      if (found->str(1).empty()) begins = unit == 0 ? 0 : static_cast<int>((at - indent) / unit);
      starts.emplace(row, begins);
    }
  }
  return starts;
}

Starts starts_of_image(const std::string& svg) {
  constexpr double kLeft = 53.2, kTop = 44, kRow = 27;
  Starts starts;
  double unit = 0;
  static const std::regex bars("<path class=\"[A-Z]+\" fill=\"[^\"]*\" d=\"([^\"]*)\""),
      bar("M([0-9.]+) ([0-9.]+)h([0-9.]+)");
  for (std::sregex_iterator path(svg.begin(), svg.end(), bars), end; path != end; ++path) {
    const std::string data = path->str(1);
    for (std::sregex_iterator found(data.begin(), data.end(), bar); found != end; ++found) {
      if (unit == 0) unit = std::stod(found->str(3)) + 0.7;  // the first is an F, and a gap is left
      starts.emplace(static_cast<int>((std::stod(found->str(2)) - kTop) / kRow),
                     static_cast<int>(std::lround((std::stod(found->str(1)) - kLeft) / unit)));
    }
  }
  return starts;
}

TEST(Grids, HaveTheSameTimesInTextAndImage) {
  for (const std::string schedule : {"one_f_one_b", "zbv", "dual_pipe_v", "dual_pipe"}) {
    const std::vector<std::string> words = {"show", "grid", schedule, "-D", "p=4", "-D", "m=8"};
    std::vector<std::string> drawn = words;
    drawn.insert(drawn.end(), {"--format", "svg"});
    const Starts text = starts_of_text(run_tool(words, {}).out),
                 image = starts_of_image(run_tool(drawn, {}).out);
    EXPECT_GE(text.size(), 64u) << schedule;
    EXPECT_EQ(text, image) << schedule;
  }
}

// ---- grids of pages

std::string stripped(std::string_view line) {
  const std::size_t begin = line.find_first_not_of("/ ");
  return begin == std::string_view::npos ? "" : std::string(line.substr(begin));
}

/// A grid without the legend below it.
std::string rows(const std::string& printed) {
  std::string text;
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line) && line.starts_with("rank ");)
    text += line + "\n";
  return text;
}

/// Whether a line is printed by a command that draws no grid: `simulate` has a row per rank too,
/// and timelines are no grids. Sessions have their own test.
bool of_another_command(const std::vector<std::string>& lines, std::size_t line) {
  while (line > 0 && !lines[line].starts_with("$ ") && !lines[line].starts_with("piper> ") &&
         !lines[line].starts_with("```"))
    --line;
  return lines[line].starts_with("piper> ") ||
         (lines[line].starts_with("$ piper ") && !lines[line].starts_with("$ piper show grid "));
}

/// All pages and all schedules and models of the tree.
std::vector<std::filesystem::path> pages() {
  std::vector<std::filesystem::path> found = {"CONTRIBUTING.md", "README.md", "tests/README.md"};
  for (const char* folder : {"backend", "docs", "examples", "frontend", "grammar", "ir", "passes",
                             "runtime", "stdlib"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.path().extension() == ".md" || entry.path().extension() == ".pipe")
        found.push_back(entry.path());
    }
  }
  return found;
}

TEST(Grids, PagesShowPrintedGrids) {
  int compared = 0;
  for (const std::filesystem::path& page : pages()) {
    const std::string text = read_text(page).value_or("");
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(stripped(line));
    int grids = 0;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (!lines[i].starts_with("rank 0  ") || of_another_command(lines, i)) continue;
      ++grids;
      const std::string above = i == 0 ? "" : lines[i - 1];
      EXPECT_TRUE(above.starts_with("$ piper show grid "))
          << page << ":" << i + 1 << ": a grid stands below the command that prints it";
      std::istringstream command(above.substr(std::min<std::size_t>(above.size(), 8)));
      std::vector<std::string> words;
      for (std::string word; command >> word;) words.push_back(word);
      // A program of the page: `Readme` runs those.
      if (words.size() < 3 || words[2].ends_with(".pipe")) continue;
      std::string shown;
      for (std::size_t k = i; k < lines.size() && lines[k].starts_with("rank "); ++k)
        shown += lines[k] + "\n";
      EXPECT_EQ(rows(run_tool(words).out), shown) << page << ":" << i + 1;
      ++compared;
    }
    if (page.parent_path() != "stdlib/schedules") continue;
    EXPECT_TRUE(grids > 0 || text.find("\n    order ") == std::string::npos)
        << page << ": a schedule with an order shows a grid";
  }
  EXPECT_GE(compared, 7);
}

// ---- explanations of a schedule

TEST(Explain, TellsOfEverySchedule) {
  int explained = 0;
  for (const auto& entry : std::filesystem::directory_iterator("stdlib/schedules")) {
    const std::string name = entry.path().stem();
    const std::vector<std::string> sizes = {"-D", "p=4", "-D", "m=8", "--cost", "f=2,pair=5"};
    std::vector<std::string> simulate = {"simulate", name}, explain = {"explain", name};
    simulate.insert(simulate.end(), sizes.begin(), sizes.end());
    explain.insert(explain.end(), sizes.begin(), sizes.end());
    const ToolResult simulated = run_tool(simulate);
    if (simulated.exit_code != 0) continue;  // a file of shared parts
    const ToolResult told = run_tool(explain);
    EXPECT_EQ(told.exit_code, 0) << name << told.err;
    EXPECT_TRUE(told.out.starts_with("# " + name + "\n\n")) << told.out;
    EXPECT_EQ(told.out.find("$ piper"), std::string::npos) << "a grid of other sizes: " << told.out;
    const std::string figures = simulated.out.substr(0, simulated.out.find("\n\n"));
    EXPECT_NE(told.out.find(figures), std::string::npos) << told.out;
    EXPECT_NE(told.out.find("\n" + name + " ", told.out.find("## Beside the others")),
              std::string::npos)
        << told.out;
    ++explained;
  }
  EXPECT_GE(explained, 7);
}

}  // namespace
}  // namespace piper::test
