#include "runtime/processes/frames.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace piper::runtime {

namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20;  // of a frame
constexpr std::size_t kHead = 5;

void set(int socket, int level, int option, int value) { setsockopt(socket, level, option, &value, sizeof value); }

/// A machine that is gone without a word is noticed after half a minute.
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

std::string words_of(int error) {
  std::string words = std::strerror(error);
  if (!words.empty() && words[0] >= 'A' && words[0] <= 'Z') words[0] = static_cast<char>(words[0] - 'A' + 'a');
  return words;
}

}  // namespace

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
  if (rest_.size() < sizeof value) {
    whole_ = false;
    return 0;
  }
  std::memcpy(&value, rest_.data(), sizeof value);
  rest_.remove_prefix(sizeof value);
  return value;
}

std::string BodyReader::text() {
  const std::uint64_t size = number();
  if (size > rest_.size()) {
    whole_ = false;
    return {};
  }
  std::string text(rest_.substr(0, size));
  rest_.remove_prefix(size);
  return text;
}

namespace {

void pack(Body& to, const Place& place) {
  to.add(place.action).add(place.file);
  for (const std::uint32_t number : {place.line, place.column, place.end_line, place.end_column}) to.add(std::uint64_t{number});
}

Place unpacked_place(BodyReader& from) {
  Place place;
  place.action = from.text();
  place.file = from.text();
  for (std::uint32_t* number : {&place.line, &place.column, &place.end_line, &place.end_column}) *number = static_cast<std::uint32_t>(from.number());
  return place;
}

}  // namespace

std::string packed(const Failure& failure) {
  Body body;
  body.add(std::uint64_t{failure.code}).add(failure.message).add(failure.hint).add(std::uint64_t{failure.rank}).add(failure.step ? *failure.step + 1 : 0);
  pack(body, failure.place);
  body.add(failure.notes.size());
  for (const Note& note : failure.notes) {
    body.add(note.text);
    pack(body, note.place);
  }
  return body.bytes();
}

Failure unpacked_failure(std::string_view bytes) {
  BodyReader read(bytes);
  Failure failure;
  failure.code = static_cast<std::uint32_t>(read.number());
  failure.message = read.text();
  failure.hint = read.text();
  failure.rank = static_cast<std::uint32_t>(read.number());
  if (const std::uint64_t step = read.number()) failure.step = step - 1;
  failure.place = unpacked_place(read);
  for (std::uint64_t n = read.number(); n > 0 && read.whole(); --n) {
    std::string text = read.text();
    failure.notes.push_back({std::move(text), unpacked_place(read)});
  }
  return failure;
}

Connection::Connection(int socket) : socket_(socket) { prepare(socket); }

Connection::~Connection() { close(socket_); }

void Connection::send(FrameKind kind, const std::string& body) {
  const auto size = static_cast<std::uint32_t>(body.size());
  out_.append(reinterpret_cast<const char*>(&size), sizeof size);
  out_ += static_cast<char>(kind);
  out_ += body;
  flush();
}

void Connection::flush() {
  while (!closed_ && !out_.empty()) {
    const ssize_t sent = ::send(socket_, out_.data(), out_.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      out_.erase(0, static_cast<std::size_t>(sent));
    } else if (errno != EINTR) {
      // What cannot be sent is found out where nothing more can be received.
      if (errno != EAGAIN && errno != EWOULDBLOCK) out_.clear();
      return;
    }
  }
}

void Connection::fill() {
  char bytes[1 << 16];
  for (;;) {
    const ssize_t count = recv(socket_, bytes, sizeof bytes, 0);
    if (count > 0) {
      in_.append(bytes, static_cast<std::size_t>(count));
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) closed_ = true;
    return;
  }
}

bool Connection::receive(FrameKind& kind, std::string& body) {
  if (in_.size() < kHead) return false;
  std::uint32_t size = 0;
  std::memcpy(&size, in_.data(), sizeof size);
  if (size > kMostBytes) {
    in_.clear();
    closed_ = true;
    return false;
  }
  if (in_.size() < kHead + size) return false;
  kind = static_cast<FrameKind>(in_[sizeof size]);
  body = in_.substr(kHead, size);
  in_.erase(0, kHead + size);
  return true;
}

namespace {

/// -1 with errno.
int listen_with(int family, std::uint16_t& port) {
  const int listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener < 0) return -1;
  set(listener, SOL_SOCKET, SO_REUSEADDR, 1);
  sockaddr_in6 six{};
  sockaddr_in four{};
  six.sin6_family = AF_INET6;
  six.sin6_port = four.sin_port = htons(port);
  four.sin_family = AF_INET;
  const bool is_six = family == AF_INET6;
  if (is_six) set(listener, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  auto* const address = is_six ? reinterpret_cast<sockaddr*>(&six) : reinterpret_cast<sockaddr*>(&four);
  socklen_t size = is_six ? sizeof six : sizeof four;
  if (bind(listener, address, size) != 0 || listen(listener, 1024) != 0 || getsockname(listener, address, &size) != 0) {
    const int error = errno;
    close(listener);
    errno = error;
    return -1;
  }
  port = ntohs(is_six ? six.sin6_port : four.sin_port);
  return listener;
}

}  // namespace

int listen_on(std::uint16_t& port) {
  const int listener = listen_with(AF_INET6, port);
  return listener >= 0 || errno == EADDRINUSE || errno == EACCES ? listener : listen_with(AF_INET, port);
}

namespace {

/// Where nobody listens yet at a port that the system gives connections, one of them may get it and so reach itself.
bool reaches_itself(int connection) {
  sockaddr_storage own{}, other{};
  socklen_t own_size = sizeof own, other_size = sizeof other;
  return getsockname(connection, reinterpret_cast<sockaddr*>(&own), &own_size) == 0 && getpeername(connection, reinterpret_cast<sockaddr*>(&other), &other_size) == 0 && own_size == other_size &&
         std::memcmp(&own, &other, own_size) == 0;
}

int connect_to_one(const addrinfo& at, std::string& reason) {
  const int made = socket(at.ai_family, at.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at.ai_protocol);
  int error = made < 0 ? errno : 0;
  if (made >= 0 && connect(made, at.ai_addr, at.ai_addrlen) != 0) {
    error = errno;
    if (error == EINPROGRESS) {
      pollfd waits{made, POLLOUT, 0};
      socklen_t size = sizeof error;
      if (poll(&waits, 1, 2000) <= 0) {
        error = ETIMEDOUT;
      } else if (getsockopt(made, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
        error = errno;
      }
    }
  }
  if (error == 0 && reaches_itself(made)) error = ECONNREFUSED;
  if (error == 0) return made;
  if (made >= 0) close(made);
  reason = words_of(error);
  return -1;
}

}  // namespace

int connect_to(const std::string& host, std::uint16_t port, std::string& reason, bool& again) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  again = error == 0 || error == EAI_AGAIN;
  if (error != 0) {
    reason = "no machine has that name (" + std::string(gai_strerror(error)) + ")";
    return -1;
  }
  int made = -1;
  for (const addrinfo* at = found; at != nullptr && made < 0; at = at->ai_next) made = connect_to_one(*at, reason);
  freeaddrinfo(found);
  return made;
}

std::string this_process() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return "process " + std::to_string(getpid()) + " on " + host;
}

}  // namespace piper::runtime
