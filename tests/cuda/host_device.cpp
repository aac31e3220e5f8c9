// The host as the device of a test.

#include <filesystem>

#include "tests/cuda/host_driver.h"
#include "tests/cuda/test_device.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {

namespace {

class HostDevice final : public TestDevice {
 public:
  bool is_host() const override { return true; }
  std::unique_ptr<runtime::cuda::Driver> open() override {
    return std::make_unique<HostDriver>(HostOptions{.memory = std::uint64_t{256} << 20});
  }
  std::string build(const backend::cuda::KernelSet& kernels) override {
    return build_host_image(kernels, fresh_folder());
  }
  std::string build_own() override { return build_own_host_image(fresh_folder()); }

 private:
  std::string fresh_folder() {
    const auto made = folder_.path() / std::to_string(folders_++);
    std::filesystem::create_directories(made);
    return made;
  }

  TemporaryFolder folder_;
  int folders_ = 0;
};

}  // namespace

std::unique_ptr<TestDevice> find_test_device(std::string&) {
  return std::make_unique<HostDevice>();
}

}  // namespace piper::test
