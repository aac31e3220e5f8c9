#pragma once
// A transport that logs the operations it is asked for and passes them on to another one.
//
//   auto log = std::make_shared<RecordingTransport>(make_local_transport());
//   ... run ...
//   log->lines(0);   // of member rank 0: "communicator 3: send 17 f32[1024]", in issue order per communicator
//
// Lines of one rank are sorted by communicator, then by issue, so that they do not depend on
// timing.

#include <memory>
#include <string>
#include <vector>

#include "runtime/transport/transport.h"

namespace piper::runtime {

class RecordingTransport final : public Transport {
 public:
  explicit RecordingTransport(std::unique_ptr<Transport> inner) : inner_(std::move(inner)) {}

  std::vector<std::string> lines(std::uint32_t rank) const;

  std::uint32_t connect(const PiperCommunicator& communicator) override {
    return inner_->connect(communicator);
  }
  void disconnect() override { inner_->disconnect(); }
  void start(Operation& operation) override;
  void poll(Operation& operation) override { inner_->poll(operation); }
  bool moving(const Operation& operation) const override { return inner_->moving(operation); }
  bool moves_only_on_start() const override { return inner_->moves_only_on_start(); }
  bool progress() override { return inner_->progress(); }
  bool flushed() override { return inner_->flushed(); }
  int descriptor() const override { return inner_->descriptor(); }
  bool arm() override { return inner_->arm(); }

 private:
  struct Call {
    std::uint32_t rank, communicator;
    std::string text;
  };
  std::unique_ptr<Transport> inner_;
  std::vector<Call> calls_;
};

}  // namespace piper::runtime
