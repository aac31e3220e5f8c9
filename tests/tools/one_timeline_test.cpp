// One timeline of operations: every command prints the same makespan, bubble and peak, and a change
// that keeps the order keeps them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <regex>
#include <sstream>

#include "frontend/pictures/picture.h"
#include "frontend/source/source_manager.h"
#include "frontend/tools/driver.h"
#include "llvm/Support/JSON.h"

namespace piper::test {
namespace {

using testing::HasSubstr;

constexpr double kExact = 1e-9;

/// The output of a command; fails on errors.
std::string output(const source::FileSystem& files, std::vector<std::string> words,
                   const std::string& typed = "") {
  std::ostringstream out, err;
  std::istringstream in(typed);
  tools::Console console{out, err, files, {}};
  if (!typed.empty()) console.in = &in;
  EXPECT_EQ(tools::run(words, console), tools::kClean)
      << testing::PrintToString(words) << err.str() << out.str();
  return out.str();
}

struct Figures {
  double makespan = 0, bubble_span = 0, bubble_makespan = 0, peak = 0;
};

void expect_equal(const Figures& a, const Figures& b, const std::string& what) {
  EXPECT_NEAR(a.makespan, b.makespan, kExact) << what;
  EXPECT_NEAR(a.bubble_span, b.bubble_span, kExact) << what;
  EXPECT_NEAR(a.bubble_makespan, b.bubble_makespan, kExact) << what;
  EXPECT_NEAR(a.peak, b.peak, kExact) << what;
}

Figures figures_of(const llvm::json::Object& object) {
  Figures figures;
  figures.makespan = object.getNumber("makespan").value_or(-1);
  figures.bubble_span = object.getObject("bubble")->getNumber("span").value_or(-1);
  figures.bubble_makespan = object.getObject("bubble")->getNumber("makespan").value_or(-1);
  if (const auto peak = object.getNumber("peak")) figures.peak = *peak;
  if (const llvm::json::Array* peaks = object.getArray("peak")) {
    for (const llvm::json::Value& peak : *peaks)
      figures.peak = std::max(figures.peak, peak.getAsNumber().value_or(-1));
  }
  return figures;
}

llvm::json::Value json(const std::string& text) {
  auto value = llvm::json::parse(text);
  EXPECT_TRUE(static_cast<bool>(value)) << text;
  if (!value) llvm::consumeError(value.takeError());
  return value ? std::move(*value) : llvm::json::Value(llvm::json::Object());
}

/// `piper COMMAND INPUT -D ...`
std::vector<std::string> words(std::vector<std::string> command,
                               const std::vector<std::string>& sizes,
                               const std::vector<std::string>& more = {}) {
  for (const std::string& size : sizes) command.insert(command.end(), {"-D", size});
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

Figures simulated(const source::FileSystem& files, const std::string& input,
                  const std::vector<std::string>& sizes,
                  const std::vector<std::string>& more = {}) {
  std::vector<std::string> options = {"--format", "json"};
  options.insert(options.end(), more.begin(), more.end());
  return figures_of(*json(output(files, words({"simulate", input}, sizes, options))).getAsObject());
}

/// How many columns a grid has: each cell is as wide as its longest name in one of them, and a
/// blank.
std::size_t columns_of(const std::string& grid) {
  std::istringstream lines(grid);
  std::size_t width = 0, columns = 0;
  for (const bool count : {false, true}) {
    lines.clear();
    lines.str(grid);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("rank ")) continue;
      const std::regex cell("\\S+");
      for (auto at = std::sregex_iterator(line.begin() + 8, line.end(), cell);
           at != std::sregex_iterator(); ++at) {
        const std::string name = at->str();
        const std::size_t takes = name[0] == 'B' && name[1] != 'I' && name[1] != 'W' ? 2 : 1;
        width = std::max(width, (name.size() + takes - 1) / takes + 1);
        if (count)
          columns = std::max(columns, static_cast<std::size_t>(at->position()) / width + takes);
      }
    }
  }
  return columns;
}

/// All commands with times of operations agree with `simulate`.
void expect_one_timeline(const source::FileSystem& files, const std::string& input,
                         const std::vector<std::string>& sizes, bool grouped) {
  const std::string what = input + testing::PrintToString(sizes);
  const Figures figures = simulated(files, input, sizes);
  const std::string line =
      "makespan " + pictures::time_text(figures.makespan, passes::Timeline::Unit::cost) +
      ", bubble " + pictures::share_text(figures.bubble_span) + " of the span and " +
      pictures::share_text(figures.bubble_makespan) + " of the makespan";
  const llvm::json::Value compared =
      json(output(files, words({"compare", input}, sizes, {"--format", "json"})));
  expect_equal(figures_of(*compared.getAsObject()->getArray("schedules")->front().getAsObject()),
               figures, what);
  for (const char* kind : {"grid", "timeline"}) {
    for (const char* format : {"svg", "html"})
      EXPECT_THAT(output(files, words({"show", kind, input}, sizes, {"--format", format})),
                  HasSubstr(line))
          << what;
  }
  EXPECT_THAT(output(files, words({"show", "timeline", input}, sizes)), HasSubstr(line)) << what;
  const std::string grid = output(files, words({"show", "grid", input}, sizes));
  if (grid.find("column") == std::string::npos) {
    EXPECT_TRUE(grouped || static_cast<double>(columns_of(grid)) == figures.makespan)
        << what << "\n"
        << grid;
  } else {
    EXPECT_THAT(grid, HasSubstr(line)) << what;
    std::smatch column;
    if (!grouped && std::regex_search(grid, column, std::regex("a column takes ([0-9.]+):"))) {
      EXPECT_NEAR(static_cast<double>(columns_of(grid)) * std::stod(column[1]), figures.makespan,
                  1e-4 * figures.makespan)
          << what << "\n"
          << grid;
    }
  }
  std::string session = input.ends_with(".pipe") ? ":load " + input + "\n" : "", set;
  for (const std::string& size : sizes) set += " " + size;
  session += input.ends_with(".pipe") ? (set.empty() ? "" : ":set" + set + "\n") + ":timeline t\n"
                                      : ":timeline " + input + set + "\n";
  const std::string told = output(files, {"repl"}, session + ":why 0 100000\n:step last\n");
  const std::string makespan = pictures::time_text(figures.makespan, passes::Timeline::Unit::cost);
  EXPECT_THAT(told, HasSubstr(line)) << what;
  EXPECT_THAT(told, testing::AnyOf(HasSubstr("the step at " + makespan + "\n"),
                                   HasSubstr("ends at " + makespan + " and the step")))
      << what;
  EXPECT_THAT(told, HasSubstr("time " + makespan + ": all have run")) << what;
}

TEST(OneTimeline, EveryCommandHasItOfEverySchedule) {
  const source::MemoryFileSystem files;
  struct Row {
    const char* schedule;
    std::vector<std::vector<std::string>> sizes;
    bool grouped = false;
  };
  const Row kRows[] = {
      {"gpipe", {{"p=1", "m=1"}, {"p=4", "m=8"}}},
      {"one_f_one_b", {{"p=2", "m=3"}, {"p=4", "m=8"}}},
      {"interleaved", {{"p=2", "m=4", "v=2"}, {"p=3", "m=6", "v=3"}}},
      {"zb_h1", {{"p=2", "m=4"}, {"p=4", "m=8"}}},
      {"zbv", {{"p=2", "m=2"}, {"p=4", "m=8"}}},
      {"dual_pipe", {{"p=2", "m=4"}, {"p=4", "m=8"}}, true},
      {"dual_pipe_v", {{"p=2", "m=4"}, {"p=3", "m=6"}}, true},
  };
  for (const Row& row : kRows) {
    for (const std::vector<std::string>& sizes : row.sizes) {
      expect_one_timeline(files, row.schedule, sizes, row.grouped);
      const std::string explained = output(files, words({"explain", row.schedule}, sizes));
      const Figures figures = simulated(files, row.schedule, sizes);
      char text[64];
      std::snprintf(text, sizeof text, "bubble %.6g\n", figures.bubble_makespan);
      EXPECT_THAT(explained, HasSubstr(text)) << row.schedule;
    }
  }
}

/// A train `t` of a small model on a mesh, with these lines.
source::MemoryFileSystem train(const std::string& lines, const std::string& mesh = "pp: 2, dp: 2") {
  source::MemoryFileSystem files;
  files.add(
      "t.pipe",
      "use std.models.mlp\nuse std.models.gpt\nuse std.schedules.one_f_one_b\nuse std.schedules.zbv\nmesh line(" +
          mesh + ")\n" + lines);
  return files;
}

constexpr const char* kMlp =
    "train t = mlp(layers: 8, features: 64, hidden: 64, classes: 64) on line {\n    data: synthetic(batch: 64, classes: 64)\n    optim: sgd(lr: 0.1)\n    steps: 1\n";

std::string order(const std::string& first, const std::string& second,
                  const std::string& send = "") {
  const std::string all = "        for i in 0..4 { ";
  return std::string(kMlp) +
         "    partition model into stage: pp\n    for s in 0..pp { place stage[s] on pp[s] }\n    split batch into mb: 4\n    replicate model over dp\n    order {\n    rank r in pp[0]" +
         first + " {\n" + all + "F stage[0] mb[i] }\n" + send + all +
         "B stage[0] mb[i] }\n    }\n    rank r in pp[1]" + second + " {\n" + all +
         "F stage[1] mb[i] }\n" + all + "B stage[1] mb[i] }\n    }\n    }\n}\n";
}

TEST(OneTimeline, ReplicasCountOnce) {
  const char* kRanks[] = {"", ", d in dp"};
  const Figures alone = simulated(train(order("", "")), "t.pipe", {});
  for (const char* first : kRanks) {
    for (const char* second : kRanks) {
      const source::MemoryFileSystem files = train(order(first, second));
      expect_equal(simulated(files, "t.pipe", {}), alone, std::string(first) + "|" + second);
      expect_one_timeline(files, "t.pipe", {}, false);
    }
  }
}

TEST(OneTimeline, NamedCommunicationIsAStep) {
  const std::string late = "        for i in 0..4 { F stage[0].send mb[i] }\n";
  const source::MemoryFileSystem files = train(order("", "", late)), unnamed = train(order("", ""));
  // Four forwards, then the work of the second rank, then the last backward of the first.
  EXPECT_NEAR(simulated(files, "t.pipe", {}, {"--stages", "equal"}).makespan, 4 + 4 + 4 * 2 + 2,
              kExact);
  EXPECT_NEAR(simulated(unnamed, "t.pipe", {}, {"--stages", "equal"}).makespan, 1 + 4 + 4 * 2 + 2,
              kExact);
  expect_one_timeline(files, "t.pipe", {}, false);
  const std::string told =
      output(files, {"repl"},
             ":load t.pipe\n:cost stages=equal\n:grid t\n:why 1 0\n:what-if swap 1 F2 F3\n");
  EXPECT_THAT(told, HasSubstr("rank 0  F0 F1 F2 F3"));
  EXPECT_THAT(told, HasSubstr("rank 1  .  .  .  .  F0 F1 F2 F3"));
  EXPECT_THAT(told, HasSubstr("rank 1 is idle from 0 to 4"));
  EXPECT_THAT(told, HasSubstr("3 to 4  rank 0  F stage[0] mb[3]"));
  EXPECT_THAT(told, HasSubstr("makespan 18 -> 18"));
  // A bound sees it, too.
  for (const auto& [bound, met] : {std::pair("0.30", false), {"0.40", true}}) {
    std::string text = order("", "", late);
    text.replace(text.find("    steps: 1\n"), 13,
                 std::string("    steps: 1\n    require bubble < ") + bound + "\n");
    const source::MemoryFileSystem bounded = train(text);
    std::ostringstream out, err;
    tools::Console console{out, err, bounded, {}};
    EXPECT_EQ(tools::run(std::vector<std::string>{"check", "t.pipe"}, console) == tools::kClean,
              met)
        << bound << err.str();
  }
}

std::string grid_of(const std::string& lines, const std::vector<std::string>& more = {}) {
  const std::string grid = output(train(lines), words({"show", "grid", "t.pipe"}, {}, more));
  return grid.substr(0, grid.find("column"));
}

TEST(OneTimeline, AColumnIsAnOperation) {
  const std::string head =
      "train t = gpt(layers: 4, dim: 8, heads: 2, vocab: 64) on line {\n    data: synthetic(batch: 8, seq: 5, classes: 64)\n    optim: adamw(lr: 1e-3)\n    steps: 3\n    ";
  for (const std::string schedule :
       {"one_f_one_b(pp, 4)\n", "zbv(pp, 4)\n",
        "partition model into stage: pp with sizes: [1, 5]\n    one_f_one_b(pp, 2)\n"}) {
    for (const std::string again : {"", "    recompute stage\n"}) {
      const auto text = [&](int cut) {
        return head + schedule + again +
               "    replicate model over dp with zero: " + std::to_string(cut) + "\n}\n";
      };
      const std::string whole = grid_of(text(0));
      for (const int cut : {1, 2, 3}) {
        EXPECT_EQ(grid_of(text(cut)), whole) << schedule << again << cut;
        // In a stage of several segments only those whose backward reads their results are
        // recomputed.
        if (again.empty())
          expect_equal(simulated(train(text(cut)), "t.pipe", {}, {"--stages", "equal"}),
                       simulated(train(text(0)), "t.pipe", {}, {"--stages", "equal"}), schedule);
      }
      expect_one_timeline(train(text(3)), "t.pipe", {}, false);
    }
    // Recomputation in blocks is one operation before each backward.
    const std::string stages =
        grid_of(head + schedule + "    recompute stage\n    replicate model over dp\n}\n");
    const std::string blocks =
        head + schedule + "    recompute block\n    replicate model over dp\n}\n";
    if (schedule.starts_with("one")) {
      EXPECT_EQ(grid_of(blocks), stages) << schedule;
    }
    expect_one_timeline(train(blocks), "t.pipe", {}, false);
  }
}

TEST(OneTimeline, StagesCountAsWhatTheyCost) {
  const auto uneven = [](const std::string& sizes) {
    return std::string(kMlp) + "    partition model into stage: pp with sizes: [" + sizes +
           "]\n    one_f_one_b(pp, 8)\n}\n";
  };
  const source::MemoryFileSystem even = train(uneven("3, 2, 2, 3"), "pp: 4"),
                                 odd = train(uneven("1, 7, 1, 1"), "pp: 4");
  const Figures equal = simulated(odd, "t.pipe", {}, {"--stages", "equal"}),
                weighed = simulated(odd, "t.pipe", {});
  EXPECT_NEAR(equal.bubble_span, 3.0 / 11, kExact);
  EXPECT_LT(weighed.bubble_span, 0.01);  // one rank is never idle, and the others nearly always
  EXPECT_GT(weighed.bubble_makespan, 0.55);
  EXPECT_LT(simulated(even, "t.pipe", {}).bubble_makespan, weighed.bubble_makespan);
  expect_one_timeline(odd, "t.pipe", {}, false);
  // All stages together are the model: each microbatch takes as much work as there are ranks.
  const llvm::json::Value all =
      json(output(odd, {"simulate", "t.pipe", "--format", "json", "--cost", "f=1,b=2"}));
  double work = 0;
  for (const llvm::json::Value& each : *all.getAsObject()->getArray("work"))
    work += each.getAsNumber().value_or(-1);
  EXPECT_NEAR(work, 4 * 8 * 3, 1e-6);
  for (const auto& [option, said] :
       {std::pair("cost", "stages weighed by cost"), {"equal", "stages equal"}}) {
    for (const char* command : {"simulate", "compare"})
      EXPECT_THAT(output(odd, {command, "t.pipe", "--stages", option}), HasSubstr(said)) << command;
    EXPECT_THAT(output(odd, {"show", "timeline", "t.pipe", "--stages", option}), HasSubstr(said));
  }
  // The chain that stands for a model is of equal links, of which a stage may have several.
  source::MemoryFileSystem chain;
  chain.add(
      "s.pipe",
      "schedule s(p: axis) {\n    partition model into stage: p with sizes: [1, 3]\n    split batch into mb: 2\n    for i in 0..p { place stage[i] on p[i] }\n}\n");
  EXPECT_NEAR(simulated(chain, "s.pipe", {"p=2"}, {"--cost", "f=2,b=0", "s"}).makespan,
              (1 + 2 * 3) * 2 * 2 / 4.0, kExact);
}

}  // namespace
}  // namespace piper::test
