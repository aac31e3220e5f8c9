#pragma once
// What the libcuda.so.1 of tests has seen: dlsym(library, "test_libcuda").

#include <string>
#include <vector>

namespace piper::test {

struct TestLibcuda {
  std::vector<std::string> calls;              // `cuStreamCreateWithPriority 1 -5`
  std::string max_connections, module_loading;  // of the environment, when it was started
  int objects = 0;                             // allocations, streams, events, modules, graphs, contexts that are there
};

}  // namespace piper::test
