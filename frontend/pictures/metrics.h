#pragma once
// The metrics of a run, from the text of `metrics.jsonl`, and its loss as a curve.
//
//   Metrics metrics;
//   std::vector<BrokenLine> broken = read_metrics(text, metrics);
//   held_out_loss(metrics);   // of the last evaluation
//   write(metrics_svg(metrics, "out"));

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/pictures/screen.h"

namespace piper::pictures {

struct MetricsStep {
  std::int64_t step = 0;       // from 1
  std::optional<double> loss;  // none: it was not finite
  std::optional<double> norm;
  std::optional<double> learning_rate;
  double seconds = 0;
  double per_second = 0;     // tokens or samples
  std::int64_t samples = 0;  // of held-out data
  // of held-out data, per loss: the sum over its elements, and their number
  std::map<std::string, double> sums, counts;
};

/// One pass over the held-out data.
struct Evaluation {
  std::int64_t after = 0;  // steps of training before it
  std::vector<MetricsStep> batches;
};

struct Metrics {
  // Ascending by step; the last line of a step that was run again.
  std::vector<MetricsStep> training;
  // Ascending by `after`. Records without it, which older versions wrote, are one at the end.
  std::vector<Evaluation> held_out;
  std::string unit;  // of speeds: `tokens`, `samples`
};

/// A line that is not a record of a step.
struct BrokenLine {
  std::size_t line = 0;  // from 1
  std::string reason;
  bool cut_off = false;  // the last one, without a line break: the run was killed while it wrote
};

/// The loss over all batches of an evaluation: each element counts alike, as `train` prints it. None
/// if a batch has no finite loss.
std::optional<double> loss_of(const Evaluation& evaluation);
std::int64_t samples_of(const Evaluation& evaluation);
/// The loss of the last evaluation, if there is one.
std::optional<double> held_out_loss(const Metrics& metrics);

std::vector<BrokenLine> read_metrics(std::string_view text, Metrics& metrics);

/// The loss as a curve of characters, and a summary of the run.
std::string metrics_text(const Metrics& metrics, std::string_view title, const Screen& screen);
/// `training` and `held_out` have the steps, `held_out` those of the last evaluation, whose loss is
/// `held_out_loss`; `evaluations` has a line for each evaluation.
std::string metrics_json(const Metrics& metrics);
/// The loss as a curve, and the losses of the evaluations as another.
std::string metrics_svg(const Metrics& metrics, std::string_view title);

}  // namespace piper::pictures
