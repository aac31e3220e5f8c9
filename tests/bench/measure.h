#pragma once
// Wall and CPU time of a piece of work, and statistics of several of them.
//
//   const Cost cost = measure([&] { executor->run(Phase::training, 2); });
//   const ProcessRun check = measure_process({"build/release/piper", "check", "zbv"});
//   state.counters["ratio"] = median(ratios);

#include <functional>
#include <string>
#include <vector>

namespace piper::bench {

/// Seconds. CPU is user and system time of all threads, and of children that have ended.
struct Cost {
  double wall = 0, cpu = 0;
};

Cost measure(const std::function<void()>& work);

struct ProcessRun {
  Cost cost;
  double user = 0;  // seconds; the part of `cost.cpu` outside the kernel
  bool ok = false;  // it started and ended with exit code 0
};

/// Runs a program from start to end, its output thrown away.
ProcessRun measure_process(const std::vector<std::string>& command);

/// The middle value, or the mean of the two in the middle. `values` is not empty.
double median(std::vector<double> values);

/// A folder that is removed at the end of its scope.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace piper::bench
