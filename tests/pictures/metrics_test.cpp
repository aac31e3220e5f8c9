// Metrics of runs: the values read, and the values skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

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

/// A batch of held-out data with one loss, of which `count` elements add up to `sum`. `after`: the
/// training steps before it, as in `"after":2,`.
std::string held_out_line(int step, const std::string& sum, const std::string& count,
                          const std::string& after = "") {
  return "{\"phase\":\"evaluation\"," + after + "\"step\":" + std::to_string(step) +
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
      {"{\"phase\":\"evaluation\",\"after\":-1,\"step\":4,\"loss\":1,\"microbatches\":{\"l\":[1]},\"counts\":{\"l\":1},\"samples\":2}",
       "its `after` is no number of steps"},
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

TEST(Metrics, EvaluationsDuringTrainingAreApart) {
  const std::string at_2 = "\"after\":2,", at_3 = "\"after\":3,";
  pictures::Metrics metrics;
  EXPECT_TRUE(pictures::read_metrics(
                  line_of(1, "4") + line_of(2, "3") + held_out_line(1, "6", "1", at_2) +
                      held_out_line(2, "2", "1", at_2) + line_of(3, "2") +
                      held_out_line(1, "9", "1", at_3) +
                      // The run was resumed, and evaluated again.
                      held_out_line(1, "5", "1", at_3) + held_out_line(2, "1", "1", at_3),
                  metrics)
                  .empty());
  ASSERT_EQ(metrics.held_out.size(), 2u);
  EXPECT_EQ(metrics.held_out[0].after, 2);
  EXPECT_EQ(pictures::loss_of(metrics.held_out[0]), 4);
  EXPECT_EQ(metrics.held_out[1].after, 3);
  EXPECT_EQ(metrics.held_out[1].batches.size(), 2u);
  EXPECT_EQ(pictures::samples_of(metrics.held_out[1]), 4);
  EXPECT_EQ(pictures::held_out_loss(metrics), 3);
  EXPECT_NE(
      pictures::metrics_text(metrics, "loss", {})
          .find(
              "\nheld-out loss 3.0000 over 2 batches, 4 samples\n2 evaluations, held-out loss 4.0000 -> 3.0000, least 3.0000 after step 3\n"),
      std::string::npos);
  EXPECT_NE(
      pictures::metrics_json(metrics).find(
          "{\"evaluations\":[{\"after\":2,\"batches\":2,\"loss\":4,\"samples\":4},{\"after\":3,\"batches\":2,\"loss\":3,\"samples\":4}],"),
      std::string::npos);
}

TEST(Metrics, RecordsOfOlderVersionsAreOneEvaluationAtTheEnd) {
  pictures::Metrics metrics;
  EXPECT_TRUE(pictures::read_metrics(held_out_line(2, "3", "1") + line_of(1, "4") +
                                         line_of(7, "3") + held_out_line(1, "1", "1"),
                                     metrics)
                  .empty());
  ASSERT_EQ(metrics.held_out.size(), 1u);
  EXPECT_EQ(metrics.held_out[0].after, 7);
  EXPECT_EQ(pictures::held_out_loss(metrics), 2);
  // One evaluation is no course.
  EXPECT_EQ(pictures::metrics_text(metrics, "loss", {}).find("evaluation"), std::string::npos);
}

TEST(Metrics, AreDrawnWhateverTheyAre) {
  for (const std::string& text :
       {line_of(1, "2"), line_of(1, "2") + line_of(2, "2"), line_of(1, "null"),
        line_of(1, "1e300") + line_of(2, "-1e300"), held_out_line(5, "1", "1"),
        line_of(1, "2") + held_out_line(1, "9", "1", "\"after\":1,"),
        line_of(1, "2") + held_out_line(1, "null", "1"),
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

/// The `d` of the paths of a colour.
std::vector<std::string> paths_of(const std::string& svg, const std::string& colour) {
  std::vector<std::string> paths;
  for (std::size_t at = 0; (at = svg.find("stroke=\"" + colour, at)) != std::string::npos;) {
    at = svg.find(" d=\"", at) + 4;
    paths.push_back(svg.substr(at, svg.find('"', at) - at));
  }
  return paths;
}

TEST(Metrics, ImagesHaveACurveOfTheEvaluations) {
  pictures::Metrics metrics;
  for (std::int64_t step = 1; step <= 11; ++step) metrics.training.push_back(step_of(step, 2));
  const std::string without = pictures::metrics_svg(metrics, "run");
  EXPECT_EQ(without.find("held-out"), std::string::npos);
  std::string text;
  for (const auto& [after, sum] : {std::pair{1, "4"}, {6, "0"}, {11, "3"}})
    text += held_out_line(1, sum, "1", "\"after\":" + std::to_string(after) + ",");
  pictures::read_metrics(text, metrics);
  const std::string svg = pictures::metrics_svg(metrics, "run");
  // The curve, its points and its mark in the legend. The picture reaches from 0 to 4.
  const std::vector<std::string> drawn = paths_of(svg, "#c8641e");
  ASSERT_EQ(drawn.size(), 3u);
  EXPECT_EQ(drawn[0], "M64 40L464 360L864 120");
  EXPECT_EQ(drawn[1], "M64 40h0M464 360h0M864 120h0");
  EXPECT_NE(svg.find(">held-out loss</text>"), std::string::npos);
  EXPECT_EQ(paths_of(svg, "#3b6fb6")[0].substr(0, 7), "M64 200");

  std::string all;
  for (int after = 1; after <= 20000; ++after)
    all += held_out_line(1, std::to_string(after % 9), "1",
                         "\"after\":" + std::to_string(after) + ",");
  pictures::Metrics many;
  pictures::read_metrics(all, many);
  const std::string large = pictures::metrics_svg(many, "run");
  EXPECT_LT(large.size(), 200000u);
  EXPECT_EQ(paths_of(large, "#c8641e").size(), 2u);  // no points
}

}  // namespace
}  // namespace piper::test
