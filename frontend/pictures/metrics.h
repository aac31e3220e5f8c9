#pragma once
// The metrics of a run, from the text of `metrics.jsonl`, and its loss as a curve.
//
//   Metrics metrics;
//   std::vector<BrokenLine> broken = read_metrics(text, metrics);
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

struct Metrics {
  // Ascending by step; the last line of a step that was run again.
  std::vector<MetricsStep> training;
  std::vector<MetricsStep> held_out;
  std::string unit;  // of speeds: `tokens`, `samples`
};

/// A line that is not a record of a step.
struct BrokenLine {
  std::size_t line = 0;  // from 1
  std::string reason;
  bool cut_off = false;  // the last one, without a line break: the run was killed while it wrote
};

/// The loss over all held-out data: each element counts alike, as `train` prints it. None if a
/// batch has no finite loss, or if there is no held-out data.
std::optional<double> held_out_loss(const Metrics& metrics);

std::vector<BrokenLine> read_metrics(std::string_view text, Metrics& metrics);

/// The loss as a curve of characters, and a summary of the run.
std::string metrics_text(const Metrics& metrics, std::string_view title, const Screen& screen);
std::string metrics_json(const Metrics& metrics);
std::string metrics_svg(const Metrics& metrics, std::string_view title);

}  // namespace piper::pictures
