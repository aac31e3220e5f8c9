#pragma once
// Frames over TCP: a kind, and a body of text and numbers. Sockets do not block.
//
//   Connection at(socket);
//   at.send(FrameKind::set, Body().add("key").add("value"));
//   while (at.receive(kind, body) ...) { BodyReader read(body); std::string key = read.text(); }

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/failure.h"

namespace piper::runtime {

enum class FrameKind : std::uint8_t {
  // from a process
  hello,    // who it is
  set,      // key, value
  get,      // key: answered when somebody has set it
  fail,     // its failure
  stop,     // it would like to end
  begun,    // the answer to hold: how many steps it has begun
  report,   // a step's numbers, or a piece of bytes, for rank 0
  bye,      // it has run all; how many steps it had begun
  // to a process
  heard,    // the answer to hello: who rank 0 is
  all_here,
  refused,  // a failure, of this process alone
  value,    // key, value
  failed,   // the first failure of the run
  hold,     // begin no further step, and say how many you have begun
  stop_at,  // begin so many steps in all
};

class Body {
 public:
  Body& add(std::string_view text);
  Body& add(std::uint64_t number);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// What is missing reads as nothing, and `whole` tells.
class BodyReader {
 public:
  explicit BodyReader(std::string_view bytes) : rest_(bytes) {}
  std::string text();
  std::uint64_t number();
  bool whole() const { return whole_; }

 private:
  std::string_view rest_;
  bool whole_ = true;
};

std::string packed(const Failure& failure);
Failure unpacked_failure(std::string_view bytes);

/// A socket with what waits to be sent and what has come. Closes it.
class Connection {
 public:
  explicit Connection(int socket);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int socket() const { return socket_; }
  bool closed() const { return closed_; }
  bool sends() const { return !out_.empty(); }

  /// Sends what it can at once, the rest with `flush`.
  void send(FrameKind kind, const std::string& body);
  void flush();
  /// Takes what has come.
  void fill();
  /// The next whole frame; false where there is none.
  bool receive(FrameKind& kind, std::string& body);

 private:
  int socket_;
  bool closed_ = false;  // by the other side, or by what is no frame
  std::string in_, out_;
};

/// A socket that listens on a port (0: any that is free) of this machine, or -1 with errno. `port` becomes the real one.
int listen_on(std::uint16_t& port);
/// A socket that is connected, or -1 and why. `again`: it may work later. Waits two seconds at most.
int connect_to(const std::string& host, std::uint16_t port, std::string& reason, bool& again);

/// `process 4711 on node7`.
std::string this_process();

}  // namespace piper::runtime
