#include "passes/communicators.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "llvm/ADT/DenseMap.h"

namespace piper::passes {

using namespace dag;

namespace {

constexpr std::uint32_t kNever = 0xFFFFFFFFu;

/// The farthest pair of messages of which the later must arrive while the earlier is unread: the largest j - i with read[j] <= read[i].
Communicators::Swap widest_swap(std::span<const std::uint32_t> read) {
  Communicators::Swap widest;
  std::vector<std::uint32_t> latest(read.size());  // the largest read position up to here
  for (std::size_t i = 0; i < read.size(); ++i) latest[i] = i == 0 ? read[0] : std::max(latest[i - 1], read[i]);
  for (std::uint32_t j = 0; j < read.size(); ++j) {
    if (j == 0 || read[j] > latest[j - 1]) continue;
    const std::uint32_t i = static_cast<std::uint32_t>(std::lower_bound(latest.begin(), latest.begin() + j, read[j]) - latest.begin());
    if (i < j && j - i > widest.wanted - widest.unread) widest = {i, j};
  }
  return widest;
}

class Former {
 public:
  Former(const Dag& dag, const WorkGraph& graph, std::span<const StreamId> stream_of, std::span<const std::uint32_t> position)
      : dag_(dag), graph_(graph), stream_of_(stream_of), position_(position) {
    out_.of_comm.resize(dag.comms.size());
    out_.number.assign(dag.comms.size(), 0);
    out_.first_reader.resize(dag.comms.size());
    read_.assign(dag.comms.size(), kNever);
  }

  Communicators run() {
    find_routes();
    form_pairs();
    form_groups();
    return std::move(out_);
  }

 private:
  /// Source, destination, whether it leads backward, stream.
  using Route = std::tuple<DeviceSetId, DeviceSetId, bool, StreamId>;

  const Node& front(CommId comm) const { return dag_.node(dag_.comms[comm.index()].members.front()); }

  /// Numbers the routes as they come, and finds the first readers: in the order of the communications, which is that of their nodes.
  void find_routes() {
    using Ends = std::pair<std::uint64_t, std::uint64_t>;  // a route as numbers
    llvm::DenseMap<Ends, std::uint32_t> known;
    std::array<std::pair<Ends, std::uint32_t>, 2> last{};  // forward and backward: messages of one chunk mostly go where the one before went
    std::array<bool, 2> any{};
    route_of_.assign(dag_.comms.size(), kNever);
    for (std::size_t i = 0; i < dag_.comms.size(); ++i) {
      const Node& send = front(CommId::at(i));
      if (send.kind != NodeKind::send) continue;
      const NodeId recv = dag_.comms[i].members.back();
      const DeviceSetId to = dag_.node(recv).devices;
      const std::size_t backward = send.pass != Pass::F ? 1 : 0;
      const Ends ends{std::uint64_t{send.devices.value()} << 32 | to.value(), std::uint64_t{stream_of_[i].value()} << 1 | backward};
      if (!any[backward] || last[backward].first != ends) {
        const auto [entry, fresh] = known.try_emplace(ends, static_cast<std::uint32_t>(routes_.size()));
        if (fresh) routes_.push_back({Route{send.devices, to, backward == 1, stream_of_[i]}, 0});
        last[backward] = {ends, entry->second};
        any[backward] = true;
      }
      route_of_[i] = last[backward].second;
      ++routes_[route_of_[i]].second;
      find_first_reader(CommId::at(i), recv);
    }
  }

  void find_first_reader(CommId comm, NodeId recv) {
    std::uint32_t first = kNever;
    for (const std::uint32_t unit : graph_.successors(graph_.unit_of(comm))) {
      if (position_[unit] >= read_[comm.index()]) continue;
      read_[comm.index()] = position_[unit];
      first = unit;
    }
    if (first == kNever) return;
    const auto reads = [&](NodeId node) {
      const std::span<const Input> inputs = dag_.inputs_of(dag_.node(node));
      return std::any_of(inputs.begin(), inputs.end(), [&](const Input& input) { return input.source.node == recv; });
    };
    const std::span<const NodeId> members = graph_.members(first);
    out_.first_reader[comm.index()] = members.size() == 1 ? members.front() : *std::find_if(members.begin(), members.end(), reads);
  }

  void form_pairs() {
    std::vector<CommId> at_position(graph_.units());  // messages in the order in which they are sent
    for (std::size_t i = 0; i < dag_.comms.size(); ++i) {
      if (route_of_[i] != kNever) at_position[position_[graph_.unit_of(CommId::at(i))]] = CommId::at(i);
    }
    std::vector<std::vector<CommId>> messages(routes_.size());
    for (std::size_t r = 0; r < routes_.size(); ++r) messages[r].reserve(routes_[r].second);
    for (const CommId comm : at_position) {
      if (comm.valid()) messages[route_of_[comm.index()]].push_back(comm);
    }
    // In the order of the routes themselves, so that the numbering of communicators does not depend on positions.
    std::vector<std::size_t> sorted(routes_.size());
    for (std::size_t r = 0; r < sorted.size(); ++r) sorted[r] = r;
    std::sort(sorted.begin(), sorted.end(), [&](std::size_t a, std::size_t b) { return routes_[a].first < routes_[b].first; });
    for (const std::size_t route : sorted) {
      const std::vector<CommId>& comms = messages[route];
      const Communicators::Swap swap = widest_swap(reads(comms));
      if (swap.wanted - swap.unread <= 1) {
        add_pair(comms, swap);
        continue;
      }
      std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<CommId>> parts;
      for (const CommId comm : comms) parts[{front(comm).chunk.value(), copies(front(comm))}].push_back(comm);
      for (const auto& [part, list] : parts) add_pair(list, widest_swap(reads(list)));
    }
  }

  /// Which copy a node belongs to: its indices along all dimensions but the last, which counts microbatches.
  std::uint64_t copies(const Node& node) const {
    std::uint64_t index = 0;
    for (std::size_t d = 0; d + 1 < dag_.dims.size(); ++d) {
      index = index * (dag_.dims[d].extent + 1) + static_cast<std::uint64_t>(node.instance.at[d] + 1);
    }
    return index;
  }

  std::vector<std::uint32_t> reads(std::span<const CommId> comms) const {
    std::vector<std::uint32_t> list;
    list.reserve(comms.size());
    for (const CommId comm : comms) list.push_back(read_[comm.index()]);
    return list;
  }

  void add_pair(const std::vector<CommId>& comms, Communicators::Swap swap) {
    const Comm& first = dag_.comms[comms.front().index()];
    Communicator made;
    made.kind = Communicator::Kind::pair;
    made.comms = comms;
    made.members = {dag_.node(first.members.front()).devices, dag_.node(first.members.back()).devices};
    made.stream = stream_of_[comms.front().index()];
    made.loc = first.loc;
    made.least_window = 1 + swap.wanted - swap.unread;
    made.window = std::max(2u, made.least_window);
    if (made.stream.valid() && dag_.streams[made.stream.index()].window) made.window = *dag_.streams[made.stream.index()].window;
    add(std::move(made), swap);
  }

  /// Their sequences are those of the linear order, which stands later.
  void form_groups() {
    // Same member sets, axes, purpose and stream.
    std::map<std::tuple<std::vector<DeviceSetId>, AxisMask, int, std::uint32_t>, std::vector<CommId>> groups;
    for (std::size_t i = 0; i < dag_.comms.size(); ++i) {
      const Node& node = front(CommId::at(i));
      if (node.kind == NodeKind::send || node.kind == NodeKind::recv) continue;
      std::vector<DeviceSetId> sets;
      for (const NodeId member : dag_.comms[i].members) sets.push_back(dag_.node(member).devices);
      const int purpose = node.kind == NodeKind::all_gather ? 2 : node.bucket.valid() ? 0 : 1;
      groups[{std::move(sets), dag_.comms[i].axes, purpose, stream_of_[i].value()}].push_back(CommId::at(i));
    }
    for (auto& [key, comms] : groups) {
      Communicator made;
      made.kind = Communicator::Kind::group;
      made.members = std::get<0>(key);
      made.axes = std::get<1>(key);
      made.stream = stream_of_[comms.front().index()];
      made.loc = dag_.comms[comms.front().index()].loc;
      made.comms = std::move(comms);
      add(std::move(made), {});
    }
  }

  void add(Communicator communicator, Communicators::Swap swap) {
    const CommunicatorId id = CommunicatorId::at(out_.list.size());
    for (std::uint32_t i = 0; i < communicator.comms.size(); ++i) {
      out_.of_comm[communicator.comms[i].index()] = id;
      out_.number[communicator.comms[i].index()] = i;
    }
    out_.list.push_back(std::move(communicator));
    out_.widest.push_back(swap);
  }

  const Dag& dag_;
  const WorkGraph& graph_;
  std::span<const StreamId> stream_of_;                     // per comm
  std::span<const std::uint32_t> position_;                 // per unit
  std::vector<std::pair<Route, std::uint32_t>> routes_;     // of messages, with how many there are
  std::vector<std::uint32_t> route_of_;                     // per comm
  std::vector<std::uint32_t> read_;                         // per comm: position of its first reader
  Communicators out_;
};

}  // namespace

Communicators form_communicators(const Dag& dag, const WorkGraph& graph, std::span<const StreamId> stream_of, std::span<const std::uint32_t> position) {
  return Former(dag, graph, stream_of, position).run();
}

}  // namespace piper::passes
