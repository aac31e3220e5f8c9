#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "runtime/launch/log_file.h"
#include "runtime/launch/metrics.h"
#include "runtime/launch/tensorboard_log.h"

namespace piper::runtime {
namespace {

/// Something that an earlier run may have left: `metrics.jsonl` is kept as `metrics.N.jsonl`.
struct Remains {
  const char* stem;
  const char* extension;
  bool folder;  // of event files; otherwise a plain file

  std::string name() const { return std::string(stem) + extension; }
  std::string aside(unsigned number) const {
    return stem + ("." + std::to_string(number)) + extension;
  }
};

constexpr std::array<Remains, 3> kRemains = {
    {{"metrics", ".jsonl", false}, {"metrics", ".csv", false}, {"tensorboard", "", true}}};

bool has_events(const std::string& folder) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().starts_with(kEventFilePrefix)) return true;
  }
  return false;
}

/// Sets whether a file or folder has something to keep. An empty file has nothing, and is removed;
/// a folder without events is not ours, and stays.
std::optional<Failure> look_at(const Remains& remains, const std::string& path, bool& found) {
  const auto unwritable = [&](const std::string& reason) {
    return unwritable_log(path, "no metrics would be kept", reason);
  };
  struct stat status{};
  found = false;
  if (stat(path.c_str(), &status) != 0)
    return errno == ENOENT ? std::nullopt : std::optional(unwritable(std::strerror(errno)));
  if (remains.folder) {
    found = S_ISDIR(status.st_mode) && has_events(path);
    return std::nullopt;
  }
  if (!S_ISREG(status.st_mode)) {
    Failure failure = unwritable("it is no plain file");
    failure.hint = "remove it, or give `--out` another folder";
    return failure;
  }
  found = status.st_size > 0;
  if (!found && unlink(path.c_str()) != 0) return unwritable(std::strerror(errno));
  return std::nullopt;
}

/// The first number that none of the names aside has.
unsigned free_number(const std::string& out_folder) {
  for (unsigned number = 1;; ++number) {
    const bool taken = std::any_of(kRemains.begin(), kRemains.end(), [&](const Remains& remains) {
      struct stat status{};
      return lstat((out_folder + "/" + remains.aside(number)).c_str(), &status) == 0;
    });
    if (!taken) return number;
  }
}

/// `A`, `A and B`, `A, B and C`.
std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace

std::optional<Failure> keep_earlier_metrics(const std::string& out_folder, std::string& kept_as) {
  kept_as.clear();
  std::array<bool, kRemains.size()> found{};
  for (std::size_t i = 0; i < kRemains.size(); ++i) {
    if (auto failure = look_at(kRemains[i], out_folder + "/" + kRemains[i].name(), found[i]))
      return failure;
  }
  const unsigned number = free_number(out_folder);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kRemains.size(); ++i) {
    if (!found[i]) continue;
    // A link is moved like a file.
    const std::string aside = out_folder + "/" + kRemains[i].aside(number);
    if (rename((out_folder + "/" + kRemains[i].name()).c_str(), aside.c_str()) != 0)
      return unwritable_log(aside, "the metrics of the run before would be lost",
                            std::strerror(errno));
    names.push_back(aside);
  }
  kept_as = listed(names);
  return std::nullopt;
}

}  // namespace piper::runtime
