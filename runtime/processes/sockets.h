#pragma once
// Sockets by name and port. They do not block.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace piper::runtime {

/// Sockets that listen at the addresses of a machine, all on one port.
class Listeners {
 public:
  Listeners() = default;
  ~Listeners();
  Listeners(const Listeners&) = delete;
  Listeners& operator=(const Listeners&) = delete;

  /// `host`: a name or an address of this machine, `0.0.0.0` for all of IPv4. `port` 0: any free
  /// one. False with the reason.
  bool open(const std::string& host, std::uint16_t port, std::string& reason);
  std::span<const int> sockets() const { return sockets_; }
  std::uint16_t port() const { return port_; }
  /// Whether one of the addresses can be reached from this machine only.
  bool loopback() const { return loopback_; }

 private:
  std::vector<int> sockets_;
  std::uint16_t port_ = 0;
  bool loopback_ = false;
};

/// Whether other machines may reach a machine's name or address: false if it leads only to this
/// machine, or nowhere.
bool is_reached_by_others(const std::string& host);

/// A connected socket, or -1 with the reason. `again`: it may work later. Waits two seconds at most
/// for each address of the machine.
int connect_to(const std::string& host, std::uint16_t port, std::string& reason, bool& again);

/// The address of the other side: `10.0.0.7:41230`.
std::string peer_address(int connection);

}  // namespace piper::runtime
