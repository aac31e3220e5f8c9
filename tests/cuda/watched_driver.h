#pragma once
// A driver in front of another one. It counts allocations and other objects, and may take memory
// away after a query, as another process would.
//
//   Watch watch;
//   WatchedDriver driver(device.open(), watch);
//   watch.created                                   // allocations, streams, events, graphs, modules, products so far

#include <memory>
#include <optional>

#include "tests/cuda/test_driver.h"

namespace piper::test {

struct Watch {
  std::uint64_t created = 0;
  std::uint64_t attended = 0;  // calls of attention that were LibTorch's
  // After the first query for free memory about this number of bytes is left.
  std::optional<std::uint64_t> leaves = {};
  // The driver in front of which it stands, while it lives.
  runtime::cuda::Driver* driver = nullptr;
};

class WatchedDriver final : public TestDriver {
 public:
  WatchedDriver(std::unique_ptr<runtime::cuda::Driver> driver, Watch& watch);
  ~WatchedDriver() override;

  std::string device_name() const override { return driver_->device_name(); }
  int processors() const override { return driver_->processors(); }
  std::string text_of(Status status) const override { return driver_->text_of(status); }
  Status free_bytes(std::uint64_t* bytes) override;
  std::uint64_t library_bytes() const override { return driver_->library_bytes(); }
  Status allocate(std::uint64_t bytes, unsigned char** to) override {
    return count(driver_->allocate(bytes, to));
  }
  Status allocate_host(std::uint64_t bytes, unsigned char** to) override {
    return count(driver_->allocate_host(bytes, to));
  }
  Status create_stream(Priority priority, CudaStream* created) override {
    return count(driver_->create_stream(priority, created));
  }
  Status create_event(Event* created) override { return count(driver_->create_event(created)); }
  Status create_timer(Event* created) override { return count(driver_->create_timer(created)); }
  Status record(Event event, CudaStream stream) override { return driver_->record(event, stream); }
  Status wait(CudaStream stream, Event event) override { return driver_->wait(stream, event); }
  Status query(Event event) override { return driver_->query(event); }
  Status elapsed(Event from, Event to, double* seconds) override {
    return driver_->elapsed(from, to, seconds);
  }
  Status copy(CudaStream stream, void* to, const void* from, std::uint64_t bytes) override {
    return driver_->copy(stream, to, from, bytes);
  }
  Status fill(CudaStream stream, void* to, unsigned char byte, std::uint64_t bytes) override {
    return driver_->fill(stream, to, byte, bytes);
  }
  Status write(CudaStream stream, std::uint32_t* to, std::uint32_t value) override {
    return driver_->write(stream, to, value);
  }
  Status launch(CudaStream stream, Function function, std::uint64_t blocks, std::uint32_t threads,
                const void* const* arguments) override {
    return driver_->launch(stream, function, blocks, threads, arguments);
  }
  Status call(CudaStream stream, PlannedCall planned, const PiperCall& call) override {
    if (call.shape->kind == PIPER_CALL_ATTEND) ++watch_.attended;
    return driver_->call(stream, planned, call);
  }
  Status begin_capture(CudaStream stream) override { return driver_->begin_capture(stream); }
  Status end_capture(CudaStream stream, Graph* created) override {
    return count(driver_->end_capture(stream, created));
  }
  Status launch_graph(CudaStream stream, Graph graph) override {
    return driver_->launch_graph(stream, graph);
  }
  void drop_graphs() override { driver_->drop_graphs(); }
  void abandon() override { driver_->abandon(); }
  Status load(const std::string& image, Module* created) override {
    return count(driver_->load(image, created));
  }
  Status find(Module module, const char* name, Function* found) override {
    return driver_->find(module, name, found);
  }
  Status plan_call(const PiperCallShape& shape, std::uint32_t end, std::uint64_t workspace,
                   PlannedCall* created) override {
    return count(driver_->plan_call(shape, end, workspace, created));
  }
  bool open_attention(bool deterministic, std::string& reason) override {
    return driver_->open_attention(deterministic, reason);
  }

 private:
  Status count(Status status) {
    ++watch_.created;
    return status;
  }

  const std::unique_ptr<runtime::cuda::Driver> driver_;
  Watch& watch_;
};

}  // namespace piper::test
