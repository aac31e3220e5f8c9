#include "tests/backend/device_bodies.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

namespace piper::test {

namespace cuda = runtime::cuda;
using backend::cuda::Argument;
using backend::cuda::BodyStep;

namespace {

constexpr std::uint64_t kDrawBytes = 2 * sizeof(std::uint64_t);

std::uint32_t adds(const backend::KernelBody& body, const DeviceBodies::Call& call,
                   backend::BufferIndex index) {
  const backend::KernelBuffer& buffer = body.buffers[index];
  return buffer.accumulates ? call.accumulate[buffer.port] : 0;
}

}  // namespace

void DeviceBodies::add(const backend::KernelBody& body) {
  bodies_.push_back(&body);
  steps_.push_back(kernels_.add(body));
}

bool DeviceBodies::load() {
  const std::string image = device_.build(kernels_);
  driver_ = device_.open();
  if (!driver_ || image.empty()) return false;
  cuda::Module module = nullptr;
  EXPECT_EQ(driver_->load(image, &module), cuda::kSuccess);
  for (const auto& entry : kernels_.list()) {
    EXPECT_EQ(driver_->find(module, entry.name.c_str(), &functions_.emplace_back()), cuda::kSuccess)
        << entry.name;
  }
  EXPECT_EQ(driver_->create_stream(cuda::Priority::compute, &stream_), cuda::kSuccess);
  EXPECT_EQ(driver_->create_event(&done_), cuda::kSuccess);
  EXPECT_EQ(driver_->allocate(kDrawBytes, &draw_), cuda::kSuccess);
  return !testing::Test::HasFatalFailure() && draw_ != nullptr;
}

void DeviceBodies::reserve(std::uint64_t bytes) {
  if (bytes <= reserved_) return;
  reserved_ = 2 * bytes;
  ASSERT_EQ(driver_->allocate(reserved_, &arena_), cuda::kSuccess);
  ASSERT_EQ(driver_->allocate_host(reserved_, &staging_), cuda::kSuccess);
}

void DeviceBodies::copy(void* to, const void* from, std::uint64_t bytes) {
  ASSERT_EQ(driver_->copy(stream_, to, from, bytes), cuda::kSuccess);
}

void DeviceBodies::finish() {
  ASSERT_EQ(driver_->record(done_, stream_), cuda::kSuccess);
  cuda::Status status = cuda::kNotReady;
  while ((status = driver_->query(done_)) == cuda::kNotReady) std::this_thread::yield();
  ASSERT_EQ(status, cuda::kSuccess) << driver_->text_of(status);
}

unsigned char* DeviceBodies::memory(const backend::KernelBody& body, const Call& call,
                                    backend::BufferIndex index) const {
  const backend::KernelBuffer& buffer = body.buffers[index];
  if (buffer.storage == backend::KernelBuffer::Storage::scratch)
    return arena_ + call.offsets.back() + buffer.offset;
  return arena_ +
         call.offsets[buffer.port +
                      (buffer.storage == backend::KernelBuffer::Storage::output ? call.inputs : 0)];
}

void DeviceBodies::launch(const backend::KernelBody& body, const BodyStep& step, const Call& call) {
  std::vector<unsigned char*> pointers(step.arguments.size());
  std::vector<std::uint32_t> flags(step.arguments.size());
  std::vector<const void*> arguments;
  for (std::size_t a = 0; a < step.arguments.size(); ++a) {
    const Argument& argument = step.arguments[a];
    switch (argument.kind) {
      case Argument::Kind::draw: arguments.push_back(&draw_); break;
      case Argument::Kind::first: arguments.push_back(&call.first_sample); break;
      case Argument::Kind::adds:
        flags[a] = adds(body, call, argument.buffer);
        arguments.push_back(&flags[a]);
        break;
      case Argument::Kind::buffer:
        pointers[a] = memory(body, call, argument.buffer);
        arguments.push_back(&pointers[a]);
        break;
    }
  }
  const backend::cuda::Launch& grid = kernels_.list()[step.number].launch;
  const cuda::Status status =
      driver_->launch(stream_, functions_[step.number], static_cast<std::uint64_t>(grid.blocks),
                      static_cast<std::uint32_t>(grid.threads), arguments.data());
  ASSERT_EQ(status, cuda::kSuccess)
      << kernels_.list()[step.number].name << ": " << driver_->text_of(status);
}

void DeviceBodies::run(std::size_t number, const Call& call, std::vector<unsigned char>& arena) {
  const backend::KernelBody& body = *bodies_[number];
  ASSERT_NO_FATAL_FAILURE(reserve(arena.size() + kDrawBytes));
  std::memcpy(staging_, arena.data(), arena.size());
  std::memcpy(staging_ + arena.size(), call.draw, kDrawBytes);
  copy(arena_, staging_, arena.size());
  copy(draw_, staging_ + arena.size(), kDrawBytes);
  for (const BodyStep& step : steps_[number]) {
    switch (step.kind) {
      case BodyStep::Kind::check: break;  // what fails is tested where it fails
      case BodyStep::Kind::clear: {
        const backend::KernelBuffer& buffer = body.buffers[step.buffer];
        const auto bytes =
            static_cast<std::uint64_t>(buffer.elements) * tensor::dtype_bytes(buffer.dtype);
        if (adds(body, call, step.buffer) == 0) {
          ASSERT_EQ(driver_->fill(stream_, memory(body, call, step.buffer), 0, bytes),
                    cuda::kSuccess);
        }
        break;
      }
      case BodyStep::Kind::library:
        copy(staging_, arena_, arena.size());
        ASSERT_NO_FATAL_FAILURE(finish());
        call.library(step.number, staging_);
        copy(arena_, staging_, arena.size());
        break;
      case BodyStep::Kind::kernel: ASSERT_NO_FATAL_FAILURE(launch(body, step, call)); break;
    }
  }
  copy(staging_, arena_, arena.size());
  ASSERT_NO_FATAL_FAILURE(finish());
  std::memcpy(arena.data(), staging_, arena.size());
}

}  // namespace piper::test
