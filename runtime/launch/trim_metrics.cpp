#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "runtime/checkpoint/checkpoint_files.h"
#include "runtime/checkpoint/json.h"
#include "runtime/launch/metrics.h"

namespace piper::runtime {
namespace {

/// Whether a line describes the first `steps` steps of training, or an evaluation after at most so
/// many. Half a line, which a killed run leaves, does not.
bool is_kept(const std::string& line, std::uint64_t steps) {
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

}  // namespace

std::optional<Failure> trim_metrics(const std::string& out_folder, std::uint64_t steps) {
  const std::string path = out_folder + "/metrics.jsonl", draft = out_folder + "/.metrics.partial";
  const auto unwritable = [](const std::string& file, const std::string& reason) {
    return Failure{.code = kOutputUnwritable,
                   .message = "cannot write `" + file + "`: " + reason +
                              "; the metrics of the run before are unchanged",
                   .hint = "give `--out` a folder that can be written, on a disk with space left"};
  };
  struct stat status{};
  if (lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return std::nullopt;
    return unwritable(path, std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) return unwritable(path, "it is no plain file");
  std::ifstream file(path, std::ios::binary);
  if (!file) return unwritable(path, "it cannot be read");
  std::string lines, line;
  while (std::getline(file, line)) {
    if (!file.eof() && is_kept(line, steps)) lines += line + '\n';
  }
  unlink(draft.c_str());  // of a run that was killed
  WrittenFile out;
  int error = out.open(draft);
  if (error == 0) error = out.write(0, lines.data(), lines.size());
  if (error == 0) error = out.finish();
  if (error == 0 && rename(draft.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return std::nullopt;
  unlink(draft.c_str());
  return unwritable(draft, std::strerror(error));
}

}  // namespace piper::runtime
