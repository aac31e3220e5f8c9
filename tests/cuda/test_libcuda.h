#pragma once
// The calls that the test libcuda.so.1 has seen: dlsym(library, "test_libcuda").

#include <string>
#include <vector>

namespace piper::test {

struct TestLibcuda {
  std::vector<std::string> calls;              // `cuStreamCreateWithPriority 1 -5`
  std::string max_connections, module_loading;  // of the environment, at its start
  int objects = 0;                             // existing allocations, streams, events, modules, graphs, contexts
};

}  // namespace piper::test
