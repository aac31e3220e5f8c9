#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "runtime/checkpoint/checkpoint_files.h"
#include "runtime/checkpoint/json.h"
#include "runtime/launch/csv_log.h"
#include "runtime/launch/log_file.h"
#include "runtime/launch/metrics.h"

namespace piper::runtime {
namespace {

/// Whether a line of metrics.jsonl describes the first `steps` steps of training, or an evaluation
/// after at most so many.
bool line_is_within(const std::string& line, std::uint64_t steps) {
  std::string error;
  const auto value = parse_json(line, error);
  if (!value) return false;
  const JsonValue* const phase = value->find("phase");
  const bool evaluation =
      phase != nullptr && phase->as_string() != nullptr && *phase->as_string() == "evaluation";
  const JsonValue* const step = value->find(evaluation ? "after" : "step");
  const auto number = step != nullptr ? step->as_unsigned() : std::nullopt;
  return number && *number <= steps;
}

Failure unwritable(const std::string& path, const std::string& reason) {
  return unwritable_log(path, "the metrics of the run before are unchanged", reason);
}

/// Puts a text in place of a file, or leaves the file unchanged.
std::optional<Failure> replace_file(const std::string& path, const std::string& draft,
                                    const std::string& text) {
  unlink(draft.c_str());  // of a run that was killed
  WrittenFile out;
  int error = out.create(draft);
  if (error == 0) error = out.write(0, text.data(), text.size());
  if (error == 0) error = out.finish();
  if (error == 0 && rename(draft.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return std::nullopt;
  unlink(draft.c_str());
  return unwritable(draft, std::strerror(error));
}

/// Opens a plain file; a file that does not exist is left closed, and is no failure.
std::optional<Failure> open_plain(const std::string& path, std::ifstream& file) {
  struct stat status{};
  if (lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return std::nullopt;
    return unwritable(path, std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) return unwritable(path, "it is no plain file");
  file.open(path, std::ios::binary);
  if (!file) return unwritable(path, "it cannot be read");
  return std::nullopt;
}

std::optional<Failure> trim_lines(const std::string& out_folder, std::uint64_t steps) {
  const std::string path = out_folder + "/metrics.jsonl";
  std::ifstream file;
  if (auto failure = open_plain(path, file)) return failure;
  if (!file.is_open()) return std::nullopt;
  std::string lines, line;
  // Half a line, which a killed run leaves, has no end.
  while (std::getline(file, line)) {
    if (!file.eof() && line_is_within(line, steps)) lines += line + '\n';
  }
  return replace_file(path, out_folder + "/.metrics.partial", lines);
}

std::optional<Failure> trim_rows(const std::string& out_folder, std::uint64_t steps) {
  const std::string path = out_folder + "/metrics.csv";
  std::ifstream file;
  if (auto failure = open_plain(path, file)) return failure;
  std::string lines, line;
  // A table of somebody else stays unchanged.
  if (!file.is_open() || !std::getline(file, line) || !line.starts_with("step,loss,"))
    return std::nullopt;
  if (!file.eof()) lines = line + '\n';
  while (std::getline(file, line)) {
    if (!file.eof() && csv_row_is_within(line, steps)) lines += line + '\n';
  }
  return replace_file(path, out_folder + "/.metrics.partial", lines);
}

}  // namespace

std::optional<Failure> trim_metrics(const std::string& out_folder, std::uint64_t steps) {
  if (auto failure = trim_lines(out_folder, steps)) return failure;
  return trim_rows(out_folder, steps);
}

}  // namespace piper::runtime
