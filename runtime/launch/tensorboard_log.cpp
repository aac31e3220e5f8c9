#include "runtime/launch/tensorboard_log.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "runtime/launch/event_file.h"

namespace piper::runtime {
namespace {

constexpr const char* kNoneKept = "no events would be kept";

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// The seconds in the name of an event file; 0 of any other file.
std::uint64_t seconds_of(std::string_view name) {
  if (!name.starts_with(kEventFilePrefix)) return 0;
  std::uint64_t seconds = 0;
  std::from_chars(name.data() + kEventFilePrefix.size(), name.data() + name.size(), seconds);
  constexpr std::uint64_t kTenDigits = 9'999'999'999;
  return seconds < kTenDigits ? seconds : 0;
}

/// This second, or one later than those of all files in the folder: clocks go back, and two runs
/// may begin within a second.
std::uint64_t next_seconds(const std::string& folder) {
  auto seconds = static_cast<std::uint64_t>(std::max(0.0, wall_time()));
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    seconds = std::max(seconds, seconds_of(entry->path().filename().string()) + 1);
  return seconds;
}

std::string host_name() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  std::string name = host;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '.') c = '-';
  }
  return name.empty() ? "host" : name;
}

}  // namespace

std::optional<Failure> TensorboardLog::open(const std::string& out_folder,
                                            std::vector<std::string> loss_names,
                                            std::optional<std::uint64_t> goes_on_after) {
  loss_names_ = std::move(loss_names);
  const std::string folder = out_folder + "/tensorboard";
  if (auto failure = make_folder_in(out_folder, "tensorboard", kNoneKept)) return failure;
  char seconds[32];  // TensorFlow writes ten digits, so that names sort by time
  std::snprintf(seconds, sizeof seconds, "%010llu",
                static_cast<unsigned long long>(next_seconds(folder)));
  const std::string path = folder + "/" + std::string(kEventFilePrefix) + seconds + "." +
                           host_name() + "." + std::to_string(getpid());
  if (auto failure = file_.open(path, LogFile::Begin::fresh, kNoneKept)) return failure;
  const double now = wall_time();
  std::string records = event_record(version_event(now));
  if (goes_on_after) records += event_record(start_event(now, *goes_on_after + 1));
  return file_.write(records, kNoneKept);
}

std::optional<Failure> TensorboardLog::write(const StepRecord& step, std::uint64_t) {
  if (step.phase != Phase::training) return std::nullopt;
  std::vector<Scalar> scalars = {{"loss", static_cast<float>(step.loss)}};
  for (std::size_t i = 0; i < loss_names_.size(); ++i)
    scalars.push_back({"losses/" + loss_names_[i], static_cast<float>(step.losses[i])});
  scalars.push_back({"lr", static_cast<float>(step.learning_rate)});
  if (step.gradient_norm) scalars.push_back({"norm", static_cast<float>(*step.gradient_norm)});
  scalars.push_back(
      {step.throughput.unit() + "_per_second", static_cast<float>(step.throughput.per_second)});
  return file_.write(event_record(scalars_event(wall_time(), step.step + 1, scalars)),
                     "the events from step `" + std::to_string(step.step + 1) + "` on are lost");
}

std::optional<Failure> TensorboardLog::write_held_out(std::uint64_t after, double loss) {
  const Scalar scalar{"held_out/loss", static_cast<float>(loss)};
  return file_.write(
      event_record(scalars_event(wall_time(), after, std::span(&scalar, 1))),
      "the held-out loss after step `" + std::to_string(after) + "` and later events are lost");
}

}  // namespace piper::runtime
