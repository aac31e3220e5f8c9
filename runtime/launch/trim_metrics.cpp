#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

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
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string kept, line;
  while (std::getline(file, line)) {
    if (!file.eof() && is_kept(line, steps)) kept += line + '\n';
  }
  const auto unwritable = [&] {
    return Failure{.code = kOutputUnwritable,
                   .message = "cannot write `" + draft + "`: " + std::strerror(errno) +
                              "; the metrics of the run before are unchanged",
                   .hint = "give `--out` a folder that can be written, on a disk with space left"};
  };
  std::ofstream out(draft, std::ios::binary | std::ios::trunc);
  out << kept;
  out.close();
  if (!out || rename(draft.c_str(), path.c_str()) != 0) {
    const Failure failure = unwritable();
    unlink(draft.c_str());
    return failure;
  }
  return std::nullopt;
}

}  // namespace piper::runtime
