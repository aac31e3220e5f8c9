#pragma once
// Hazards of a trace: two operations that touch overlapping bytes, one of them writing, without an order between them.
//
// The order is what streams, events, graphs and the host's waits say, as vector clocks: work of one stream is in order, a wait comes after the work before the event's last record, a launch of a graph
// begins after what its stream had before and ends before what follows there; within it only the capture's own waits count. What the host enqueues after it has waited for an event comes after that.
// A graph in which a stream takes part without having waited for the first one, or that ends before one of its streams, is told, too: CUDA refuses the capture. What the host itself reads and writes is
// not in a trace.
//
//   EXPECT_EQ(find_hazards(trace), std::vector<std::string>());
//   leave_out_waits(trace).missed;   // waits that nothing notices

#include <string>
#include <vector>

#include "tests/cuda/recording_driver.h"

namespace piper::test {

/// In the order in which they show, each pair of operations once.
std::vector<std::string> find_hazards(const Trace& trace);

/// What comes of a trace when one of its waits is left out, for each of them; one in a graph is left out in every launch.
struct WaitsLeftOut {
  std::size_t waits = 0;
  std::size_t caught = 0;            // a hazard is found
  std::size_t implied = 0;           // all operations that touch bytes of several streams have the order that they had: it follows from the other waits
  std::vector<std::string> missed;   // some have not, and no hazard is found: these touch nothing in common
};
/// `every`: of so many waits one.
WaitsLeftOut leave_out_waits(const Trace& trace, std::size_t every = 1);

}  // namespace piper::test
