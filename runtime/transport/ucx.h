#pragma once
// Messages between the processes of a run, by UCX: through shared memory on one machine, else over
// the network. The library is opened at run time.
//
// A worker has an address, which other processes connect to. Two kinds of messages: data, which
// goes straight into the buffer of a receive with the same tag, and notes, small texts that a
// function gets as they arrive. Data with one tag from one process arrives in its order; so do
// notes.
//
//   auto worker = UcxWorker::open(failure);                       // null: P6025
//   worker->connect(1, address_of_process_1);
//   UcxRequest sent, received;
//   worker->send(1, tag, from, bytes, sent);
//   worker->receive(tag, to, bytes, received);
//   while (worker->state(received) == UcxState::pending) worker->progress();
//
// One thread at a time calls it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/failure.h"

namespace piper::runtime {

enum class UcxState : std::uint8_t { pending, done, failed };

/// A message that may still move: its buffer stays in place until `state` says otherwise.
struct UcxRequest {
  void* handle = nullptr;       // null: it moves no more
  const char* error = nullptr;  // the reason of a failure, in static storage
};

class UcxWorker {
 public:
  /// Called by `progress` with each note, whose bytes are valid during the call.
  using OnNote = std::function<void(std::string_view bytes)>;

  /// Null with the reason in `failure`: UCX is not here, or it finds no transport.
  static std::unique_ptr<UcxWorker> open(Failure& failure);
  virtual ~UcxWorker() = default;

  /// `UCX 1.13.1`.
  virtual std::string name() const = 0;
  /// The bytes that other processes need to connect.
  virtual const std::string& address() const = 0;
  virtual void on_note(OnNote use) = 0;
  /// Connects to a process, also to this one. The reason of a failure, in static storage, or null.
  virtual const char* connect(std::uint32_t process, const std::string& address) = 0;

  virtual void send(std::uint32_t process, std::uint64_t tag, const void* from, std::size_t bytes,
                    UcxRequest& request) = 0;
  virtual void receive(std::uint64_t tag, void* to, std::size_t bytes, UcxRequest& request) = 0;
  virtual void send_note(std::uint32_t process, std::string_view note, UcxRequest& request) = 0;
  /// Releases the request unless it is pending.
  virtual UcxState state(UcxRequest& request) = 0;
  /// Gives up a message that is not awaited any more.
  virtual void cancel(UcxRequest& request) = 0;

  /// True if anything moved.
  virtual bool progress() = 0;
  /// True if all that was sent has left this process.
  virtual bool flushed() = 0;
  /// Readable when a message comes, after `arm`.
  virtual int descriptor() const = 0;
  /// False if a message has come: call `progress` before a sleep.
  virtual bool arm() = 0;
};

}  // namespace piper::runtime
