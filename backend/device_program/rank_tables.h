#pragma once
// Facts that differ between the ranks of a role: the members of its communicators, and its
// intervals of sharded samples and buckets.
//
// Guarantees: the members of a communicator see the same id and the same members in the same order:
// source and destination of a pair; the member sets of a group in their order, each in coordinate
// order. Ids are unique from `first_id` on.
//
//   CommunicatorIds ids(dag, 0);
//   const RankTables tables(dag, programs.roles[0], ids, rank);
//   tables.communicators[0].members[tables.communicators[0].self] == rank

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "backend/device_program/device_program.h"

namespace piper::backend {

/// Numbers for the communicators of a plan: one for every choice of coordinates that separates its
/// groups or pairs.
class CommunicatorIds {
 public:
  CommunicatorIds(const dag::Dag& dag, std::uint32_t first_id);
  /// The id of the instance that contains the device of these coordinates.
  std::uint32_t of(dag::CommunicatorId id, const std::vector<std::uint32_t>& coordinates) const;
  std::uint32_t end() const { return first_.back(); }
  /// The members of that instance, in one shared list, because one list per member would be
  /// quadratic in the ranks.
  std::shared_ptr<const std::vector<std::uint32_t>> members(
      dag::CommunicatorId id, const std::vector<std::uint32_t>& coordinates);

 private:
  const dag::Dag& dag_;
  // By the instance's number.
  std::map<std::uint32_t, std::shared_ptr<const std::vector<std::uint32_t>>> lists_;
  std::vector<std::uint32_t> first_;  // per communicator, one more
  // Per communicator: axes whose coordinate all members of one instance have in common.
  std::vector<AxisMask> separating_;
};

struct RankTables {
  RankTables(const dag::Dag& dag, const DeviceProgram& program, CommunicatorIds& ids,
             std::uint64_t rank);
  RankTables(const RankTables&) = delete;
  RankTables(RankTables&&) = default;

  std::vector<PiperCommunicator> communicators;  // as DeviceProgram::communicators
  // The targets of their pointers.
  std::vector<std::shared_ptr<const std::vector<std::uint32_t>>> members;
  // as DeviceProgram::intervals
  std::vector<PiperInterval> intervals;
};

/// The coordinates of the first device of every role of a plan.
std::vector<std::vector<std::uint32_t>> first_devices(const dag::Dag& dag);

/// The role of a device.
std::size_t role_of(const ProgramSet& programs, const std::vector<std::uint32_t>& coordinates);

}  // namespace piper::backend
