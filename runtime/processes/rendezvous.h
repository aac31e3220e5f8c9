#pragma once
// The rendezvous of the processes of a run: a thread of rank 0's process that keeps a connection to
// each of them. It waits until all have joined, keeps the values they set for each other, notices a
// process that is gone or does not answer, sends the first failure to all, and finds a step at which
// all can stop.
//
// Guarantees: bytes from a connection never lead to an access outside a table, whoever sends them.
// A connection without a valid hello costs a few KiB and ten seconds at most, and no number of them
// ends or blocks a run. With a token, only a process that has it gets a rank, and others learn
// nothing of the run. A process holds its rank as long as its connection lives: another one with
// that rank is refused. A connection that breaks off before all have joined gives its rank back;
// afterwards it ends the run.
//
//   auto point = Rendezvous::open(launch, {.seconds = 300}, failure);   // before rank 0 joins by ProcessGroup::join
//   Connection own(point->take_own_socket(), kMaxBody);          // rank 0 is known from the start and sends no hello
//   for (const Failure& refused : point->take_notices()) ...;    // until all have joined

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/processes/launch.h"

namespace piper::runtime {

/// Signs of life between rank 0 and another process, in both directions. Times are in seconds.
struct Heartbeats {
  double every = 1;
  // A process from which nothing has come for this long is lost; 0: never.
  double limit = 10;
};

struct RendezvousOptions {
  // After them all processes that have joined get a failure that names the missing ones.
  double seconds = 300;
  std::string token = {};  // of the run; empty: none
  Heartbeats heartbeats = {};
};

class Rendezvous {
 public:
  /// Listens at the address and on the port of the launch; with an agent's store on any free port;
  /// not at all if the process is alone. Null with the reason in `failure`.
  static std::unique_ptr<Rendezvous> open(const Launch& launch, RendezvousOptions options,
                                          Failure& failure);
  /// Waits until all processes have said goodbye or are gone; only briefly after a failure or
  /// before all have joined.
  ~Rendezvous();

  std::uint16_t port() const;
  /// The connection of this process; once.
  int take_own_socket();
  /// Processes that were refused or broke off before all had joined, as warnings; the first few of
  /// a run.
  std::vector<Failure> take_notices();

 private:
  struct Parts;
  explicit Rendezvous(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace piper::runtime
