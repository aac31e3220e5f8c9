// Models of the library beside those of Hugging Face's `transformers`: weights in, training, weights
// out. The comparison is in Python.

#include <gtest/gtest.h>

#include "tests/support/fetched.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {
namespace {

/// A Python that the wheels are for; empty if there is none.
std::string python() {
  for (const char* const name : {"python3.11", "python3"}) {
    const ProcessResult version =
        run_process({name, "-I", "-c", "import sys; print(sys.version_info[:2] == (3, 11))"});
    if (version.exit_code == 0 && version.out == "True\n") return name;
  }
  return {};
}

/// Whether the wheels are there.
bool is_fetched(const std::string& python) {
  return run_process({python, "-I", "-c",
                      "import os, subprocess, sys\n"
                      "command = [sys.executable, '.deps/fetch_wheels.py', '--group', "
                      "'transformers', '--path']\n"
                      "sys.exit(not os.path.isdir(subprocess.check_output(command, "
                      "text=True).strip()))\n"})
             .exit_code == 0;
}

TEST(Transformers, TrainTheSameModels) {
  const std::string interpreter = python();
  if (interpreter.empty()) PIPER_NOT_FETCHED("there is no Python 3.11");
  if (!is_fetched(interpreter)) PIPER_NOT_FETCHED("there is no `transformers`");
  const TemporaryFolder folder;
  ProcessOptions options;
  options.limit = std::chrono::minutes(5);
  const ProcessResult compared =
      run_process({interpreter, "-I", "-S", "-B", "tests/tools/transformers_models.py",
                   program_path("piper"), folder.path().string()},
                  options);
  EXPECT_EQ(compared.exit_code, 0) << compared.out << compared.err;
  EXPECT_FALSE(compared.timed_out);
}

}  // namespace
}  // namespace piper::test
