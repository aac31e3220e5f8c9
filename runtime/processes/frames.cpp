#include "runtime/processes/frames.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace piper::runtime {

namespace {

constexpr std::size_t kHead = 5;
// Per call, so that one peer does not keep the thread from the others.
constexpr std::size_t kFillBytes = std::size_t{4} << 20;

/// In the order of FrameKind.
constexpr const char* kNames[] = {"open",   "hello",  "set",      "get",     "fail",
                                  "stop",   "begun",  "report",   "bye",     "beat",
                                  "nonce",  "heard",  "all_here", "refused", "value",
                                  "states", "failed", "hold",     "stop_at"};
static_assert(std::size(kNames) == static_cast<std::size_t>(FrameKind::stop_at) + 1);

void set(int socket, int level, int option, int value) {
  setsockopt(socket, level, option, &value, sizeof value);
}

/// A machine that vanishes is noticed after half a minute, also without heartbeats.
void prepare(int socket) {
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
  fcntl(socket, F_SETFD, FD_CLOEXEC);
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 30000);
}

/// Drops handled bytes once they are half of all: each byte is moved a bounded number of times.
void compact(std::string& bytes, std::size_t& done) {
  if (done * 2 < bytes.size()) return;
  bytes.erase(0, done);
  done = 0;
}

}  // namespace

const char* name_of(FrameKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

Body& Body::add(std::string_view text) {
  add(static_cast<std::uint64_t>(text.size()));
  bytes_ += text;
  return *this;
}

Body& Body::add(std::uint64_t number) {
  bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
  return *this;
}

std::uint64_t BodyReader::number() {
  std::uint64_t value = 0;
  if (remaining_.size() < sizeof value) {
    complete_ = false;
    return 0;
  }
  std::memcpy(&value, remaining_.data(), sizeof value);
  remaining_.remove_prefix(sizeof value);
  return value;
}

std::string BodyReader::text() {
  const std::uint64_t size = number();
  if (size > remaining_.size()) {
    complete_ = false;
    return {};
  }
  std::string text(remaining_.substr(0, size));
  remaining_.remove_prefix(size);
  return text;
}

Connection::Connection(int socket, std::size_t max_body) : socket_(socket), max_body_(max_body) {
  prepare(socket);
}

Connection::~Connection() { close(socket_); }

void Connection::send(FrameKind kind, const std::string& body) {
  const auto size = static_cast<std::uint32_t>(body.size());
  out_.append(reinterpret_cast<const char*>(&size), sizeof size);
  out_ += static_cast<char>(kind);
  out_ += body;
  flush();
}

void Connection::flush() {
  while (!closed_ && unsent() > 0) {
    const ssize_t count = ::send(socket_, out_.data() + sent_, unsent(), MSG_NOSIGNAL);
    if (count > 0) {
      sent_ += static_cast<std::size_t>(count);
      compact(out_, sent_);
    } else if (errno != EINTR) {
      // If sending fails, the connection is found closed on receiving.
      if (errno != EAGAIN && errno != EWOULDBLOCK) out_.clear(), sent_ = 0;
      return;
    }
  }
}

void Connection::end() { shutdown(socket_, SHUT_WR); }

bool Connection::fill() {
  char bytes[1 << 16];
  std::size_t filled = 0;
  while (!closed_ && filled < kFillBytes && in_.size() - taken_ < kHead + max_body_) {
    const ssize_t count = recv(socket_, bytes, sizeof bytes, 0);
    if (count > 0) {
      in_.append(bytes, static_cast<std::size_t>(count));
      filled += static_cast<std::size_t>(count);
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) closed_ = true;
    break;
  }
  return filled > 0;
}

bool Connection::receive(FrameKind& kind, std::string& body) {
  const std::size_t bytes = in_.size() - taken_;
  if (bytes < kHead) return false;
  std::uint32_t size = 0;
  std::memcpy(&size, in_.data() + taken_, sizeof size);
  const auto number = static_cast<unsigned char>(in_[taken_ + sizeof size]);
  if (size > max_body_ || number >= std::size(kNames)) {
    break_off();
    return false;
  }
  if (bytes < kHead + size) return false;
  kind = static_cast<FrameKind>(number);
  body = in_.substr(taken_ + kHead, size);
  taken_ += kHead + size;
  compact(in_, taken_);
  return true;
}

void Connection::break_off() {
  in_ = {};
  taken_ = 0;
  closed_ = broken_ = true;
}

std::string this_process() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return "process " + std::to_string(getpid()) + " on " + host;
}

}  // namespace piper::runtime
