#pragma once
// A connection at the rendezvous: a stranger until it has proved that it belongs to the run, then a
// process with a rank. Internal to the rendezvous.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/processes/frames.h"
#include "runtime/processes/handshake.h"
#include "runtime/processes/silence.h"
#include "runtime/processes/sockets.h"

namespace piper::runtime {

struct Guest {
  using Clock = std::chrono::steady_clock;

  Guest(int socket, std::size_t max_body)
      : connection(socket, max_body), address(peer_address(socket)), since(Clock::now()) {}
  std::string description() const { return process + " at " + address; }

  Connection connection;
  std::string address;
  Clock::time_point since;
  Silence silence;
  bool joined = false, left = false;  // it has a rank; it has sent `bye`
  bool refused = false;
  RankZeroEnd handshake;
  std::uint32_t rank = 0;
  std::string process;  // `process 4711 on node7`
  std::size_t waiting_keys = 0, value_bytes = 0;
  std::optional<std::uint64_t> started;  // steps, from its answer to `hold` or its `bye`
  std::vector<RankPosition> positions;   // of its ranks, from its last heartbeat
};

}  // namespace piper::runtime
