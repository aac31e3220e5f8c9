#include "passes/order/communicators.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

namespace piper::passes {

using namespace dag;

namespace {

constexpr std::uint32_t kNever = 0xFFFFFFFFu;

/// The farthest pair of messages of which the later must arrive while the earlier is unread: the
/// largest j - i with read[j] <= read[i].
Communicators::Swap widest_swap(std::span<const std::uint32_t> read) {
  Communicators::Swap widest;
  std::vector<std::uint32_t> latest(read.size());  // the largest read position up to here
  for (std::size_t i = 0; i < read.size(); ++i)
    latest[i] = i == 0 ? read[0] : std::max(latest[i - 1], read[i]);
  for (std::uint32_t j = 0; j < read.size(); ++j) {
    if (j == 0 || read[j] > latest[j - 1]) continue;
    const std::uint32_t i = static_cast<std::uint32_t>(
        std::lower_bound(latest.begin(), latest.begin() + j, read[j]) - latest.begin());
    if (i < j && j - i > widest.wanted - widest.unread) widest = {i, j};
  }
  return widest;
}

class Former {
 public:
  Former(const Dag& dag, const WorkGraph& graph, Routes routes, std::span<const StreamId> stream_of,
         std::span<const std::uint32_t> position)
      : dag_(dag),
        graph_(graph),
        stream_of_(stream_of),
        position_(position),
        routes_(std::move(routes)) {
    out_.of_comm.resize(dag.comms.size());
    out_.number.assign(dag.comms.size(), 0);
    out_.first_reader.resize(dag.comms.size());
    read_.assign(dag.comms.size(), kNever);
  }

  Communicators run() {
    routes_.part_by_streams(stream_of_);
    find_first_readers();
    form_pairs();
    form_groups();
    return std::move(out_);
  }

 private:
  const Node& front(CommId comm) const {
    return dag_.node(dag_.comms[comm.index()].members.front());
  }

  void find_first_readers() {
    NodePolls polls(dag_.context->cancellation);
    for (std::size_t i = 0; i < dag_.comms.size(); ++i) {
      polls.visit(dag_.comms[i].members.size());
      if (routes_.of_comm[i] != Routes::kNone)
        find_first_reader(CommId::at(i), dag_.comms[i].members.back());
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
      return std::any_of(inputs.begin(), inputs.end(),
                         [&](const Input& input) { return input.source.node == recv; });
    };
    const std::span<const NodeId> members = graph_.members(first);
    out_.first_reader[comm.index()] = members.size() == 1
                                          ? members.front()
                                          : *std::find_if(members.begin(), members.end(), reads);
  }

  const std::vector<std::int32_t>& key(DeviceSetId set) const { return dag_.device_sets[set].at; }
  bool before(const Routes::Route& a, const Routes::Route& b) const {
    return std::tie(key(a.from), key(a.to), a.backward, a.stream) <
           std::tie(key(b.from), key(b.to), b.backward, b.stream);
  }

  void form_pairs() {
    // Messages in the order in which they are sent.
    std::vector<CommId> at_position(graph_.units());
    for (std::size_t i = 0; i < dag_.comms.size(); ++i) {
      if (routes_.of_comm[i] != Routes::kNone)
        at_position[position_[graph_.unit_of(CommId::at(i))]] = CommId::at(i);
    }
    std::vector<std::vector<CommId>> messages(routes_.list.size());
    for (const CommId comm : at_position) {
      if (comm.valid()) messages[routes_.of_comm[comm.index()]].push_back(comm);
    }
    // Sorted by the content of routes, so that the numbering of communicators does not depend on
    // positions or on the numbering of device sets.
    std::vector<std::size_t> sorted(routes_.list.size());
    for (std::size_t r = 0; r < sorted.size(); ++r) sorted[r] = r;
    std::sort(sorted.begin(), sorted.end(), [&](std::size_t a, std::size_t b) {
      return before(routes_.list[a], routes_.list[b]);
    });
    for (const std::size_t route : sorted) {
      const std::vector<CommId>& comms = messages[route];
      if (comms.empty()) continue;  // all are on streams of the user
      const Communicators::Swap swap = widest_swap(reads(comms));
      if (swap.wanted - swap.unread <= 1) {
        add_pair(comms, swap);
        continue;
      }
      std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<CommId>> parts;
      for (const CommId comm : comms)
        parts[{front(comm).chunk.value(), copies(front(comm))}].push_back(comm);
      for (const auto& [part, list] : parts) add_pair(list, widest_swap(reads(list)));
    }
  }

  /// Which copy a node belongs to: its indices along all dimensions but the last, which counts
  /// microbatches.
  std::uint64_t copies(const Node& node) const {
    std::uint64_t index = 0;
    for (std::size_t d = 0; d + 1 < dag_.dims.size(); ++d) {
      index =
          index * (dag_.dims[d].extent + 1) + static_cast<std::uint64_t>(node.instance.at[d] + 1);
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
    made.members = {dag_.node(first.members.front()).devices,
                    dag_.node(first.members.back()).devices};
    made.stream = stream_of_[comms.front().index()];
    made.loc = first.loc;
    made.min_window = 1 + swap.wanted - swap.unread;
    made.window = std::max(2u, made.min_window);
    if (made.stream.valid() && dag_.streams[made.stream.index()].window)
      made.window = *dag_.streams[made.stream.index()].window;
    add(std::move(made), swap);
  }

  /// Their sequences follow from the linear order, which is made later.
  void form_groups() {
    // Same member sets, axes, purpose and stream.
    std::map<std::tuple<std::vector<std::vector<std::int32_t>>, AxisMask, int, std::uint32_t>,
             std::vector<CommId>>
        groups;
    for (std::size_t i = 0; i < dag_.comms.size(); ++i) {
      const Node& node = front(CommId::at(i));
      if (is_message(node.kind)) continue;
      std::vector<std::vector<std::int32_t>> sets;
      for (const NodeId member : dag_.comms[i].members)
        sets.push_back(key(dag_.node(member).devices));
      const int purpose = copies_to_or_from_host(node.kind) ? 4
                          : gathers_shards(node.kind)       ? 3
                          : gathers_lists(node.kind)        ? 2
                          : node.subject.bucket().valid()   ? 0
                                                            : 1;
      groups[{std::move(sets), dag_.comms[i].axes, purpose, stream_of_[i].value()}].push_back(
          CommId::at(i));
    }
    for (auto& [kind, comms] : groups) {
      Communicator made;
      made.kind = Communicator::Kind::group;
      for (const NodeId member : dag_.comms[comms.front().index()].members)
        made.members.push_back(dag_.node(member).devices);
      made.axes = std::get<1>(kind);
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
  std::span<const StreamId> stream_of_;      // per comm
  std::span<const std::uint32_t> position_;  // per unit
  Routes routes_;
  // Per comm: position of its first reader.
  std::vector<std::uint32_t> read_;
  Communicators out_;
};

}  // namespace

Routes::Routes(const Dag& dag) {
  using Ends = std::tuple<DeviceSetId, DeviceSetId, bool>;
  std::map<Ends, std::uint32_t> known;
  // Forward and backward: messages of one chunk mostly go where the one before went.
  std::array<std::pair<Ends, std::uint32_t>, 2> last{};
  of_comm.assign(dag.comms.size(), kNone);
  for (std::size_t i = 0; i < dag.comms.size(); ++i) {
    const Node& send = dag.node(dag.comms[i].members.front());
    if (!is_send(send.kind)) continue;
    const bool backward = is_backward(send.pass);
    const Ends ends{send.devices, dag.node(dag.comms[i].members.back()).devices, backward};
    auto& [same, route] = last[backward ? 1 : 0];
    if (same != ends) {
      const auto [entry, fresh] = known.try_emplace(ends, static_cast<std::uint32_t>(list.size()));
      if (fresh) list.push_back({std::get<0>(ends), std::get<1>(ends), backward, {}});
      same = ends;
      route = entry->second;
    }
    of_comm[i] = route;
  }
}

void Routes::part_by_streams(std::span<const StreamId> stream_of) {
  std::map<std::pair<std::uint32_t, StreamId>, std::uint32_t> known;
  for (std::size_t i = 0; i < of_comm.size(); ++i) {
    if (of_comm[i] == kNone || !stream_of[i].valid()) continue;
    const auto [entry, fresh] =
        known.try_emplace({of_comm[i], stream_of[i]}, static_cast<std::uint32_t>(list.size()));
    if (fresh) {
      list.push_back(list[of_comm[i]]);
      list.back().stream = stream_of[i];
    }
    of_comm[i] = entry->second;
  }
}

Communicators form_communicators(const Dag& dag, const WorkGraph& graph, Routes routes,
                                 std::span<const StreamId> stream_of,
                                 std::span<const std::uint32_t> position) {
  return Former(dag, graph, std::move(routes), stream_of, position).run();
}

void number_collectives(const Dag& dag, std::span<const std::uint32_t> position,
                        Communicators& communicators) {
  const auto at = [&](CommId comm) {
    return position[dag.comms[comm.index()].members.front().index()];
  };
  for (Communicator& communicator : communicators.list) {
    if (communicator.kind != Communicator::Kind::group) continue;
    std::sort(communicator.comms.begin(), communicator.comms.end(),
              [&](CommId a, CommId b) { return at(a) < at(b); });
    communicator.loc = dag.comms[communicator.comms.front().index()].loc;
    for (std::uint32_t i = 0; i < communicator.comms.size(); ++i)
      communicators.number[communicator.comms[i].index()] = i;
  }
}

}  // namespace piper::passes
