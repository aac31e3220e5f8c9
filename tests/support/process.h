#pragma once
// Runs a program and collects its output.
//
// Guarantees: the program and all its children are dead when `run_process` returns; a program that
// exceeds its limit is killed, and `timed_out` is set. The child's standard input is empty.
//
//   const ProcessResult result = run_process({program_path("piper"), "check", "a.pipe"});
//   EXPECT_EQ(result.exit_code, 0) << result.err;

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace piper::test {

struct ProcessOptions {
  // Set in addition to the test's own.
  std::vector<std::pair<std::string, std::string>> environment;
  std::string working_directory;  // empty: the test's own
  std::chrono::milliseconds limit{60'000};
};

struct ProcessResult {
  int exit_code = -1;  // 128 + signal when a signal ended it, as in a shell
  bool timed_out = false;
  std::string out;
  std::string err;
};

ProcessResult run_process(const std::vector<std::string>& command,
                          const ProcessOptions& options = {});

/// The absolute path of a program or plugin of this build: they lie beside the test programs.
std::string program_path(const std::string& name);

}  // namespace piper::test
