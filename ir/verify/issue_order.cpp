#include <algorithm>

#include "ir/verify/facts.h"

namespace piper::verify {

namespace {

/// Runs the work and communications of each device in the global order; a communication happens
/// when all its members have reached it. A plan of this order has no more freedom, so a cycle here
/// is a deadlock there.
class IssueOrder {
 public:
  explicit IssueOrder(Facts& facts)
      : facts_(facts), dag_(facts.dag), n_(static_cast<std::uint32_t>(dag_.nodes.size())) {}

  void check() {
    find_units();
    find_links();
    std::vector<std::uint32_t> pending(n_, 0), ready;
    for (const Link& link : links_) ++pending[link.to];
    for (std::uint32_t unit = 0; unit < n_; ++unit) {
      if (unit_of_[unit] == unit && pending[unit] == 0) ready.push_back(unit);
    }
    std::sort(links_.begin(), links_.end(),
              [](const Link& a, const Link& b) { return a.from < b.from; });
    for (std::size_t k = 0; k < ready.size(); ++k) {
      auto link =
          std::lower_bound(links_.begin(), links_.end(), ready[k],
                           [](const Link& each, std::uint32_t unit) { return each.from < unit; });
      for (; link != links_.end() && link->from == ready[k]; ++link) {
        if (--pending[link->to] == 0) ready.push_back(link->to);
      }
    }
    const auto stuck =
        std::find_if(pending.begin(), pending.end(), [](std::uint32_t count) { return count > 0; });
    if (stuck != pending.end())
      report_stuck(static_cast<std::uint32_t>(stuck - pending.begin()), pending);
  }

 private:
  enum class Why : std::uint8_t { reads, after, follows };
  /// A unit happens before another one because of an edge between two of their nodes.
  struct Link {
    std::uint32_t from, to;
    NodeId before, node;
    Why why;
  };

  /// The members of a communication are one unit, named by the first of them.
  void find_units() {
    unit_of_.resize(n_);
    for (std::uint32_t i = 0; i < n_; ++i) unit_of_[i] = i;
    for (const dag::Comm& comm : dag_.comms) {
      for (const NodeId member : comm.members)
        unit_of_[member.index()] = comm.members.front().value();
    }
  }

  void link(NodeId before, NodeId node, Why why) {
    const std::uint32_t from = unit_of_[before.index()], to = unit_of_[node.index()];
    if (from != to) links_.push_back({from, to, before, node, why});
  }

  void find_links() {
    for (std::uint32_t i = 0; i < n_; ++i) {
      for (const Input& input : dag_.inputs_of(dag_.nodes[i])) {
        if (input.cls != dag::EdgeClass::param && input.source.node.valid())
          link(input.source.node, NodeId(i), Why::reads);
      }
    }
    for (const auto& [before, after] : dag_.temporal) link(before, after, Why::after);
    const std::size_t sets = dag_.device_sets.size();
    // Per device set: the sets that share a device with it.
    std::vector<std::vector<std::uint32_t>> sharing(sets);
    for (std::size_t a = 0; a < sets; ++a) {
      for (std::size_t b = 0; b < sets; ++b) {
        if (dag_.device_sets[DeviceSetId::at(a)].intersects(dag_.device_sets[DeviceSetId::at(b)]))
          sharing[a].push_back(static_cast<std::uint32_t>(b));
      }
    }
    // Work, communication.
    std::vector<NodeId> last[] = {std::vector<NodeId>(sets), std::vector<NodeId>(sets)};
    for (const NodeId id : dag_.order) {
      const Node& node = facts_.node(id);
      if (adds_in_place(node.kind)) continue;
      std::vector<NodeId>& of_kind = last[is_communication(node.kind) ? 1 : 0];
      for (const std::uint32_t set : sharing[node.devices.index()]) {
        if (of_kind[set].valid()) link(of_kind[set], id, Why::follows);
      }
      of_kind[node.devices.index()] = id;
    }
  }

  /// Walks back along units that have not happened until one repeats.
  void report_stuck(std::uint32_t at, const std::vector<std::uint32_t>& pending) {
    // For each unit that has not happened, one that it waits for.
    std::vector<const Link*> waits(n_, nullptr);
    for (const Link& link : links_) {
      if (pending[link.from] > 0) waits[link.to] = &link;
    }
    std::vector<std::uint32_t> seen(n_, kNone);
    std::vector<const Link*> path;
    for (; seen[at] == kNone; at = path.back()->from) {
      seen[at] = static_cast<std::uint32_t>(path.size());
      path.push_back(waits[at]);
    }
    const NodeId first(at);
    auto report = facts_.sink.report(
        Code::limited_deadlock, facts_.loc(first),
        "`{}` waits for itself: in this order devices that run one communication at a time would hang",
        facts_.name(first));
    constexpr std::string_view kWhy[] = {"reads", "is ordered after",
                                         "stands on its devices behind"};
    for (std::size_t k = seen[at]; k < path.size(); ++k) {
      report.related(facts_.loc(path[k]->node), "`{}` {} `{}`", facts_.name(path[k]->node),
                     kWhy[static_cast<std::size_t>(path[k]->why)], facts_.name(path[k]->before));
    }
  }

  Facts& facts_;
  const Dag& dag_;
  const std::uint32_t n_;
  std::vector<std::uint32_t> unit_of_;
  std::vector<Link> links_;
};

}  // namespace

void check_issue_order(Facts& facts) { IssueOrder(facts).check(); }

}  // namespace piper::verify
