#pragma once
// Runs kernels that were built with host_shim.h: block after block, the threads of a block as
// coroutines if they exchange values.
//
//   HostGrid grid(library);            // a loaded object
//   grid.run({.blocks = 3, .threads = 64, .meets = true}, [&] { kernel(x, y); });

#include <functional>

#include "backend/cuda/launch.h"

namespace piper::test {

class HostGrid {
 public:
  explicit HostGrid(void* library);
  void run(const backend::cuda::Launch& launch, const std::function<void()>& thread);
};

}  // namespace piper::test
