#pragma once
// Named sends of one route follow each other as the order of a rank writes them: a route carries
// its messages in one order for both ends.
//
//   F stage[0].send mb[1]; F stage[0].send mb[0]     ->     the message of mb[1] before that of mb[0], also at the receiver

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "ir/dag/dag.h"
#include "passes/order/work_graph.h"

namespace piper::passes {

class NamedRoutes {
 public:
  using Units = std::vector<std::uint32_t>;

  void begin_rank();
  /// Names a send in the current step; returns the sends of its route that directly precede it. A
  /// send of a sum may be named for each of its terms: it keeps its first place.
  Units name(const dag::Dag& dag, const WorkGraph& graph, std::uint32_t unit);
  /// The sends of a step have no order among them; those of later steps follow them.
  void end_step();

  void begin_group();
  void begin_member();
  /// Members of a group have no order among them: sends after a group follow those of all members.
  void end_group();

 private:
  /// Direction, and per member its kind and devices.
  using Route = std::pair<bool, std::vector<std::pair<dag::NodeKind, DeviceSetId>>>;
  using Last = std::map<Route, Units>;
  struct Group {
    Last before, after;
  };

  void end_member();

  std::set<std::uint32_t> named_;  // in the current rank
  Last last_, step_;
  std::vector<Group> groups_;
};

}  // namespace piper::passes
