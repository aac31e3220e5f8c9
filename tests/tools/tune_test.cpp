// `piper tune`: the combinations that are tried, the one that is chosen, and the program with its
// values.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "frontend/views/choice_search.h"
#include "frontend/views/tuning.h"
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
     "}\n"},
    {"two.pipe",
     "use std.schedules.gpipe\n"
     "param m in [1, 2, 2]\n"
     "schedule one(p: axis) { require m > 2; gpipe(p, m) }\n"
     "schedule two(p: axis) { gpipe(p, m) }\n"},
    {"broken.pipe", "param m in [1, 2]\nparam n = \n"}};

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

TEST(Tune, WritesValuesOfTheirTypes) {
  const TemporaryFolder folder;
  const std::string input = folder.write("types.pipe",
                                         "use std.schedules.gpipe\n"
                                         "param rate = 0.5\n"
                                         "param bucket = 25MiB\n"
                                         "param text = \"a\"\n"
                                         "param sizes = [2]\n"
                                         "schedule s(p: axis) { gpipe(p, sizes[0]) }\n");
  const std::string path = folder.path() / "chosen.pipe";
  const ToolResult run =
      run_tool({"tune", input, "s", "-D", "p=2", "-D", "rate=1,2", "-D", "bucket=1024,2048", "-D",
                "text=1,2", "-D", "sizes=[3, 4]", "-o", path});
  ASSERT_EQ(run.exit_code, 0) << run.out << run.err;
  std::stringstream written;
  written << std::ifstream(path).rdbuf();
  EXPECT_THAT(written.str(), HasSubstr("\nparam rate = 1.0\nparam bucket = 1KiB\n"
                                       "param text = \"1\"\nparam sizes = [3, 4]\n"));
}

TEST(Tune, KeepsTheFilesOfThePrograms) {
  const TemporaryFolder folder;
  const std::string text(1000, 'a');
  const std::string corpus = folder.write("corpus.txt", text);
  const std::string input =
      folder.write("text.pipe",
                   "use std.models.gpt\n"
                   "param rate in [0.1, 0.2]\n"
                   "mesh line(pp: 2)\n"
                   "train t = gpt(layers: 2, heads: 2, dim: 8, vocab: 256) on line {\n"
                   "    data: bytes(\"corpus.txt\", batch: 2, seq: 8)\n"
                   "    optim: sgd(lr: rate)\n"
                   "    steps: 2\n"
                   "    place model on pp[0]\n"
                   "}\n");
  for (const char* command : {"tune", "compare"}) {
    EXPECT_THAT(run_tool({command, input, "-o", corpus}).err, HasSubstr("error P6102")) << command;
    std::stringstream after;
    after << std::ifstream(corpus).rdbuf();
    EXPECT_EQ(after.str(), text) << command;
  }
}

/// A row of so much time, memory and traffic.
void take(views::Tuning& tuning, std::size_t place, double makespan, std::int64_t bytes,
          std::int64_t traffic) {
  views::Compared row{.name = tuning.name_of({place}), .timeline = {}};
  row.timeline.makespan = makespan;
  row.bytes = bytes;
  row.traffic = traffic;
  tuning.take({place}, std::move(row), {});
}

TEST(Tune, ChoosesByMemoryAndTimeAmongEqualOnes) {
  const std::vector<views::Hole> holes = {{"m", {"1", "2", "3"}, {"1", "2", "3"}}};
  views::Tuning by_memory(holes, "memory", {});
  take(by_memory, 0, 3, 8, 1);
  take(by_memory, 1, 2, 8, 1);
  take(by_memory, 2, 1, 9, 1);
  EXPECT_EQ(by_memory.best()->choice, Choice{1});
  views::Tuning by_traffic(holes, "traffic", {});
  take(by_traffic, 0, 1, 8, 5);
  take(by_traffic, 1, 2, 9, 4);
  take(by_traffic, 2, 1, 10, 4);
  EXPECT_EQ(by_traffic.best()->choice, Choice{1});
  EXPECT_THAT(by_traffic.text(3), HasSubstr("\nm=2 "));  // though m=1 beats it in both
  EXPECT_THAT(by_traffic.text(3), Not(HasSubstr("\nm=3 ")));
}

TEST(Tune, CountsRefusals) {
  const ToolResult bounded = run_tool({"tune", "choices.pipe", "--memory", "1KiB"}, kFiles);
  EXPECT_EQ(bounded.exit_code, 1);
  EXPECT_THAT(bounded.err, HasSubstr("error P6134: no combination is legal: 6 of 6 combinations "
                                     "tried, 6 refused: memory above 1KiB 6 times"));
  EXPECT_THAT(bounded.err, Not(HasSubstr("hint: the other errors")));
  const ToolResult some = run_tool({"tune", "choices.pipe", "-D", "m=3,4,5,7"}, kFiles);
  EXPECT_EQ(some.exit_code, 0) << some.err;  // `m` has choices: 3, 5 and 7 are none of them
  EXPECT_THAT(some.out, HasSubstr("8 of 8 combinations tried, 6 refused: P2321 6 times"));
  const ToolResult equal = run_tool({"tune", "two.pipe", "two", "-D", "p=2"}, kFiles);
  EXPECT_THAT(equal.out, HasSubstr("2 of 2 combinations tried"));
  const ToolResult broken = run_tool({"tune", "broken.pipe"}, kFiles);
  EXPECT_THAT(broken.err, HasSubstr("error P1010"));
  EXPECT_THAT(broken.err, Not(HasSubstr("error P613")));
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
      {{"tune", "choices.pipe", "-D", "n=1,2"}, 1, "error P2320"},
      {{"tune", "choices.pipe", "u"}, 1, "no train or schedule named `u`"},
      {{"tune", "choices.pipe", "--machine", "none.pipe"}, 1, "cannot read `none.pipe`"},
      {{"tune", "two.pipe", "one", "-D", "p=2"}, 1, "hint: the other errors are those of `m=1`"},
      {{"tune", "two.pipe", "one", "-D", "p=2"}, 1, "error P2310"},
      {{"tune", "missing.pipe"}, 1, "error P"},
      {{"tune", "choices.pipe", "--minimize", "beauty"}, 2, "is no figure"},
      {{"tune", "choices.pipe", "--memory", "much"}, 2, "is no size"},
      {{"tune", "choices.pipe", "--tries", "0"}, 2, "tries nothing"},
      {{"tune", "gpipe", "-D", "p=2,4", "-D", "m=4", "-o", "x.pipe"}, 1, "`p` is no param"},
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
