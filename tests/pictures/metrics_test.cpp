// Metrics of runs: the values read, and the values skipped.
#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/pictures/metrics.h"
#include "llvm/Support/JSON.h"
#include "tests/pictures/xml.h"

namespace piper::test {
namespace {

std::string line_of(int step, const std::string& loss) {
  return "{\"schema\":1,\"phase\":\"training\",\"step\":" + std::to_string(step) +
         ",\"loss\":" + loss +
         ",\"norm\":1.5,\"lr\":0.1,\"seconds\":0.5,\"tokens_per_second\":100}\n";
}

/// A batch of held-out data with one loss, of which `count` elements add up to `sum`.
std::string held_out_line(int step, const std::string& sum, const std::string& count) {
  return "{\"phase\":\"evaluation\",\"step\":" + std::to_string(step) +
         ",\"loss\":1,\"microbatches\":{\"l\":[" + sum + ",0]},\"counts\":{\"l\":" + count +
         "},\"samples\":2}\n";
}

TEST(Metrics, EachElementOfHeldOutDataCountsAlike) {
  struct Case {
    std::string text;
    std::optional<double> loss;
  };
  const std::vector<Case> cases = {
      {"", std::nullopt},
      {held_out_line(1, "8", "4"), 2},
      {held_out_line(1, "0", "4") + held_out_line(2, "100", "1"), 20},
      {held_out_line(1, "0", "4") + held_out_line(2, "1", "0"), 0.25},
      {held_out_line(1, "0", "0"), 0},
      {held_out_line(1, "null", "4"), std::nullopt},
  };
  for (const Case& one : cases) {
    pictures::Metrics metrics;
    EXPECT_TRUE(pictures::read_metrics(one.text, metrics).empty()) << one.text;
    EXPECT_EQ(pictures::held_out_loss(metrics), one.loss) << one.text;
  }
}

TEST(Metrics, BrokenLinesAreLeftOut) {
  struct Case {
    std::string line, reason;
  };
  const std::vector<Case> cases = {
      {"{\"schema\":1,\"pha", "it is no JSON"},
      {"[1, 2]", "it is no object"},
      {"{\"step\":1,\"loss\":2}", "it has no `phase` of `training` or `evaluation`"},
      {"{\"phase\":\"training\",\"loss\":2}", "it has no `step` from 1 on"},
      {"{\"phase\":\"training\",\"step\":0,\"loss\":2}", "it has no `step` from 1 on"},
      {"{\"phase\":\"training\",\"step\":\"1\",\"loss\":2}", "it has no `step` from 1 on"},
      {"{\"phase\":\"training\",\"step\":4}", "it has no `loss`"},
      {"{\"phase\":\"evaluation\",\"step\":4,\"loss\":1}",
       "it has no `microbatches`, `counts` and `samples`"},
      {"{\"phase\":\"evaluation\",\"step\":4,\"loss\":1,\"microbatches\":{\"l\":[1]},\"counts\":{\"k\":1}}",
       "it has no `microbatches`, `counts` and `samples`"},
      {std::string("\0\xff", 2), "it is no JSON"},
  };
  for (const Case& each : cases) {
    pictures::Metrics metrics;
    const auto broken = pictures::read_metrics(
        line_of(1, "2.5") + each.line + "\n\n" + line_of(2, "2.25") + each.line, metrics);
    EXPECT_EQ(metrics.training.size(), 2u) << each.line;
    ASSERT_EQ(broken.size(), 2u) << each.line;
    EXPECT_EQ(broken[0].reason, each.reason);
    EXPECT_EQ(broken[0].line, 2u);
    EXPECT_FALSE(broken[0].cut_off);
    EXPECT_EQ(broken[1].line, 5u);
    EXPECT_TRUE(broken[1].cut_off);
  }
}

TEST(Metrics, StepsAscendAndTheLastLineOfAStepCounts) {
  pictures::Metrics metrics;
  EXPECT_TRUE(pictures::read_metrics(line_of(1, "4") + line_of(2, "3") + line_of(3, "9") +
                                         line_of(2, "2") + line_of(3, "null") +
                                         held_out_line(1, "7", "1"),
                                     metrics)
                  .empty());
  ASSERT_EQ(metrics.training.size(), 3u);
  EXPECT_EQ(metrics.training[1].loss, 2);
  EXPECT_FALSE(metrics.training[2].loss);
  EXPECT_EQ(metrics.held_out.size(), 1u);
  EXPECT_EQ(
      pictures::metrics_text(metrics, "loss", {})
              .find(
                  "3 steps in 1.5 s, 100 tokens/s, loss 4.0000 -> 2.0000, least 2.0000 at step 2, 1 without a finite loss\n") ==
          std::string::npos,
      false);
}

TEST(Metrics, AreDrawnWhateverTheyAre) {
  for (const std::string& text :
       {line_of(1, "2"), line_of(1, "2") + line_of(2, "2"), line_of(1, "null"),
        line_of(1, "1e300") + line_of(2, "-1e300"), held_out_line(5, "1", "1"),
        line_of(1, "3") + line_of(2, "null") + line_of(1000000, "1e-9")}) {
    pictures::Metrics metrics;
    EXPECT_TRUE(pictures::read_metrics(text, metrics).empty());
    for (const std::size_t columns : {0, 1, 12, 80})
      EXPECT_FALSE(pictures::metrics_text(metrics, "loss", {columns, columns == 80}).empty());
    std::string error;
    const std::string svg = pictures::metrics_svg(metrics, "a < b");
    EXPECT_TRUE(read_xml(svg, error)) << error;
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    EXPECT_LT(svg.size(), 20000u);
    EXPECT_TRUE(static_cast<bool>(llvm::json::parse(pictures::metrics_json(metrics))));
  }
}

/// The curve of a picture, as its points and where it begins anew.
std::string path_of(const std::string& svg) {
  const std::size_t begin = svg.find(" d=\"M") + 4;
  return svg.substr(begin, svg.find('"', begin) - begin);
}

pictures::MetricsStep step_of(std::int64_t step, double loss) {
  pictures::MetricsStep made;
  made.step = step;
  made.loss = loss;
  return made;
}

TEST(Metrics, ImagesOfLongRunsKeepWhatCanBeSeen) {
  pictures::Metrics metrics;
  for (std::int64_t step = 1; step <= 20; ++step)
    metrics.training.push_back(step_of(step, 1.0 / static_cast<double>(step)));
  const std::string small = path_of(pictures::metrics_svg(metrics, "run"));
  EXPECT_EQ(std::count(small.begin(), small.end(), 'L'), 19);

  metrics.training.clear();
  for (std::int64_t step = 1; step <= 200000; ++step) {
    if (step > 50000 && step <= 52000) continue;
    metrics.training.push_back(step_of(step, step == 100001 ? 9.0
                                             : step == 150001
                                                 ? -1.0
                                                 : 2.0 + static_cast<double>(step % 7) / 10));
  }
  const std::string svg = pictures::metrics_svg(metrics, "run"), path = path_of(svg);
  EXPECT_LT(svg.size(), 200000u);
  EXPECT_EQ(std::count(path.begin(), path.end(), 'M'), 2);
  // The greatest and the least of all.
  for (const char* height : {" 40L", " 360L"})
    EXPECT_NE(path.find(height), std::string::npos) << height;
}

}  // namespace
}  // namespace piper::test
