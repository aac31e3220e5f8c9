#include "runtime/processes/sockets.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace piper::runtime {

namespace {

std::string words_of(int error) {
  std::string words = std::strerror(error);
  if (!words.empty() && words[0] >= 'A' && words[0] <= 'Z')
    words[0] = static_cast<char>(words[0] - 'A' + 'a');
  return words;
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

/// The addresses of a machine; `error` is one of getaddrinfo.
Addresses addresses_of(const std::string& host, std::uint16_t port, int& error) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  return {error == 0 ? found : nullptr, freeaddrinfo};
}

std::string unknown_name(int error) {
  return "no machine has that name (" + std::string(gai_strerror(error)) + ")";
}

void set_port(sockaddr_storage& address, std::uint16_t port) {
  if (address.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(address).sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
  }
}

std::uint16_t port_of(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

bool is_loopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
  return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 == 127;
}

std::string text_of(const sockaddr_storage& address, socklen_t size) {
  char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "";
  if (address.ss_family == AF_UNIX ||
      getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host, sizeof host, port,
                  sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "this process";
  return (address.ss_family == AF_INET6 ? "[" + std::string(host) + "]" : std::string(host)) + ":" +
         port;
}

/// -1 with errno. `address` gets the port.
int listen_at_one(sockaddr_storage& address, socklen_t size) {
  const int listener = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener < 0) return -1;
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // An address of IPv4 has its own listener.
  if (address.ss_family == AF_INET6)
    setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener, plain, size) == 0 && listen(listener, 1024) == 0 &&
      getsockname(listener, plain, &size) == 0)
    return listener;
  const int error = errno;
  close(listener);
  errno = error;
  return -1;
}

}  // namespace

Listeners::~Listeners() {
  for (const int each : sockets_) close(each);
}

bool Listeners::open(const std::string& host, std::uint16_t port, std::string& reason) {
  int error = 0;
  const Addresses found = addresses_of(host, port, error);
  if (found == nullptr) {
    reason = unknown_name(error);
    return false;
  }
  port_ = port;
  for (const addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
    sockaddr_storage address{};
    std::memcpy(&address, at->ai_addr, at->ai_addrlen);
    set_port(address, port_);
    const int made = listen_at_one(address, at->ai_addrlen);
    if (made >= 0) {
      sockets_.push_back(made);
      port_ = port_of(address);
      loopback_ |= is_loopback(address);
      continue;
    }
    // A machine may lack one of the addresses of a name, as without IPv6. Another program at one of
    // them would get connections that are meant for this run.
    error = errno;
    reason = error == EADDRNOTAVAIL ? "that is no address of this machine"
             : error == EADDRINUSE  ? "another process has it"
                                    : words_of(error);
    if (error == EADDRINUSE && port != 0) return false;
  }
  return !sockets_.empty();
}

bool is_reached_by_others(const std::string& host) {
  int error = 0;
  const Addresses found = addresses_of(host, 0, error);
  for (const addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
    sockaddr_storage address{};
    std::memcpy(&address, at->ai_addr, at->ai_addrlen);
    if (!is_loopback(address)) return true;
  }
  return false;
}

std::string peer_address(int connection) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  return getpeername(connection, reinterpret_cast<sockaddr*>(&address), &size) == 0
             ? text_of(address, size)
             : "an unknown address";
}

namespace {

/// If no program listens at a port from which the system serves connections, a connection may get
/// that port and so reach itself.
bool reaches_itself(int connection) {
  sockaddr_storage own{}, other{};
  socklen_t own_size = sizeof own, other_size = sizeof other;
  return getsockname(connection, reinterpret_cast<sockaddr*>(&own), &own_size) == 0 &&
         getpeername(connection, reinterpret_cast<sockaddr*>(&other), &other_size) == 0 &&
         own_size == other_size && std::memcmp(&own, &other, own_size) == 0;
}

int connect_to_one(const addrinfo& at, std::string& reason) {
  const int made =
      socket(at.ai_family, at.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at.ai_protocol);
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
  int error = 0;
  const Addresses found = addresses_of(host, port, error);
  again = error == 0 || error == EAI_AGAIN;
  if (error != 0) reason = unknown_name(error);
  int made = -1;
  for (const addrinfo* at = found.get(); at != nullptr && made < 0; at = at->ai_next)
    made = connect_to_one(*at, reason);
  return made;
}

}  // namespace piper::runtime
