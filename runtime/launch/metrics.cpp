#include "runtime/launch/metrics.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "runtime/checkpoint/json.h"

namespace piper::runtime {
namespace {

template <typename Value>
void append_per_loss(std::string& out, std::span<const std::string> names, const Value& value) {
  out += '{';
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i) out += ',';
    append_json_string(out, names[i]);
    out += ':';
    value(i);
  }
  out += '}';
}

std::string short_count(double value) {
  const char* const units[] = {"", " k", " M", " G"};
  std::size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(units)) {
    value /= 1000;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof(text), value < 10 && unit ? "%.1f%s" : "%.0f%s", value, units[unit]);
  return text;
}

std::string clock_text(double seconds) {
  const std::uint64_t whole = static_cast<std::uint64_t>(seconds + 0.5);
  char text[32];
  if (whole >= 3600) {
    std::snprintf(text, sizeof(text), "%llu:%02llu:%02llu",
                  static_cast<unsigned long long>(whole / 3600),
                  static_cast<unsigned long long>(whole / 60 % 60),
                  static_cast<unsigned long long>(whole % 60));
  } else {
    std::snprintf(text, sizeof(text), "%llu:%02llu", static_cast<unsigned long long>(whole / 60),
                  static_cast<unsigned long long>(whole % 60));
  }
  return text;
}

}  // namespace

std::string metrics_json(const StepRecord& step, std::span<const std::string> loss_names,
                         std::span<const std::uint64_t> peak_bytes, std::uint64_t after) {
  std::string out = "{\"schema\":1,\"phase\":";
  out += step.phase == Phase::training ? "\"training\"" : "\"evaluation\"";
  if (step.phase == Phase::evaluation) out += ",\"after\":" + std::to_string(after);
  out += ",\"step\":" + std::to_string(step.step + 1) + ",\"loss\":";
  append_json_number(out, step.loss);
  out += ",\"losses\":";
  append_per_loss(out, loss_names, [&](std::size_t i) { append_json_number(out, step.losses[i]); });
  out += ",\"microbatches\":";
  append_per_loss(out, loss_names, [&](std::size_t i) {
    out += '[';
    for (std::size_t m = 0; m < step.microbatch_sums[i].size(); ++m) {
      if (m) out += ',';
      append_json_number(out, step.microbatch_sums[i][m]);
    }
    out += ']';
  });
  out += ",\"counts\":";
  append_per_loss(out, loss_names, [&](std::size_t i) { append_json_number(out, step.counts[i]); });
  out += ",\"samples\":" + std::to_string(step.samples);
  if (step.gradient_norm) {
    out += ",\"norm\":";
    append_json_number(out, *step.gradient_norm);
  }
  if (step.phase == Phase::training) {
    out += ",\"lr\":";
    append_json_number(out, step.learning_rate);
  }
  if (step.skipped) out += ",\"skipped\":true";
  out += ",\"seconds\":";
  append_json_number(out, step.seconds);
  out += ",\"" + step.throughput.unit() + "_per_second\":";
  append_json_number(out, step.throughput.per_second);
  out += ",\"peak_bytes\":[";
  for (std::size_t i = 0; i < peak_bytes.size(); ++i)
    out += (i ? "," : "") + std::to_string(peak_bytes[i]);
  return out + "]}";
}

std::optional<Failure> MetricsFile::open(const std::string& out_folder,
                                         std::vector<std::string> loss_names,
                                         std::vector<std::uint64_t> peak_bytes, bool append) {
  loss_names_ = std::move(loss_names);
  peak_bytes_ = std::move(peak_bytes);
  constexpr const char* kNoneKept = "no metrics would be kept";
  if (auto failure = make_log_folder(out_folder, kNoneKept)) return failure;
  return file_.open(out_folder + "/metrics.jsonl",
                    append ? LogFile::Begin::after_those : LogFile::Begin::fresh, kNoneKept);
}

std::optional<Failure> MetricsFile::write(const StepRecord& step, std::uint64_t after) {
  return file_.write(metrics_json(step, loss_names_, peak_bytes_, after) + '\n',
                     "the metrics from step `" + std::to_string(step.step + 1) + "` on are lost");
}

ProgressLine::ProgressLine(Write write, Columns columns, std::string memory)
    : write_(std::move(write)), columns_(std::move(columns)), memory_(std::move(memory)) {}

std::string ProgressLine::text(const StepRecord& step, double per_second, const std::string& memory,
                               double seconds_left, std::size_t width) {
  char number[64];
  const std::uint64_t first = step.step - step.local_step;
  struct Field {
    std::string text;
    int weight;  // on a narrow line the field of the smallest weight goes first
  };
  std::vector<Field> fields;
  fields.push_back({(step.phase == Phase::training ? "step " : "held out ") +
                        std::to_string(step.step + 1) + '/' + std::to_string(first + step.steps),
                    7});
  std::snprintf(number, sizeof(number), "loss %.4f", step.loss);
  fields.push_back({number, 6});
  if (step.gradient_norm) {
    std::snprintf(number, sizeof(number), step.skipped ? "norm %.3g, skipped" : "norm %.3g",
                  *step.gradient_norm);
    fields.push_back({number, 3});
  }
  if (step.phase == Phase::training) {
    std::snprintf(number, sizeof(number), "lr %.2e", step.learning_rate);
    fields.push_back({number, 2});
  }
  fields.push_back({short_count(per_second) + " " + step.throughput.unit() + "/s", 4});
  if (!memory.empty()) fields.push_back({memory, 1});
  fields.push_back({"left " + clock_text(seconds_left), 5});
  const auto length = [&] {
    std::size_t sum = 2 * (fields.size() - 1);
    for (const Field& field : fields) sum += field.text.size();
    return sum;
  };
  while (fields.size() > 1 && length() > width) {
    fields.erase(std::min_element(fields.begin(), fields.end(), [](const Field& a, const Field& b) {
      return a.weight < b.weight;
    }));
  }
  std::string out;
  for (const Field& field : fields) out += (out.empty() ? "" : "  ") + field.text;
  return out;
}

void ProgressLine::show(const StepRecord& step, Clock::time_point now) {
  // The last ten steps have the most weight, or the last two seconds if steps are short.
  const double fade = std::max(0.9, std::exp(-step.seconds / 2));
  recent_steps_ = recent_steps_ * fade + 1;
  recent_seconds_ = recent_seconds_ * fade + step.seconds;
  recent_items_ = recent_items_ * fade + step.throughput.per_second * step.seconds;
  const bool last = step.local_step + 1 == step.steps;
  const unsigned columns = columns_ ? columns_() : 0;
  const auto pause = columns ? std::chrono::milliseconds(100) : std::chrono::milliseconds(5000);
  if (shown_ && now - *shown_ < pause && !last) return;
  shown_ = now;
  const double speed = recent_seconds_ > 0 ? recent_items_ / recent_seconds_ : 0;
  const double left =
      recent_seconds_ / recent_steps_ * static_cast<double>(step.steps - step.local_step - 1);
  // The last column stays free: many terminals would begin a new line there.
  std::string line = text(step, speed, memory_, left, columns ? columns - 1 : std::string::npos);
  if (columns == 0) {
    write_(line + '\n');
    return;
  }
  line.resize(std::min<std::size_t>(line.size(), columns - 1));
  drawn_ = true;
  write_('\r' + line + "\x1b[K");
}

void ProgressLine::finish() {
  if (drawn_) write_("\n");
  drawn_ = false;
  shown_.reset();
  recent_steps_ = recent_seconds_ = recent_items_ = 0;
}

}  // namespace piper::runtime
