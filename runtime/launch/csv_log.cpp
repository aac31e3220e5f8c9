#include "runtime/launch/csv_log.h"

#include <charconv>
#include <cmath>
#include <system_error>

#include "runtime/checkpoint/json.h"

namespace piper::runtime {
namespace {

constexpr const char* kNoneKept = "no rows would be kept";

/// A field as RFC 4180 has it: in quotes if it has a comma, a quote or the end of a line.
void append_text(std::string& out, const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  out += '"';
}

void append_number(std::string& out, double value) {
  out += ',';
  if (std::isnan(value)) {
    out += "nan";
  } else if (std::isinf(value)) {
    out += value < 0 ? "-inf" : "inf";
  } else {
    append_json_number(out, value);
  }
}

}  // namespace

std::string csv_header(std::span<const std::string> loss_names, const std::string& unit) {
  std::string out = "step,loss";
  for (const std::string& name : loss_names) {
    out += ',';
    append_text(out, "losses/" + name);
  }
  return out + ",norm,lr,seconds,samples," + unit + "_per_second,held_out_loss\n";
}

std::string csv_row(const StepRecord& step) {
  std::string out = std::to_string(step.step + 1);
  append_number(out, step.loss);
  for (const double loss : step.losses) append_number(out, loss);
  if (step.gradient_norm) {
    append_number(out, *step.gradient_norm);
  } else {
    out += ',';
  }
  append_number(out, step.learning_rate);
  append_number(out, step.seconds);
  out += ',' + std::to_string(step.samples);
  append_number(out, step.throughput.per_second);
  return out + ",\n";
}

bool csv_row_is_within(const std::string& line, std::uint64_t steps) {
  std::uint64_t step = 0;
  const char* const end = line.data() + line.size();
  const auto [stopped, error] = std::from_chars(line.data(), end, step);
  return error == std::errc() && stopped != end && *stopped == ',' && step <= steps;
}

std::optional<Failure> CsvLog::open(const std::string& out_folder,
                                    std::span<const std::string> loss_names,
                                    const std::string& unit, LogFile::Begin begin) {
  losses_ = loss_names.size();
  if (auto failure = file_.open(out_folder + "/metrics.csv", begin, kNoneKept)) return failure;
  const std::string header = csv_header(loss_names, unit), there = file_.beginning(header.size());
  if (there == header) return std::nullopt;
  if (there.empty()) return file_.write(header, kNoneKept);
  Failure failure = unwritable_log(file_.path(), kNoneKept, "it has other columns than this run");
  failure.hint = "give it another name, or give `--out` another folder";
  return failure;
}

std::optional<Failure> CsvLog::write(const StepRecord& step, std::uint64_t) {
  if (step.phase != Phase::training) return std::nullopt;
  return file_.write(csv_row(step),
                     "the rows from step `" + std::to_string(step.step + 1) + "` on are lost");
}

std::optional<Failure> CsvLog::write_held_out(std::uint64_t after, double loss) {
  // After the step: the losses, norm, lr, seconds, samples and speed.
  std::string row = std::to_string(after) + std::string(6 + losses_, ',');
  append_number(row, loss);
  return file_.write(row + '\n', "the held-out loss after step `" + std::to_string(after) +
                                     "` and later rows are lost");
}

}  // namespace piper::runtime
