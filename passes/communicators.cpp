#include "passes/communicators.h"

#include <algorithm>
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
  Former(const Dag& dag, std::span<const StreamId> stream_of, std::span<const std::uint32_t> position) : dag_(dag), stream_of_(stream_of), position_(position) {
    out_.of_comm.resize(dag.comms.size());
    out_.number.assign(dag.comms.size(), 0);
    out_.first_reader.resize(dag.comms.size());
    read_.assign(dag.comms.size(), kNever);
  }

  Communicators run() {
    find_ends();
    find_first_readers();
    form_pairs();
    form_groups();
    return std::move(out_);
  }

 private:
  const Node& front(CommId comm) const { return dag_.node(dag_.comms[comm.index()].members.front()); }

  /// In one walk over the nodes, which are large.
  void find_ends() {
    received_.resize(dag_.nodes.size());
    ends_.resize(dag_.comms.size());
    for (std::size_t i = 0; i < dag_.nodes.size(); ++i) {
      const Node& node = dag_.nodes[i];
      if (node.kind == NodeKind::recv) {
        received_[i] = node.comm;
        ends_[node.comm.index()].to = node.devices;
      }
      if (node.kind != NodeKind::send) continue;
      Ends& own = ends_[node.comm.index()];
      own.from = node.devices;
      own.pass = node.pass;
      if (position_[i] >= at_position_.size()) at_position_.resize(std::max<std::size_t>(position_[i] + 1, 2 * at_position_.size()));
      at_position_[position_[i]] = node.comm;
    }
  }

  void find_first_readers() {
    for (std::size_t i = 0; i < dag_.nodes.size(); ++i) {
      for (const Input& input : dag_.inputs_of(dag_.nodes[i])) {
        if (input.cls == EdgeClass::param) continue;
        const CommId comm = received_[input.source.node.index()];
        if (!comm.valid() || position_[i] >= read_[comm.index()]) continue;
        read_[comm.index()] = position_[i];
        out_.first_reader[comm.index()] = NodeId::at(i);
      }
    }
  }

  void form_pairs() {
    using Route = std::tuple<std::uint32_t, std::uint32_t, bool, std::uint32_t>;  // source, destination, direction, stream
    std::map<Route, std::uint32_t> routes;
    llvm::DenseMap<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> group_of;
    std::vector<std::vector<CommId>> groups;
    for (const CommId comm : at_position_) {
      if (!comm.valid()) continue;
      const Ends& own = ends_[comm.index()];
      const Route route{own.from.value(), own.to.value(), own.pass != Pass::F, stream_of_[comm.index()].value()};
      const auto [entry, fresh] =
          group_of.try_emplace({std::uint64_t{std::get<0>(route)} << 32 | std::get<1>(route), std::uint64_t{std::get<3>(route)} << 1 | (std::get<2>(route) ? 1 : 0)},
                               static_cast<std::uint32_t>(groups.size()));
      if (fresh) {
        routes.emplace(route, entry->second);
        groups.emplace_back();
      }
      groups[entry->second].push_back(comm);
    }
    // Groups in the order of their routes, so that the numbering does not depend on positions.
    for (const auto& [route, group] : routes) {
      const std::vector<CommId>& comms = groups[group];
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
  std::span<const StreamId> stream_of_;  // per comm
  std::span<const std::uint32_t> position_;
  struct Ends {
    DeviceSetId from, to;
    Pass pass = Pass::F;
  };
  std::vector<Ends> ends_;           // per comm, of messages
  std::vector<CommId> at_position_;  // messages by the position of the send, which no two share
  std::vector<CommId> received_;     // per node: the message of a receive
  std::vector<std::uint32_t> read_;  // per comm: position of its first reader
  Communicators out_;
};

}  // namespace

Communicators form_communicators(const Dag& dag, std::span<const StreamId> stream_of, std::span<const std::uint32_t> position) {
  return Former(dag, stream_of, position).run();
}

}  // namespace piper::passes
