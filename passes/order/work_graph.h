#pragma once
// The DAG as a graph of units: a node, or all members of a matched communication contracted to one
// point. Flat adjacency for passes that order work.
//
// Units are numbered by their first node. An in-place sum is no unit; its readers depend on all of
// its terms. Edges are those of this step: data and grad (a parameter is read from the previous
// step), and the order of the passes, whether or not a value flows: F of an instance before R, R
// before B or BI, BI before BW; and if F of one chunk is before F of another, the reverse for B or
// BI. Loads, sums, updates and reports may be missing (surround.h).
//
//   WorkGraph graph(dag);
//   std::vector<std::uint32_t> order = topological_order(graph, chains);
//   if (order.size() < graph.units()) ...   // `chains` contradict the data flow

#include <atomic>
#include <cstdint>
#include <exception>
#include <latch>
#include <span>
#include <utility>
#include <vector>

#include "ir/dag/dag.h"

namespace piper::passes {

/// Adjacency of `size` vertices built from pairs (from, to) in two passes.
class Adjacency {
 public:
  using Pair = std::pair<std::uint32_t, std::uint32_t>;
  Adjacency() = default;
  Adjacency(std::size_t size, std::span<const Pair> pairs);
  std::span<const std::uint32_t> of(std::size_t vertex) const {
    return {targets_.data() + first_[vertex], first_[vertex + 1] - first_[vertex]};
  }
  /// The targets of all vertices.
  std::span<const std::uint32_t> targets() const { return targets_; }

 private:
  std::vector<std::uint32_t> first_;
  std::vector<std::uint32_t> targets_;
};

class WorkGraph {
 public:
  explicit WorkGraph(const dag::Dag& dag) : WorkGraph() { number(dag), connect(dag); }

  std::size_t units() const { return first_member_.size() - 1; }
  /// Not for in-place sums.
  std::uint32_t unit_of(dag::NodeId node) const { return unit_of_[node.index()]; }
  std::uint32_t unit_of(dag::CommId comm) const { return unit_of_comm_[comm.index()]; }
  /// The nodes of a unit: one, or the members of a communication in their order.
  std::span<const dag::NodeId> members(std::uint32_t unit) const {
    return {members_.data() + first_member_[unit], first_member_[unit + 1] - first_member_[unit]};
  }
  /// The sort of a unit, in a compact table, because orders visit nodes at random.
  enum class Sort : std::uint8_t { work, whole_backward, load, count, communication, end_of_step };
  Sort sort(std::uint32_t unit) const {
    return sort_[unit] == Sort::whole_backward ? Sort::work : sort_[unit];
  }
  /// Duration at unit costs; a count takes one, so that order by time is topological for
  /// communication that reads it.
  std::uint32_t duration(std::uint32_t unit) const {
    return sort_[unit] == Sort::whole_backward                               ? 2
           : sort_[unit] == Sort::load || sort_[unit] == Sort::communication ? 0
                                                                             : 1;
  }
  /// The devices of the unit; for a communication those of its first member.
  DeviceSetId devices(std::uint32_t unit) const { return devices_[unit]; }
  dag::NodeId front(std::uint32_t unit) const { return members_[first_member_[unit]]; }
  std::span<const std::uint32_t> successors(std::uint32_t unit) const {
    return successors_.of(unit);
  }
  /// Edges that arrive at each unit, repeated ones counted.
  const std::vector<std::uint32_t>& indegree() const { return indegree_; }

 private:
  friend class PendingWorkGraph;
  WorkGraph() = default;
  void number(const dag::Dag& dag);
  void connect(const dag::Dag& dag);

  std::vector<std::uint32_t> unit_of_;       // per node
  std::vector<std::uint32_t> unit_of_comm_;  // per communication
  std::vector<std::uint32_t> first_member_;  // per unit, one more
  std::vector<dag::NodeId> members_;
  std::vector<Sort> sort_;            // per unit
  std::vector<DeviceSetId> devices_;  // per unit
  Adjacency successors_;
  std::vector<std::uint32_t> indegree_;
};

/// A graph that another thread may still be making. Its units are known early, its edges late.
class PendingWorkGraph {
 public:
  /// To be called once. If it throws (lack of memory or Cancelled), waiters throw the same
  /// exception.
  void make(const dag::Dag& dag) {
    try {
      graph_.number(dag);
      numbered_.count_down();
      graph_.connect(dag);
    } catch (...) {
      failure_ = std::current_exception();
      failed_ = true;
      if (!numbered_.try_wait()) numbered_.count_down();
      connected_.count_down();
      throw;
    }
    connected_.count_down();
  }
  /// Waits until units are available: everything except `successors` and `indegree`.
  const WorkGraph& numbered() const { return waited_for(numbered_); }
  /// Waits until the whole graph is available.
  const WorkGraph& connected() const { return waited_for(connected_); }

 private:
  const WorkGraph& waited_for(const std::latch& latch) const {
    latch.wait();
    if (failed_) std::rethrow_exception(failure_);
    return graph_;
  }

  WorkGraph graph_;
  std::latch numbered_{1}, connected_{1};
  std::exception_ptr failure_;
  std::atomic<bool> failed_ = false;  // set after failure_
};

/// A topological order of the units of the graph and `more`, first come first served; incomplete if
/// there is a cycle.
std::vector<std::uint32_t> topological_order(const WorkGraph& graph, const Adjacency& more);
/// The same, with the ASAP start time of each unit at unit costs.
std::vector<std::uint32_t> topological_order(const WorkGraph& graph, const Adjacency& more,
                                             std::vector<std::uint32_t>& start);

}  // namespace piper::passes
