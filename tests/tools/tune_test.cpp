// `piper tune`: the combinations that are tried, the one that is chosen, and the program with its
// values.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "frontend/views/choice_search.h"
#include "llvm/Support/JSON.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/transcript.h"

namespace piper::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using views::Choice;

/// Judges by the distance from `target`, weighted so that all figures differ; refuses every fifth.
struct Trials {
  std::vector<Choice> seen;
  Choice target;

  std::optional<double> operator()(const Choice& choice) {
    seen.push_back(choice);
    std::size_t sum = 0;
    double value = 0;
    for (std::size_t i = 0; i < choice.size(); ++i) {
      sum += choice[i];
      value += std::abs(static_cast<double>(choice[i]) - static_cast<double>(target[i])) *
               static_cast<double>(i + 1);
    }
    return sum % 5 == 4 && choice != target ? std::nullopt : std::optional(value);
  }
};

std::vector<Choice> tried(const std::vector<std::size_t>& sizes, const Choice& initial,
                          const views::SearchLimits& limits, const Choice& target) {
  Trials trials{{}, target};
  views::search_choices(sizes, initial, limits, [&](const Choice& one) { return trials(one); });
  return trials.seen;
}

TEST(Tune, TriesEveryCombinationOnce) {
  for (const auto& [sizes, initial] : std::vector<std::pair<std::vector<std::size_t>, Choice>>{
           {{1}, {0}}, {{4}, {2}}, {{3, 2}, {1, 1}}, {{2, 3, 4}, {0, 2, 3}}}) {
    const std::uint64_t all = views::combinations(sizes);
    const std::vector<Choice> seen = tried(sizes, initial, {.tries = all}, Choice(sizes.size(), 0));
    EXPECT_EQ(seen.size(), all);
    EXPECT_EQ(std::set<Choice>(seen.begin(), seen.end()).size(), all);
    EXPECT_EQ(seen.front(), initial);
  }
}

TEST(Tune, DescendsInLargeSpaces) {
  const std::vector<std::size_t> sizes = {9, 7, 8, 6};
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const Choice target = {7, 1, 6, 5};
    const views::SearchLimits limits{.tries = 150, .seed = seed};
    const std::vector<Choice> seen = tried(sizes, {0, 0, 0, 0}, limits, target);
    EXPECT_EQ(seen.size(), limits.tries);
    EXPECT_EQ(std::set<Choice>(seen.begin(), seen.end()).size(), limits.tries);
    EXPECT_THAT(seen, testing::Contains(target));
    EXPECT_EQ(tried(sizes, {0, 0, 0, 0}, limits, target), seen);
  }
  std::size_t left = 3;
  const views::SearchLimits stopped{.tries = 10,
                                    .stopped = [&] { return left == 0 || left-- == 0; }};
  EXPECT_LE(tried(sizes, {0, 0, 0, 0}, stopped, {0, 0, 0, 0}).size(), 3u);
  EXPECT_EQ(views::combinations(std::vector<std::size_t>(64, 1000)), UINT64_MAX);
}

const std::map<std::string, std::string> kFiles = {
    {"choices.pipe",
     "use std.models.mlp\n"
     "use std.schedules.one_f_one_b\n"
     "use std.schedules.gpipe\n"
     "\n"
     "param m in [2, 4, 8]  // microbatches\n"
     "param kind in [\"gpipe\", \"1f1b\"]\n"
     "param rate = 0.1\n"
     "mesh line(pp: 2)\n"
     "train t = mlp(layers: 8, features: 8, hidden: 16, classes: 4) on line {\n"
     "    data: synthetic(batch: 16, classes: 4)\n"
     "    optim: sgd(lr: rate)\n"
     "    steps: 2\n"
     "    if kind == \"gpipe\" { gpipe(pp, m) } else { one_f_one_b(pp, m) }\n"
     "}\n"}};

llvm::json::Object tuned(std::vector<std::string> words) {
  words.insert(words.begin(), "tune");
  words.insert(words.end(), {"--format", "json"});
  const ToolResult run = run_tool(words, kFiles);
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  auto value = llvm::json::parse(run.out);
  EXPECT_TRUE(static_cast<bool>(value)) << run.out;
  return value && value->getAsObject() ? std::move(*value->getAsObject()) : llvm::json::Object();
}

/// The figure of a program at given values, as `simulate` prints it.
double figure(const std::vector<std::string>& sizes, const std::string& key) {
  std::vector<std::string> words = {"compare",    "choices.pipe", "--rates",
                                    "flops=4e10", "--format",     "json"};
  for (const std::string& size : sizes) words.insert(words.end(), {"-D", size});
  auto value = llvm::json::parse(run_tool(words, kFiles).out);
  EXPECT_TRUE(static_cast<bool>(value));
  const llvm::json::Object& row = *(*value->getAsObject()->getArray("schedules"))[0].getAsObject();
  return row.getNumber(key).value_or(-1);
}

TEST(Tune, ChoosesTheSmallestFigure) {
  for (const char* goal : {"makespan", "memory", "traffic"}) {
    const llvm::json::Object result = tuned({"choices.pipe", "--minimize", goal});
    const llvm::json::Object& chosen = *result.getObject("chosen");
    const double best = figure(
        {"m=" + chosen.getString("m")->str(), "kind=" + chosen.getString("kind")->str()}, goal);
    for (const char* m : {"2", "4", "8"}) {
      for (const char* kind : {"gpipe", "1f1b"}) {
        EXPECT_LE(best, figure({std::string("m=") + m, std::string("kind=") + kind}, goal))
            << goal << m << kind;
      }
    }
    EXPECT_EQ(result.getInteger("tried"), 6);
  }
}

TEST(Tune, NoneOfTheFrontIsBeaten) {
  const llvm::json::Object result = tuned({"choices.pipe"});
  double time = 0, bytes = INFINITY;
  for (const llvm::json::Value& row : *result.getArray("front")) {
    const llvm::json::Object& object = *row.getAsObject();
    EXPECT_GT(*object.getNumber("makespan"), time);
    EXPECT_LT(*object.getNumber("memory"), bytes);
    time = *object.getNumber("makespan");
    bytes = *object.getNumber("memory");
  }
  EXPECT_GT(time, 0);
}

TEST(Tune, WritesTheProgramWithTheChosenValues) {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "chosen.pipe";
  const ToolResult run =
      run_tool({"tune", "choices.pipe", "-D", "rate=0.25", "-D", "m=4,8", "-o", path}, kFiles);
  ASSERT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("4 of 4 combinations tried"));
  std::stringstream written;
  written << std::ifstream(path).rdbuf();
  const std::string text = written.str();
  EXPECT_THAT(text, HasSubstr("// Written by `piper tune choices.pipe`: 4 of 4 combinations"));
  EXPECT_THAT(text, HasSubstr("// chosen: kind=1f1b m=4, makespan "));
  EXPECT_THAT(text, HasSubstr("\nparam m = 4  // microbatches\nparam kind = \"1f1b\"\n"
                              "param rate = 0.25\n"));
  EXPECT_EQ(run_tool({"check", path}).exit_code, 0);
  const std::string input = folder.write("choices.pipe", kFiles.at("choices.pipe"));
  EXPECT_THAT(run_tool({"tune", input, "-o", input}).err, HasSubstr("error P6102"));
}

TEST(Tune, CountsRefusals) {
  const ToolResult bounded = run_tool({"tune", "choices.pipe", "--memory", "1KiB"}, kFiles);
  EXPECT_EQ(bounded.exit_code, 1);
  EXPECT_THAT(bounded.err, HasSubstr("error P6134: no combination is legal: 6 of 6 combinations "
                                     "tried, 6 refused: memory above 1KiB 6 times"));
  EXPECT_THAT(bounded.err, HasSubstr("piper check choices.pipe -D m=2 -D kind=gpipe"));
  const ToolResult some = run_tool({"tune", "choices.pipe", "-D", "m=3,4,5,7"}, kFiles);
  EXPECT_EQ(some.exit_code, 0) << some.err;  // `m` has choices: 3, 5 and 7 are none of them
  EXPECT_THAT(some.out, HasSubstr("8 of 8 combinations tried, 6 refused: P2321 6 times"));
  const ToolResult sizes = run_tool({"tune", "zbv", "-D", "p=2,3", "-D", "m=1,2,4"});
  EXPECT_EQ(sizes.exit_code, 0) << sizes.err;
  EXPECT_THAT(sizes.out, HasSubstr("6 of 6 combinations tried"));
}

TEST(Tune, RefusesWrongUse) {
  const struct {
    std::vector<std::string> words;
    int exit_code;
    const char* message;
  } rows[] = {
      {{"tune", "choices.pipe", "-D", "m=2", "-D", "kind=1f1b"}, 1, "error P6133"},
      {{"tune", "choices.pipe", "-D", "m=5"}, 1, "which is no choice of `m`"},
      {{"tune", "choices.pipe", "-D", "n=1,2"}, 1, "error P6134"},
      {{"tune", "missing.pipe"}, 1, "error P"},
      {{"tune", "choices.pipe", "--minimize", "beauty"}, 2, "is no figure"},
      {{"tune", "choices.pipe", "--memory", "much"}, 2, "is no size"},
      {{"tune", "choices.pipe", "--tries", "0"}, 2, "tries nothing"},
      {{"tune", "gpipe", "-D", "p=2,4", "-D", "m=4", "-o", "x.pipe"}, 1, "`p` is a parameter"},
      {{"tune", "gpipe", "-D", "p=2", "-D", "m=2,4", "-o", "x.pipe"}, 1, "error P6102"},
      {{"tune", "choices.pipe", "-o", "/dev/null/x"}, 1, "error P6102"},
  };
  for (const auto& row : rows) {
    const ToolResult run = run_tool(row.words, kFiles);
    EXPECT_EQ(run.exit_code, row.exit_code) << testing::PrintToString(row.words) << run.err;
    EXPECT_THAT(run.err, HasSubstr(row.message)) << testing::PrintToString(row.words);
  }
}

TEST(Tune, DrawsEveryCombination) {
  const ToolResult run = run_tool({"tune", "choices.pipe", "--format", "svg"}, kFiles);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, testing::StartsWith("<svg "));
  std::size_t dots = 0;
  for (std::size_t at = 0; (at = run.out.find("stroke-linecap", at)) != std::string::npos; ++at)
    ++dots;
  EXPECT_EQ(dots, 6u);
  EXPECT_THAT(run.out, Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace piper::test
