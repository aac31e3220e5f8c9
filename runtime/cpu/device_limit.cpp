#include "runtime/cpu/device_limit.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

namespace piper::runtime {
namespace {

/// The number in a file of the kernel; empty if there is no such file or it contains `max`.
std::optional<std::uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

std::uint64_t lines_of(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t lines = 0;
  for (std::string line; std::getline(file, line);) ++lines;
  return lines;
}

/// The folder of this process's control group, by which a container or a batch system limits
/// threads; empty if there is none.
std::string control_group() {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.starts_with("0::")) return "/sys/fs/cgroup" + line.substr(3);
  }
  return {};
}

struct Limit {
  std::uint64_t needed, most;
  std::string what, name;
};

}  // namespace

std::optional<Failure> too_many_devices(std::uint64_t devices, std::uint64_t mapped_files) {
  const std::uint64_t threads = devices + 1;  // and the progress thread
  std::vector<Limit> limits;
  // A stack is a mapping, and so is the guard at its end.
  if (const auto most = number_in("/proc/sys/vm/max_map_count")) {
    limits.push_back({lines_of("/proc/self/maps") + 2 * threads + mapped_files, *most, "mappings",
                      "vm.max_map_count"});
  }
  if (const auto most = number_in("/proc/sys/kernel/threads-max"))
    limits.push_back({threads, *most, "threads", "kernel.threads-max"});
  if (const auto most = number_in("/proc/sys/kernel/pid_max"))
    limits.push_back({threads, *most, "threads", "kernel.pid_max"});
  const std::string group = control_group();
  if (const auto most = number_in(group + "/pids.max"); most && !group.empty()) {
    limits.push_back({number_in(group + "/pids.current").value_or(0) + threads, *most, "threads",
                      group + "/pids.max"});
  }
  rlimit user{};
  if (geteuid() != 0 && getrlimit(RLIMIT_NPROC, &user) == 0 && user.rlim_cur != RLIM_INFINITY)
    limits.push_back({threads, user.rlim_cur, "threads", "ulimit -u"});
  for (const Limit& limit : limits) {
    if (limit.needed <= limit.most) continue;
    return Failure{
        .code = kOutOfMemory,
        .message =
            "`" + std::to_string(devices) +
            "` devices are as many threads of this process, for which the system is too small: they need `" +
            std::to_string(limit.needed) + "` " + limit.what + ", and `" + limit.name +
            "` allows `" + std::to_string(limit.most) + "`",
        .hint = "train on fewer devices, or raise that limit; `piper check` needs neither"};
  }
  return std::nullopt;
}

}  // namespace piper::runtime
