#pragma once
// A driver of the tests: the types of a driver, under short names.

#include "runtime/cuda/driver.h"

namespace piper::test {

class TestDriver : public runtime::cuda::Driver {
 public:
  using Status = runtime::cuda::Status;
  using CudaStream = runtime::cuda::CudaStream;
  using Event = runtime::cuda::Event;
  using Module = runtime::cuda::Module;
  using Function = runtime::cuda::Function;
  using PlannedCall = runtime::cuda::PlannedCall;
  using Graph = runtime::cuda::Graph;
  using Priority = runtime::cuda::Priority;
};

}  // namespace piper::test
