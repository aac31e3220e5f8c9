#pragma once
// The calls that the test libcuda.so.1 has seen: dlsym(library, "test_libcuda").

#include <string>
#include <vector>

namespace piper::test {

struct TestLibcuda {
  std::vector<std::string> calls;               // `cuStreamCreateWithPriority 1 -5`
  std::string max_connections, module_loading;  // of the environment, at its start
  // Existing allocations, streams, events, modules, graphs, contexts.
  int objects = 0;
};

}  // namespace piper::test
