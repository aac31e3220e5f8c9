#pragma once
// Bodies as CUDA kernels, run one by one through a driver on memory that comes from the host and
// goes back to it.
//
//   DeviceBodies bodies(device);
//   bodies.add(kernels);          // all of them first: they become one image
//   bodies.load();
//   bodies.run(0, call, arena);

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/cuda/kernel_set.h"
#include "tests/cuda/test_device.h"

namespace piper::test {

class DeviceBodies {
 public:
  /// The inputs of one call of a body.
  struct Call {
    // In the arena: of inputs, outputs, and scratch if there is any.
    std::span<const std::uint64_t> offsets;
    std::size_t inputs = 0;
    std::span<const std::uint8_t> accumulate;  // per output
    const std::uint64_t* draw = nullptr;       // seed and step
    std::uint64_t first_sample = 0;
    // A library call, on the host.
    std::function<void(std::uint32_t step, unsigned char* arena)> library;
  };

  explicit DeviceBodies(TestDevice& device) : device_(device) {}
  void add(const backend::KernelBody& body);
  /// False after a failure of the test.
  bool load();
  /// Runs the body that was added as number `number`. A refused call fails the test.
  void run(std::size_t number, const Call& call, std::vector<unsigned char>& arena);

 private:
  void launch(const backend::KernelBody& body, const backend::cuda::BodyStep& step,
              const Call& call);
  unsigned char* memory(const backend::KernelBody& body, const Call& call,
                        backend::BufferIndex index) const;
  void copy(void* to, const void* from, std::uint64_t bytes);
  void finish();
  void reserve(std::uint64_t bytes);

  TestDevice& device_;
  std::unique_ptr<runtime::cuda::Driver> driver_;
  backend::cuda::KernelSet kernels_;
  std::vector<const backend::KernelBody*> bodies_;
  std::vector<std::vector<backend::cuda::BodyStep>> steps_;
  std::vector<runtime::cuda::Function> functions_;  // by number of the kernel
  runtime::cuda::CudaStream stream_ = nullptr;
  runtime::cuda::Event done_ = nullptr;
  std::uint64_t reserved_ = 0;
  unsigned char *arena_ = nullptr, *staging_ = nullptr, *draw_ = nullptr;
};

}  // namespace piper::test
