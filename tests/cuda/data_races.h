#pragma once
// Data races of a trace: two operations that touch overlapping bytes, one of them writing, without
// an order between them.
//
// Streams, events, graphs and the host's waits give the order, as vector clocks: work of one stream
// is in order; a wait comes after the work before the event's last record; a launch of a graph
// begins after the earlier work of its stream and ends before the later work there; within it only
// the capture's own waits count. Work that the host enqueues after a wait for an event comes after
// that event. A graph is also reported if a stream takes part without having waited for the first
// one, or if it ends before one of its streams: CUDA refuses the capture. A trace does not contain
// reads and writes by the host.
//
//   EXPECT_EQ(find_data_races(trace), std::vector<std::string>());
//   leave_out_waits(trace).missed;   // waits whose absence is not noticed

#include <string>
#include <vector>

#include "tests/cuda/recording_driver.h"

namespace piper::test {

/// In the order of their discovery, each pair of operations once.
std::vector<std::string> find_data_races(const Trace& trace);

/// The effect of leaving out each wait of a trace; one in a graph is left out in every launch.
struct WaitsLeftOut {
  std::size_t waits = 0;
  std::size_t caught = 0;  // a hazard is found
  // All operations that touch bytes of several streams keep their order: it follows from the other
  // waits.
  std::size_t implied = 0;
  // The order of some changes without a hazard: they touch no common bytes.
  std::vector<std::string> missed;
};
/// `every`: tests one of this number of waits.
WaitsLeftOut leave_out_waits(const Trace& trace, std::size_t every = 1);

}  // namespace piper::test
