#pragma once
// Frames over TCP: a kind, and a body of text and numbers (`messages.h`). Sockets do not block.
//
// Guarantees: of the bytes that the other side sends, a connection keeps at most one frame of the
// largest size, and what one call of `fill` reads beyond it.
//
//   Connection at(socket, kMaxHelloBody);
//   at.send(FrameKind::set, encode(KeyValue{"key", "value"}));
//   at.fill();
//   while (at.receive(kind, body)) ...;

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace piper::runtime {

enum class FrameKind : std::uint8_t {
  // from a process
  open,     // its random number
  hello,    // the answer to nonce: its rank and process, and the proof that it has the token
  set,      // key, value
  get,      // key: answered when a process has set it
  fail,     // its failure
  stop,     // it asks for a stop
  started,  // the answer to hold: the number of steps it has started
  report,   // numbers of a step, or a piece of bytes, for rank 0
  bye,      // it has run all; the number of steps it has started
  // either way
  beat,  // a heartbeat; from a process with the positions of its ranks
  // to a process
  nonce,  // the answer to open: the random number and the proof of rank 0
  heard,  // the answer to hello: the process of rank 0
  all_here,
  refused,  // a failure, of this process alone
  value,    // key, value
  states,   // before a failure: the processes and the last positions of their ranks
  failed,   // the first failure of the run
  hold,     // begin no further step, and send the number of steps started
  stop_at,  // the number of steps to begin in all
};
/// `hello`, for messages.
const char* name_of(FrameKind kind);

class Body {
 public:
  Body& add(std::string_view text);
  Body& add(std::uint64_t number);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// A missing number or text reads as 0 or empty, and `complete` is false from then on.
class BodyReader {
 public:
  explicit BodyReader(std::string_view bytes) : remaining_(bytes) {}
  std::string text();
  std::uint64_t number();
  bool complete() const { return complete_; }
  bool at_end() const { return remaining_.empty(); }

 private:
  std::string_view remaining_;
  bool complete_ = true;
};

/// A socket with the bytes that wait to be sent and those received. Closes it.
class Connection {
 public:
  /// `max_body`: a longer frame from the other side breaks the connection.
  Connection(int socket, std::size_t max_body);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int socket() const { return socket_; }
  bool closed() const { return closed_; }
  /// The other side sent bytes that are no frame, or a frame that is too long; the connection is
  /// then closed, too.
  bool broken() const { return broken_; }
  bool sends() const { return unsent() > 0; }
  std::size_t unsent() const { return out_.size() - sent_; }
  void set_max_body(std::size_t bytes) { max_body_ = bytes; }

  /// Sends as much as possible at once, the rest with `flush`.
  void send(FrameKind kind, const std::string& body);
  void flush();
  /// Sends nothing more: the other side finds the connection closed when it has read everything.
  void end();
  /// Reads received bytes, a limited number in each call; false if there were none.
  bool fill();
  /// The next complete frame; false if there is none.
  bool receive(FrameKind& kind, std::string& body);

 private:
  void break_off();

  int socket_;
  std::size_t max_body_;
  bool closed_ = false, broken_ = false;
  std::string in_, out_;
  std::size_t taken_ = 0, sent_ = 0;  // bytes of them that are handled
};

/// `process 4711 on node7`.
std::string this_process();

}  // namespace piper::runtime
