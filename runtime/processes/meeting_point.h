#pragma once
// Where the processes of a run meet: a thread of rank 0's that keeps a connection to each of them. It waits until all are there, keeps what they set for each other, notices who is gone, tells all of the first
// failure, and finds a step at which all can stop.
//
//   auto point = MeetingPoint::open(launch, seconds, failure);   // before rank 0 joins, like all others, by ProcessGroup::join

#include <cstdint>
#include <memory>

#include "runtime/processes/launch.h"

namespace piper::runtime {

class MeetingPoint {
 public:
  /// Listens on the port of the launch; with an agent's store on any that is free. After `seconds` those that have come are told who has not. Null with the reason in `failure`.
  static std::unique_ptr<MeetingPoint> open(const Launch& launch, double seconds, Failure& failure);
  /// Waits until all processes have said goodbye or are gone, after a failure or before all have come only shortly.
  ~MeetingPoint();

  std::uint16_t port() const;

 private:
  struct Parts;
  explicit MeetingPoint(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace piper::runtime
