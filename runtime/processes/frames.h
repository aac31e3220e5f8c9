#pragma once
// Frames over TCP: a kind, and a body of text and numbers (`messages.h`). Sockets do not block.
//
// Guarantees: a connection keeps at most one frame of the largest size, and what one call of `fill` reads beyond it, of bytes that the other side sends.
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
  hello,    // who it is
  here,     // the answer to heard: it reads what it is sent
  set,      // key, value
  get,      // key: answered when somebody has set it
  fail,     // its failure
  stop,     // it would like to end
  begun,    // the answer to hold: how many steps it has begun
  report,   // a step's numbers, or a piece of bytes, for rank 0
  bye,      // it has run all; how many steps it had begun
  // to a process
  heard,    // the answer to hello: a number to give back, and who rank 0 is
  all_here,
  refused,  // a failure, of this process alone
  value,    // key, value
  failed,   // the first failure of the run
  hold,     // begin no further step, and say how many you have begun
  stop_at,  // begin so many steps in all
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

/// A number or a text that is missing reads as 0 or empty, and `whole` is false from then on.
class BodyReader {
 public:
  explicit BodyReader(std::string_view bytes) : rest_(bytes) {}
  std::string text();
  std::uint64_t number();
  bool whole() const { return whole_; }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  bool whole_ = true;
};

/// A socket with the bytes that wait to be sent and those that have come. Closes it.
class Connection {
 public:
  /// `max_body`: a longer frame from the other side breaks the connection.
  Connection(int socket, std::size_t max_body);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int socket() const { return socket_; }
  bool closed() const { return closed_; }
  /// The other side sent bytes that are no frame, or a frame that is too long; then the connection is closed, too.
  bool broken() const { return broken_; }
  bool sends() const { return unsent() > 0; }
  std::size_t unsent() const { return out_.size() - sent_; }
  void set_max_body(std::size_t bytes) { max_body_ = bytes; }

  /// Sends as much as it can at once, the rest with `flush`.
  void send(FrameKind kind, const std::string& body);
  void flush();
  /// Takes bytes that have come, a limited number in each call.
  void fill();
  /// The next whole frame; false where there is none.
  bool receive(FrameKind& kind, std::string& body);

 private:
  void break_off();

  int socket_;
  std::size_t max_body_;
  bool closed_ = false, broken_ = false;
  std::string in_, out_;
  std::size_t taken_ = 0, sent_ = 0;  // bytes of them that are done with
};

/// `process 4711 on node7`.
std::string this_process();

}  // namespace piper::runtime
