#pragma once
// The device of a test's kernels and trainings. The linked file chooses it: host_device.cpp, the
// host in place of a GPU, or tests/gpu/gpu_device.cpp, a GPU.
//
//   std::string reason;
//   const std::unique_ptr<TestDevice> device = find_test_device(reason);
//   if (!device) GTEST_SKIP() << reason;
//   auto driver = device->open();
//   const std::string image = device->build(kernels);   // for driver->load

#include <memory>
#include <string>

#include "backend/cuda/kernel_set.h"
#include "runtime/cuda/driver.h"

namespace piper::test {

class TestDevice {
 public:
  virtual ~TestDevice() = default;
  /// True if the claims about the CPU are tested, too.
  virtual bool is_host() const = 0;
  /// Null if it cannot be opened, which fails the test.
  virtual std::unique_ptr<runtime::cuda::Driver> open() = 0;
  /// The kernels as an image that the driver loads; a kernel that does not compile fails the test.
  virtual std::string build(const backend::cuda::KernelSet& kernels) = 0;
  /// The kernels of the runtime itself.
  virtual std::string build_own() = 0;
};

/// Null, with the reason, if there is no such device.
std::unique_ptr<TestDevice> find_test_device(std::string& reason);

}  // namespace piper::test
