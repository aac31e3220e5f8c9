#include "frontend/pictures/metrics.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <initializer_list>
#include <limits>
#include <utility>

#include "frontend/pictures/svg.h"
#include "ir/diagnostics/counted.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace piper::pictures {
namespace {

std::string shortened(double value, const char* format) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::optional<double> finite(const llvm::json::Object& object, llvm::StringRef key) {
  const auto value = object.getNumber(key);
  return value && std::isfinite(*value) ? std::optional(*value) : std::nullopt;
}

/// The sums and counts of the losses of a batch; false where the record has none.
bool read_sums(const llvm::json::Object& record, MetricsStep& step) {
  const llvm::json::Object *microbatches = record.getObject("microbatches"),
                           *counts = record.getObject("counts");
  if (microbatches == nullptr || counts == nullptr || counts->size() != microbatches->size())
    return false;
  for (const auto& [name, parts] : *microbatches) {
    const auto count = finite(*counts, name);
    if (parts.getAsArray() == nullptr || !count) return false;
    double& sum = step.sums[name.str()];
    for (const llvm::json::Value& part : *parts.getAsArray())
      sum += part.getAsNumber().value_or(std::numeric_limits<double>::quiet_NaN());
    step.counts[name.str()] = *count;
  }
  const auto samples = record.getInteger("samples");
  step.samples = samples.value_or(0);
  return samples.has_value();
}

/// Batches of held-out data, by the number of training steps before them if the record has it.
using HeldOutBatches = std::map<std::optional<std::int64_t>, std::vector<MetricsStep>>;

/// The record of one line; empty reason when it is one.
std::string read_line(llvm::StringRef line, Metrics& metrics, HeldOutBatches& held_out) {
  auto value = llvm::json::parse(line);
  if (!value) {
    llvm::consumeError(value.takeError());
    return "it is no JSON";
  }
  const llvm::json::Object* object = value->getAsObject();
  if (object == nullptr) return "it is no object";
  const auto phase = object->getString("phase");
  if (!phase || (*phase != "training" && *phase != "evaluation"))
    return "it has no `phase` of `training` or `evaluation`";
  MetricsStep step;
  const auto number = object->getInteger("step");
  if (!number || *number < 1) return "it has no `step` from 1 on";
  step.step = *number;
  if (object->get("loss") == nullptr) return "it has no `loss`";
  step.loss = finite(*object, "loss");
  step.norm = finite(*object, "norm");
  step.learning_rate = finite(*object, "lr");
  step.seconds = finite(*object, "seconds").value_or(0);
  for (const char* unit : {"tokens", "samples"}) {
    if (const auto speed = finite(*object, std::string(unit) + "_per_second")) {
      metrics.unit = unit;
      step.per_second = *speed;
    }
  }
  if (*phase == "training") {
    metrics.training.push_back(step);
    return {};
  }
  if (!read_sums(*object, step)) return "it has no `microbatches`, `counts` and `samples`";
  std::optional<std::int64_t> after;
  if (object->get("after") != nullptr) {
    after = object->getInteger("after");
    if (!after || *after < 0) return "its `after` is no number of steps";
  }
  held_out[after].push_back(step);
  return {};
}

/// Ascending by step; a later line of a step replaces an earlier one.
void sort_steps(std::vector<MetricsStep>& steps) {
  std::stable_sort(steps.begin(), steps.end(),
                   [](const MetricsStep& a, const MetricsStep& b) { return a.step < b.step; });
  std::vector<MetricsStep> kept;
  for (const MetricsStep& step : steps) {
    if (!kept.empty() && kept.back().step == step.step) kept.pop_back();
    kept.push_back(step);
  }
  steps = std::move(kept);
}

using Points = std::vector<std::pair<double, double>>;  // step and loss, finite ones

Points points_of(const std::vector<MetricsStep>& steps) {
  Points points;
  for (const MetricsStep& step : steps) {
    if (step.loss) points.emplace_back(static_cast<double>(step.step), *step.loss);
  }
  return points;
}

Points points_of(const std::vector<Evaluation>& evaluations) {
  Points points;
  for (const Evaluation& evaluation : evaluations) {
    if (const auto loss = loss_of(evaluation))
      points.emplace_back(static_cast<double>(evaluation.after), *loss);
  }
  return points;
}

/// The range of the points of all curves of a picture.
struct Range {
  double first = 0, last = 1, low = 0, high = 1;

  explicit Range(std::initializer_list<const Points*> curves) {
    bool any = false;
    for (const Points* const points : curves) {
      for (const auto& [step, loss] : *points) {
        first = any ? std::min(first, step) : step;
        last = any ? std::max(last, step) : step;
        low = any ? std::min(low, loss) : loss;
        high = any ? std::max(high, loss) : loss;
        any = true;
      }
    }
    last = std::max(last, first + 1);
    if (high - low < 1e-12 * std::max(1.0, std::abs(high))) low -= 0.5, high += 0.5;
  }
};

const std::pair<double, double>& least_of(const Points& points) {
  return *std::min_element(points.begin(), points.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
}

/// `loss 4.5000 -> 2.7500, least 2.7500 at step 5`.
std::string course_text(const Points& points, const char* step_word) {
  const auto& [step, loss] = least_of(points);
  return "loss " + shortened(points.front().second, "%.4f") + " -> " +
         shortened(points.back().second, "%.4f") + ", least " + shortened(loss, "%.4f") + " " +
         step_word + " step " + shortened(step, "%.0f");
}

/// A summary of the run, in a line or two; a third one if held-out data was read several times.
std::string summary(const Metrics& metrics) {
  const std::vector<MetricsStep>& steps = metrics.training;
  std::string out;
  if (!steps.empty()) {
    double seconds = 0, items = 0;
    for (const MetricsStep& step : steps) {
      seconds += step.seconds;
      items += step.per_second * step.seconds;
    }
    const Points points = points_of(steps);
    out += counted(steps.size(), "step") + " in " + shortened(seconds, "%.1f") + " s";
    if (seconds > 0 && items > 0)
      out += ", " + shortened(items / seconds, "%.4g") + " " + metrics.unit + "/s";
    if (!points.empty()) out += ", " + course_text(points, "at");
    if (const std::size_t lost = steps.size() - points.size(); lost > 0)
      out += ", " + std::to_string(lost) + " without a finite loss";
    out += "\n";
  }
  if (const auto loss = held_out_loss(metrics)) {
    const Evaluation& last = metrics.held_out.back();
    out += "held-out loss " + shortened(*loss, "%.4f") + " over " +
           counted(last.batches.size(), "batch", "batches") + ", " +
           counted(samples_of(last), "sample") + "\n";
  }
  if (metrics.held_out.size() > 1) {
    const Points points = points_of(metrics.held_out);
    out += counted(metrics.held_out.size(), "evaluation");
    if (!points.empty()) out += ", held-out " + course_text(points, "after");
    if (const std::size_t lost = metrics.held_out.size() - points.size(); lost > 0)
      out += ", " + std::to_string(lost) + " without a finite loss";
    out += "\n";
  }
  return out;
}

void write_steps(llvm::json::OStream& out, llvm::StringRef name,
                 const std::vector<MetricsStep>& steps) {
  out.attributeArray(name, [&] {
    for (const MetricsStep& step : steps) {
      out.object([&] {
        out.attribute("loss",
                      step.loss ? llvm::json::Value(*step.loss) : llvm::json::Value(nullptr));
        if (step.learning_rate) out.attribute("lr", *step.learning_rate);
        if (step.norm) out.attribute("norm", *step.norm);
        out.attribute("seconds", step.seconds);
        out.attribute("step", step.step);
      });
    }
  });
}

constexpr const char *kTrained = "#3b6fb6", *kHeldOut = "#c8641e";  // colours of the curves
constexpr std::size_t kMaxMarks = 100;  // evaluations that are also drawn as points

std::string drawn_path(const char* colour, const char* style, const std::string& path) {
  return "<path class=\"curve\" stroke=\"" + std::string(colour) + "\"" + style + " d=\"" + path +
         "\"/>\n";
}

void write_evaluations(llvm::json::OStream& out, const std::vector<Evaluation>& evaluations) {
  out.attributeArray("evaluations", [&] {
    for (const Evaluation& evaluation : evaluations) {
      const auto loss = loss_of(evaluation);
      out.object([&] {
        out.attribute("after", evaluation.after);
        out.attribute("batches", evaluation.batches.size());
        out.attribute("loss", loss ? llvm::json::Value(*loss) : llvm::json::Value(nullptr));
        out.attribute("samples", samples_of(evaluation));
      });
    }
  });
}

/// The first, the smallest, the largest and the last point of each column of a picture and each run
/// of steps without a gap: they draw the same curve as all points. A gap is longer than `gap` steps.
template <typename Column, typename Emit>
void thinned(const Points& points, double gap, const Column& column, const Emit& emit) {
  for (std::size_t first = 0; first < points.size();) {
    std::size_t least = first, greatest = first, end = first + 1;
    for (; end < points.size() && points[end].first - points[end - 1].first <= gap &&
           column(points[end].first) == column(points[first].first);
         ++end) {
      if (points[end].second < points[least].second) least = end;
      if (points[end].second > points[greatest].second) greatest = end;
    }
    std::size_t before = points.size();
    for (const std::size_t each :
         {first, std::min(least, greatest), std::max(least, greatest), end - 1}) {
      if (std::exchange(before, each) != each)
        emit(points[each], each > 0 && points[each].first - points[each - 1].first <= gap);
    }
    first = end;
  }
}

}  // namespace

std::optional<double> loss_of(const Evaluation& evaluation) {
  std::map<std::string, double> sums, counts;
  for (const MetricsStep& step : evaluation.batches) {
    for (const auto& [name, sum] : step.sums) sums[name] += sum;
    for (const auto& [name, count] : step.counts) counts[name] += count;
  }
  double loss = 0;
  for (const auto& [name, sum] : sums) loss += sum / std::max(1.0, counts[name]);
  return !sums.empty() && std::isfinite(loss) ? std::optional(loss) : std::nullopt;
}

std::int64_t samples_of(const Evaluation& evaluation) {
  std::int64_t samples = 0;
  for (const MetricsStep& batch : evaluation.batches) samples += batch.samples;
  return samples;
}

std::optional<double> held_out_loss(const Metrics& metrics) {
  return metrics.held_out.empty() ? std::nullopt : loss_of(metrics.held_out.back());
}

std::vector<BrokenLine> read_metrics(std::string_view text, Metrics& metrics) {
  std::vector<BrokenLine> broken;
  HeldOutBatches held_out;
  for (std::size_t line = 1, at = 0; at < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const llvm::StringRef one = llvm::StringRef(text).slice(at, end).trim();
    if (!one.empty()) {
      std::string reason = read_line(one, metrics, held_out);
      if (!reason.empty()) broken.push_back({line, std::move(reason), end == text.size()});
    }
    at = end + 1;
  }
  sort_steps(metrics.training);
  if (const auto old = held_out.find(std::nullopt); old != held_out.end()) {
    std::vector<MetricsStep>& last =
        held_out[metrics.training.empty() ? 0 : metrics.training.back().step];
    last.insert(last.end(), old->second.begin(), old->second.end());
    held_out.erase(old);
  }
  for (auto& [after, batches] : held_out) {
    sort_steps(batches);
    metrics.held_out.push_back({*after, std::move(batches)});
  }
  return broken;
}

std::string metrics_text(const Metrics& metrics, std::string_view title, const Screen& screen) {
  const Points points = points_of(metrics.training);
  const Range curve({&points});
  std::string out = std::string(title) + "\n";
  if (!points.empty()) {
    constexpr std::size_t kHeight = 16, kLeft = 10;
    const std::size_t width = std::max<std::size_t>(
        20, (screen.columns > 0 ? screen.columns - 1 : 90) -
                std::min<std::size_t>(kLeft, screen.columns > 0 ? screen.columns - 1 : kLeft));
    std::vector<double> sums(width, 0);
    std::vector<std::size_t> counts(width, 0);
    for (const auto& [step, loss] : points) {
      const auto column = std::min(
          width - 1, static_cast<std::size_t>((step - curve.first) / (curve.last - curve.first) *
                                              static_cast<double>(width)));
      sums[column] += loss;
      ++counts[column];
    }
    std::vector<std::string> rows(kHeight, std::string(width, ' '));
    for (std::size_t column = 0; column < width; ++column) {
      if (counts[column] == 0) continue;
      const double height = (sums[column] / static_cast<double>(counts[column]) - curve.low) /
                            (curve.high - curve.low);
      rows[kHeight - 1 -
           std::min(kHeight - 1, static_cast<std::size_t>(height * static_cast<double>(kHeight)))]
          [column] = '*';
    }
    for (std::size_t row = 0; row < kHeight; ++row) {
      std::string label;
      if (row % 5 == 0)
        label = shortened(
            curve.high - (curve.high - curve.low) * static_cast<double>(row) / (kHeight - 1),
            "%.4g");
      CellLine line;
      line.append(std::string(kLeft - 2 - std::min(label.size(), kLeft - 2), ' ') + label + " |");
      for (const char c : rows[row])
        line.append(1, c == '*' && screen.colours ? ' ' : c, c == '*' ? 68 : CellLine::kPlain);
      out += line.print(0, line.size(), screen.colours) + "\n";
    }
    const std::string first = shortened(curve.first, "%.0f"), last = shortened(curve.last, "%.0f");
    std::string axis = std::string(kLeft, ' ') + first;
    axis.resize(std::max(axis.size() + 1, kLeft + width - last.size()), ' ');
    out += axis + last + "  step\n";
  }
  return out + summary(metrics);
}

std::string metrics_json(const Metrics& metrics) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream out(stream);
  out.object([&] {
    write_evaluations(out, metrics.held_out);
    write_steps(
        out, "held_out",
        metrics.held_out.empty() ? std::vector<MetricsStep>() : metrics.held_out.back().batches);
    if (const auto loss = held_out_loss(metrics)) out.attribute("held_out_loss", *loss);
    out.attribute("schema", 1);
    write_steps(out, "training", metrics.training);
  });
  return text + "\n";
}

std::string metrics_svg(const Metrics& metrics, std::string_view title) {
  constexpr double kLeft = 64, kTop = 40, kWidth = 800, kHeight = 320;
  const Points trained = points_of(metrics.training), held_out = points_of(metrics.held_out);
  const Range curve({&trained, &held_out});
  const std::string reported = summary(metrics);
  const auto lines = static_cast<double>(std::count(reported.begin(), reported.end(), '\n'));
  std::string out =
      svg_head(kLeft + kWidth + 24, kTop + kHeight + 64 + 15 * std::max(0.0, lines - 2), title) +
      svg_text(kLeft, 20, "class=\"title\"", title);
  const auto x = [&](double step) {
    return kLeft + (step - curve.first) / (curve.last - curve.first) * kWidth;
  };
  const auto y = [&](double loss) {
    return kTop + (curve.high - loss) / (curve.high - curve.low) * kHeight;
  };
  const double loss_step = axis_step(curve.high - curve.low, 6),
               axis = axis_step(curve.last - curve.first, 8);
  for (double loss = std::ceil(curve.low / loss_step) * loss_step;
       loss <= curve.high + 1e-9 * loss_step; loss += loss_step) {
    out += svg_line(kLeft, y(loss), kLeft + kWidth, y(loss), "mesh") +
           svg_text(kLeft - 6, y(loss) + 4, "class=\"end small\"", shortened(loss, "%.4g"));
  }
  for (double step = std::ceil(curve.first / axis) * axis; step <= curve.last + 1e-9 * axis;
       step += axis) {
    out +=
        svg_line(x(step), kTop + kHeight, x(step), kTop + kHeight + 4, "axis") +
        svg_text(x(step), kTop + kHeight + 17, "class=\"middle small\"", shortened(step, "%.6g"));
  }
  out += svg_line(kLeft, kTop + kHeight, kLeft + kWidth, kTop + kHeight, "axis");
  // Twice as many columns as points of the picture. Training has a gap where a step has no finite
  // loss.
  const auto column = [&](double step) {
    return std::floor((step - curve.first) / (curve.last - curve.first) * 2 * kWidth);
  };
  const auto at = [&](const auto& point) {
    return decimal(x(point.first)) + " " + decimal(y(point.second));
  };
  std::string path, second, marks;
  thinned(trained, 1.5, column,
          [&](const auto& point, bool follows) { path += (follows ? "L" : "M") + at(point); });
  thinned(held_out, curve.last, column, [&](const auto& point, bool follows) {
    second += (follows ? "L" : "M") + at(point);
    marks += "M" + at(point) + "h0";
  });
  if (!path.empty()) out += drawn_path(kTrained, "", path);
  if (!second.empty()) {
    constexpr double kLegend = kLeft + kWidth - 180;
    out += drawn_path(kHeldOut, "", second);
    if (held_out.size() <= kMaxMarks)
      out += drawn_path(kHeldOut, " stroke-linecap=\"round\" style=\"stroke-width:5\"", marks);
    out += drawn_path(kTrained, "", "M" + decimal(kLegend) + " 30h20") +
           svg_text(kLegend + 26, 34, "class=\"small\"", "loss") +
           drawn_path(kHeldOut, "", "M" + decimal(kLegend + 70) + " 30h20") +
           svg_text(kLegend + 96, 34, "class=\"small\"", "held-out loss");
  }
  double line = kTop + kHeight + 36;
  for (std::size_t from = 0; from < reported.size(); line += 15) {
    const std::size_t end = reported.find('\n', from);
    out += svg_text(kLeft, line, "class=\"small\"", reported.substr(from, end - from));
    from = end + 1;
  }
  return out + "</svg>\n";
}

}  // namespace piper::pictures
