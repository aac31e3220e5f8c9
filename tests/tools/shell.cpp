#include "tests/tools/shell.h"

namespace piper::test {

ProcessResult shell(const TemporaryFolder& folder, const std::string& script) {
  ProcessOptions options;
  options.environment = {{"PIPER_MATH", "builtin"}};
  options.working_directory = folder.path().string();
  return run_process({"/bin/sh", "-c", script, program_path("piper")}, options);
}

}  // namespace piper::test
