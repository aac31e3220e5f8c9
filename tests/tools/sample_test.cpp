// `piper sample`: the choice of tokens, the output, and texts of checkpoints of any layout and type.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "frontend/tools/next_token.h"
#include "frontend/tools/prompt.h"
#include "frontend/tools/sampled_text.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/transcript.h"

namespace piper::test {
namespace {

using testing::HasSubstr;
using tools::draw_token;
using tools::TokenChoice;

// ---- the choice of a token

const std::vector<double> kLogits = {std::log(0.1), std::log(0.4), std::log(0.3), std::log(0.2)};

/// The fractions in which the tokens are drawn.
std::vector<double> fractions(const TokenChoice& choice, std::int64_t tokens = 4) {
  constexpr int kDraws = 20000;
  std::vector<double> counts(kLogits.size(), 0);
  for (int i = 0; i < kDraws; ++i)
    counts[static_cast<std::size_t>(*draw_token(kLogits, tokens, choice, i))] += 1.0 / kDraws;
  return counts;
}

void expect_near(const std::vector<double>& is, const std::vector<double>& should) {
  for (std::size_t i = 0; i < should.size(); ++i) EXPECT_NEAR(is[i], should[i], 0.015) << i;
}

TEST(NextToken, IsDrawnByItsProbability) {
  expect_near(fractions({.temperature = 1}), {0.1, 0.4, 0.3, 0.2});
  // Squares of the probabilities, and square roots.
  expect_near(fractions({.temperature = 0.5}), {0.0333, 0.5333, 0.3, 0.1333});
  expect_near(fractions({.temperature = 1, .top_k = 2}), {0, 4.0 / 7, 3.0 / 7, 0});
  expect_near(fractions({.temperature = 1, .top_k = 100}), {0.1, 0.4, 0.3, 0.2});
  // 0.4 + 0.3 is enough for 0.65, and not for 0.75.
  expect_near(fractions({.temperature = 1, .top_p = 0.65}), {0, 4.0 / 7, 3.0 / 7, 0});
  expect_near(fractions({.temperature = 1, .top_p = 0.75}), {0, 4.0 / 9, 3.0 / 9, 2.0 / 9});
  // The first of the two that top-k leaves has 4 / 7.
  expect_near(fractions({.temperature = 1, .top_k = 2, .top_p = 0.5}), {0, 1, 0, 0});
  expect_near(fractions({.temperature = 1, .top_p = 1e-300}), {0, 1, 0, 0});
  expect_near(fractions({.temperature = 1}, 2), {0.2, 0.8, 0, 0});
}

TEST(NextToken, IsTheLargestAtTemperatureZero) {
  EXPECT_EQ(draw_token(kLogits, 4, {.temperature = 0}, 0), 1);
  EXPECT_EQ(draw_token(kLogits, 1, {.temperature = 0}, 0), 0);
  EXPECT_EQ(draw_token(std::vector<double>{1, 2, 2}, 3, {.temperature = 0}, 0), 1);
  EXPECT_EQ(draw_token(kLogits, 4, {.temperature = 1e-300}, 0), 1);
  EXPECT_EQ(draw_token(std::vector<double>{-1e300, 1e300}, 2, {.temperature = 1}, 0), 1);
}

TEST(NextToken, DependsOnSeedAndPosition) {
  const std::vector<double> even(1000, 0.0);
  EXPECT_EQ(draw_token(even, 1000, {.seed = 1}, 5), draw_token(even, 1000, {.seed = 1}, 5));
  EXPECT_NE(draw_token(even, 1000, {.seed = 1}, 5), draw_token(even, 1000, {.seed = 2}, 5));
  EXPECT_NE(draw_token(even, 1000, {.seed = 1}, 5), draw_token(even, 1000, {.seed = 1}, 6));
}

TEST(NextToken, IsNoneOfLogitsThatAreNotFinite) {
  for (const double bad : {std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity(), std::nan("")}) {
    for (const double temperature : {0.0, 1.0})
      EXPECT_EQ(draw_token(std::vector<double>{0, bad}, 2, {.temperature = temperature}, 0),
                std::nullopt);
    EXPECT_EQ(draw_token(std::vector<double>{0, bad}, 1, {}, 0), 0);
  }
}

// ---- the output

TEST(TerminalText, ShowsCharactersAloneAndWhole) {
  constexpr const char* kBad = "\xEF\xBF\xBD";
  const auto shown = [](std::string_view bytes) {
    tools::TerminalText text;
    std::string all;
    for (const char byte : bytes) all += text.add(std::string_view(&byte, 1));
    return all + text.finish();
  };
  EXPECT_EQ(shown("a b\n\tc"), "a b\n\tc");
  EXPECT_EQ(shown("\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"),
            "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80");
  // Controls, and those of C1.
  EXPECT_EQ(shown("\x1B[2J"), std::string(kBad) + "[2J");
  EXPECT_EQ(shown("\r"), kBad);
  EXPECT_EQ(shown(std::string_view("\0", 1)), kBad);
  EXPECT_EQ(shown("\x7F"), kBad);
  EXPECT_EQ(shown("\xC2\x9B"), kBad);
  // Continuations without a beginning, beginnings without an end, overlong forms, surrogates.
  EXPECT_EQ(shown("\x80"
                  "a"),
            std::string(kBad) + "a");
  EXPECT_EQ(shown("\xE2\x82"
                  "a"),
            std::string(kBad) + "a");
  EXPECT_EQ(shown("\xE2\x82"), kBad);
  EXPECT_EQ(shown("\xE2\xC3\xA9"), std::string(kBad) + "\xC3\xA9");
  EXPECT_EQ(shown("\xC0\xAF"), std::string(kBad) + kBad);
  EXPECT_EQ(shown("\xED\xA0\x80"), kBad);
  EXPECT_EQ(shown("\xF5\xFF"), std::string(kBad) + kBad);
  tools::TerminalText text;
  EXPECT_EQ(text.add("\xE2\x82"), "");
  EXPECT_EQ(text.add("\xAC"), "\xE2\x82\xAC");
}

TEST(Prompt, ReadsListsOfTokens) {
  using Ids = std::vector<std::int64_t>;
  EXPECT_EQ(tools::parse_ids("1,2,30"), (Ids{1, 2, 30}));
  EXPECT_EQ(tools::parse_ids("4294967295"), (Ids{4294967295}));
  for (const char* wrong : {",", "1,", ",1", "1,,2", "1 2", "a", "-1", "1.5", "4294967296", "1;2"})
    EXPECT_EQ(tools::parse_ids(wrong), std::nullopt) << wrong;
}

// ---- texts of checkpoints

/// One model on one device, and on four with sharded state; and a longer one.
constexpr const char* kProgram = R"(use std.models.gpt
use std.schedules.one_f_one_b
param corpus = "corpus.txt"
mesh one(d: 1)
mesh four(pp: 2, dp: 2)
train alone = gpt(layers: 2, dim: 8, heads: 2, vocab: 256) on one {
    data: bytes(corpus, batch: 8, seq: 16); optim: adamw(lr: 0.01); steps: 2; dtype: DTYPE
}
train sharded = gpt(layers: 2, dim: 8, heads: 2, vocab: 256) on four {
    data: bytes(corpus, batch: 8, seq: 16); optim: adamw(lr: 0.01); steps: 2; dtype: DTYPE
    one_f_one_b(pp, 2)
    replicate model over dp with zero: 3
}
)";

class Sample : public testing::TestWithParam<const char*> {
 protected:
  Sample() {
    std::string program = kProgram;
    for (std::size_t at; (at = program.find("DTYPE")) != std::string::npos;)
      program.replace(at, 5, GetParam());
    folder_.write("t.pipe", program);
    std::string text;
    for (int i = 0; i < 40; ++i) text += "line " + std::to_string(i * i) + "\n";
    folder_.write("corpus.txt", text);
  }

  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  ToolResult run(std::vector<std::string> words, unsigned columns = 0) {
    words.insert(words.begin() + 1, path("t.pipe"));
    if (words[0] == "train") words.push_back("--interpret");
    return run_tool(words, {}, {}, columns);
  }
  ToolResult sample(const std::string& train, std::vector<std::string> more, unsigned columns = 0) {
    more.insert(more.begin(), {"sample", train});
    return run(std::move(more), columns);
  }
  TemporaryFolder folder_;
};

/// The layout of a checkpoint does not matter, nor does that of the train whose model is sampled.
TEST_P(Sample, GivesOneTextOfEveryLayout) {
  ASSERT_EQ(run({"train", "alone", "--out", path("alone")}).exit_code, 0);
  ASSERT_EQ(run({"train", "sharded", "--out", path("sharded")}).exit_code, 0);
  const std::vector<std::string> ids = {"--prompt-ids", "108,105", "--tokens", "10", "--seed", "3"};
  const auto of = [&](const std::string& train, const std::string& from) {
    std::vector<std::string> words = ids;
    words.insert(words.end(), {"--from", path(from)});
    const ToolResult result = sample(train, words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  const std::string text = of("sharded", "sharded");
  EXPECT_THAT(text, testing::MatchesRegex("108,105(,[0-9]+)+\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), ','), 11);
  EXPECT_EQ(of("alone", "sharded"), text);
  EXPECT_EQ(of("alone", "sharded/step-2"), text);
  EXPECT_EQ(of("alone", "sharded:2"), text);
  if (GetParam() != std::string("bf16")) {
    // Gradients are summed in another order, which moves no draw.
    EXPECT_EQ(of("alone", "alone"), text);
  }
  EXPECT_NE(sample("alone", ids).out, text);  // first values
}

TEST_P(Sample, GivesBytesNumbersAndJson) {
  const std::vector<std::string> choice = {"--tokens", "6", "--temperature", "1"};
  const auto with = [&](std::vector<std::string> words, unsigned columns = 0) {
    words.insert(words.end(), choice.begin(), choice.end());
    return sample("alone", words, columns);
  };
  const ToolResult ids = with({"--prompt-ids", "104,105"});
  ASSERT_EQ(ids.exit_code, 0) << ids.err;
  const auto numbers = *tools::parse_ids(ids.out.substr(0, ids.out.size() - 1));
  ASSERT_EQ(numbers.size(), 8u);
  std::string bytes;
  for (const std::int64_t id : numbers) bytes += static_cast<char>(id);
  EXPECT_EQ(with({"--prompt", "hi"}).out, bytes);
  folder_.write("prompt.txt", "hi");
  EXPECT_EQ(with({"--prompt-file", path("prompt.txt")}).out, bytes);
  tools::TerminalText shown;
  std::string on_terminal = shown.add(bytes);
  on_terminal += shown.finish();
  if (!on_terminal.ends_with('\n')) on_terminal += '\n';
  EXPECT_EQ(with({"--prompt", "hi"}, 80).out, on_terminal);
  std::string drawn;
  for (std::size_t i = 2; i < numbers.size(); ++i)
    drawn += (i > 2 ? "," : "") + std::to_string(numbers[i]);
  const ToolResult json = with({"--prompt", "hi", "--format", "json"});
  EXPECT_THAT(json.out, HasSubstr("\"prompt\":[104,105]"));
  EXPECT_THAT(json.out, HasSubstr("\"tokens\":[" + drawn + "]"));
  EXPECT_THAT(json.out, HasSubstr("\"ended\":\"tokens\""));
  EXPECT_EQ(json.err, "");
}

/// The last position is read, and one more token is drawn from its logits.
TEST_P(Sample, EndsAtTheLastPosition) {
  const ToolResult result = sample("alone", {"--prompt-ids", "1,2,3", "--tokens", "100"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), ','), 16);
  EXPECT_EQ(result.err, "stopped after 14 tokens: the model has 16 positions\n");
  const std::string full(16, 'x');
  EXPECT_EQ(sample("alone", {"--prompt", full}).err,
            "stopped after 1 token: the model has 16 positions\n");
  EXPECT_EQ(sample("alone", {"--prompt", full, "--tokens", "0"}).out, full);
  EXPECT_THAT(sample("alone", {"--prompt", full + "x"}).err,
              HasSubstr("error P6120: the prompt is longer than the 16 positions of the model"));
}

INSTANTIATE_TEST_SUITE_P(Types, Sample, testing::Values("f64", "f32", "bf16"));

TEST(SampleProcess, EndsAfterCtrlC) {
  const TemporaryFolder folder;
  folder.write(
      "t.pipe",
      "use std.models.gpt\nmesh one(d: 1)\n"
      "train t = gpt(layers: 1, dim: 8, heads: 2, vocab: 16) on one {\n"
      "    data: synthetic(batch: 1, seq: 64, classes: 16); optim: sgd(lr: 0.1); steps: 1\n"
      "}\n");
  ProcessOptions options;
  options.environment = {{"PIPER_MATH", "auto"},
                         {"PIPER_PLUGINS", program_path("interrupting_library")},
                         {"INTERRUPT", "f32 50"}};
  const ProcessResult result = run_process(
      {program_path("piper"), "sample", (folder.path() / "t.pipe").string(), "--prompt-ids", "1,2"},
      options);
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_THAT(result.out, testing::MatchesRegex("1,2(,[0-9]+)+\n"));
  EXPECT_THAT(result.err, testing::MatchesRegex("stopped after [0-9]+ tokens\n"));
}

}  // namespace
}  // namespace piper::test
