#include <algorithm>

#include "ir/verify/facts.h"

namespace piper::verify {

namespace {

class Placement {
 public:
  explicit Placement(Facts& facts) : facts_(facts), dag_(facts.dag) {
    for (std::size_t i = 0; i < dag_.device_sets.size(); ++i)
      whole_.push_back(dag_.device_sets[DeviceSetId::at(i)].whole_axes());
  }

  void check() {
    const std::size_t before = facts_.sink.error_count();
    devices_.reserve(dag_.nodes.size());
    for (std::size_t i = 0; i < dag_.nodes.size() && !facts_.enough(); ++i) devices(NodeId::at(i));
    if (dag_.level < Level::communicating || facts_.sink.error_count() > before) return;
    readers_.assign(dag_.nodes.size(), Readers::none);
    NodePolls polls(dag_.context->cancellation);
    for (std::size_t i = 0; i < dag_.nodes.size() && !facts_.enough(); ++i) {
      polls.visit();
      edges(NodeId::at(i));
    }
    for (const auto& [first, second] : dag_.temporal) {
      if (facts_.enough()) break;
      if (devices_[first.index()] != devices_[second.index()]) temporal(first, second);
    }
    member_.assign(dag_.nodes.size(), kNone);
    for (std::size_t i = 0; i < dag_.comms.size() && !facts_.enough(); ++i)
      comm(static_cast<std::uint32_t>(i));
    for (std::size_t i = 0; i < dag_.nodes.size() && !facts_.enough(); ++i) {
      if (!is_communication(facts_.kind[i])) continue;
      const Node& node = dag_.nodes[i];
      if (member_[i] == node.comm.value()) continue;
      facts_.sink.report(Code::unmatched_communication, node.loc,
                         "`{}` is not among the members of its communication",
                         facts_.name(NodeId::at(i)));
    }
  }

 private:
  void devices(NodeId id) {
    const Node& node = facts_.node(id);
    devices_.push_back(node.devices);
    if (!node.devices.valid()) {
      facts_.sink.report(Code::missing_devices, node.loc, "`{}` has no devices", facts_.name(id));
    }
  }

  void edges(NodeId id) {
    const Node& node = facts_.node(id);
    for (const Input& input : dag_.inputs_of(node)) {
      if (!input.source.node.valid()) continue;
      if (devices_[input.source.node.index()] == node.devices) {
        if (is_recv(facts_.kind[input.source.node.index()])) {
          Readers& readers = readers_[input.source.node.index()];
          if (readers != Readers::named)
            readers = facts_.node(input.source.node).chunk == node.chunk ? Readers::named
                                                                         : Readers::others;
        }
        continue;
      }
      const Node& source = facts_.node(input.source.node);
      facts_.sink
          .report(Code::edge_crosses_devices, node.loc,
                  "`{}` on `{}` reads `{}` on `{}` without a message between them", facts_.name(id),
                  facts_.text(node.devices), facts_.text(input.source), facts_.text(source.devices))
          .related(source.loc, "`{}` is made here", facts_.name(input.source.node));
      return;
    }
  }

  /// A device orders only its own nodes; only a message makes another one wait.
  void temporal(NodeId first, NodeId second) {
    const Node& before = facts_.node(first);
    const Node& after = facts_.node(second);
    if (dag_.device_sets[before.devices].intersects(dag_.device_sets[after.devices])) return;
    facts_.sink
        .report(Code::edge_crosses_devices, after.loc,
                "`{}` on `{}` is ordered after `{}` on `{}`, and no device runs both",
                facts_.name(second), facts_.text(after.devices), facts_.name(first),
                facts_.text(before.devices))
        .related(before.loc, "`{}` is here", facts_.name(first));
  }

  void unmatched(const dag::Comm& comm, std::string_view why) {
    const NodeId first = comm.members.front();
    auto report =
        facts_.sink.report(Code::unmatched_communication, facts_.loc(first),
                           "the communication of `{}` does not match: {}", facts_.name(first), why);
    for (std::size_t k = 1; k < comm.members.size() && k < 4; ++k)
      report.related(facts_.loc(comm.members[k]), "`{}` is a member", facts_.name(comm.members[k]));
  }

  void comm(std::uint32_t index) {
    const dag::Comm& comm = dag_.comms[index];
    for (const NodeId member : comm.members) {
      if (!is_communication(facts_.node(member).kind) || facts_.node(member).comm.value() != index)
        return unmatched(comm, "a member does not name it");
      if (member_[member.index()] != kNone) return unmatched(comm, "a member stands in it twice");
      member_[member.index()] = index;
    }
    const NodeKind kind = facts_.node(comm.members.front()).kind;
    if (is_message(kind)) return pair(comm);
    const Node& first = facts_.node(comm.members.front());
    const AxisMask whole = whole_[first.devices.index()];
    if ((comm.axes & ~whole) != 0)
      return unmatched(comm, "it joins an axis along which its members have one device");
    const bool alone = comm.members.size() == 1 && comm.axes == 0;
    if (copies_to_or_from_host(kind))
      return alone ? void()
                   : unmatched(comm, "a copy to or from the memory of the host has one member");
    if (alone) return unmatched(comm, "it has one member and joins no axis");
    for (std::size_t k = 0; k < comm.members.size(); ++k) {
      const Node& member = facts_.node(comm.members[k]);
      if (member.kind != kind) return unmatched(comm, "its members are of different kinds");
      if (member.subject.bucket() != first.subject.bucket())
        return unmatched(comm, "its members reduce different buckets");
      if (whole_[member.devices.index()] != whole)
        return unmatched(comm, "its members do not pair by coordinate");
      if (reduces_members(kind) && member.num_outputs != first.num_outputs)
        return unmatched(comm, "its members bring different numbers of values");
      for (std::size_t j = 0; j < k; ++j) {
        const DeviceSetId other = facts_.node(comm.members[j]).devices;
        if (dag_.device_sets[member.devices].intersects(dag_.device_sets[other]))
          return unmatched(comm, "two members share a device");
      }
      if (!reduces_members(kind)) continue;
      for (std::uint32_t p = 0; p < member.num_outputs; ++p) {
        const tensor::Type& a = dag_.output_type({comm.members[k], p});
        const tensor::Type& b = dag_.output_type({comm.members[0], p});
        if (a.dtype != b.dtype || a.elements() != b.elements())
          return unmatched(comm, "its members bring values of different types");
      }
    }
  }

  void pair(const dag::Comm& comm) {
    if (comm.members.size() != 2) return unmatched(comm, "a message has one send and one recv");
    const Node& send = facts_.node(comm.members[0]);
    const Node& recv = facts_.node(comm.members[1]);
    if (!is_send(send.kind) || !is_recv(recv.kind))
      return unmatched(comm, "a message goes from a send to a recv");
    if (send.devices != from_ || recv.devices != to_) {  // the ends of the previous message fit
      if (dag_.device_sets[send.devices].intersects(dag_.device_sets[recv.devices]))
        return unmatched(comm, "both ends share a device");
      if (whole_[send.devices.index()] != whole_[recv.devices.index()])
        return unmatched(comm, "its ends do not pair by coordinate");
      from_ = send.devices;
      to_ = recv.devices;
    }
    if (send.instance != recv.instance)
      return unmatched(comm, "its ends belong to different instances");
    // One producer, each of its values once: a value sent twice would be received into two buffers.
    const std::span<const Input> inputs = dag_.inputs_of(send);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].source.node != inputs[0].source.node)
        return unmatched(comm, "it carries values of several producers");
    }
    if (inputs.size() > 1) {
      ports_.clear();
      for (const Input& input : inputs) ports_.push_back(input.source.index);
      std::sort(ports_.begin(), ports_.end());
      if (std::adjacent_find(ports_.begin(), ports_.end()) != ports_.end())
        return unmatched(comm, "it carries a value twice");
    }
    const Node& maker = inputs.empty() ? send : facts_.node(inputs[0].source.node);
    if (runs_body(maker.kind) &&
        (maker.chunk != send.chunk || maker.pass != send.pass || maker.instance != send.instance)) {
      return unmatched(comm, "it carries values of another chunk, pass or instance than it says");
    }
    if (send.pass != recv.pass) return unmatched(comm, "its ends say different passes");
    if (readers_[comm.members[1].index()] == Readers::others)
      return unmatched(comm, "it is read by another chunk than its recv says");
  }

  Facts& facts_;
  const Dag& dag_;
  std::vector<AxisMask> whole_;  // per device set
  // Per node, in a compact table, because edges visit nodes at random.
  std::vector<DeviceSetId> devices_;
  enum class Readers : std::uint8_t { none, others, named };
  std::vector<Readers> readers_;       // per recv: whether the chunk that it names reads it
  DeviceSetId from_, to_;              // of a message whose ends fit
  std::vector<std::uint32_t> member_;  // per node: the communication that lists it
  std::vector<std::uint32_t> ports_;
};

class Order {
 public:
  explicit Order(Facts& facts) : facts_(facts), dag_(facts.dag) {}

  void check() {
    const std::size_t n = dag_.nodes.size();
    std::vector<std::uint32_t> listed;
    if (facts_.position.empty() && !find_positions(listed)) return;
    const std::vector<std::uint32_t>& position = facts_.position.empty() ? listed : facts_.position;
    for (std::size_t i = 0; i < n && !facts_.enough(); ++i) {
      const NodeId id = NodeId::at(i);
      if (position[i] == kNone) {
        facts_.sink.report(Code::wrong_order, facts_.loc(id), "`{}` is missing in the order",
                           facts_.name(id));
        continue;
      }
      const Node& node = dag_.nodes[i];
      if (!facts_.tables->follows_order) sources(id, position);
      if (adds_in_place(node.kind)) {
        if (node.stream.valid())
          facts_.sink.report(Code::wrong_stream, node.loc,
                             "`{}` is on stream `{}`, and no device does work for it",
                             facts_.name(id), facts_.text(dag_.streams[node.stream.index()].name));
        terms(id, position);
      } else if (!node.stream.valid()) {
        facts_.sink.report(Code::wrong_stream, node.loc, "`{}` has no stream", facts_.name(id));
      } else if ((node.stream.value() == 0) == is_communication(node.kind)) {
        facts_.sink.report(
            Code::wrong_stream, node.loc,
            "`{}` is on stream `{}`; the first stream is for work, the others are for communication",
            facts_.name(id), facts_.text(dag_.streams[node.stream.index()].name));
      }
    }
    for (const auto& [first, second] : dag_.temporal) {
      if (facts_.enough()) return;
      for (const NodeId id : {first, second}) {
        if (adds_in_place(facts_.kind[id.index()]))
          facts_.sink.report(Code::wrong_order, facts_.loc(id),
                             "an order names `{}`, for which no device does work", facts_.name(id));
      }
      if (first == second)
        facts_.sink.report(Code::wrong_order, facts_.loc(first), "`{}` is ordered after itself",
                           facts_.name(first));
      if (position[first.index()] > position[second.index()])
        before(first, second, "is ordered after it");
    }
    for (const dag::Comm& comm : dag_.comms) {
      if (facts_.enough()) return;
      one_stream(comm);
    }
  }

 private:
  /// The places of the order; reports an order that does not name every node once.
  bool find_positions(std::vector<std::uint32_t>& position) {
    position.assign(dag_.nodes.size(), kNone);
    for (std::size_t i = 0; i < dag_.order.size(); ++i) {
      const NodeId id = dag_.order[i];
      if (!id.valid() || id.index() >= position.size()) {
        facts_.sink.report(Code::broken_dag, LocId(), "the order names a node that does not exist");
        return false;
      }
      if (position[id.index()] != kNone) {
        facts_.sink.report(Code::wrong_order, facts_.loc(id), "`{}` stands twice in the order",
                           facts_.name(id));
        return false;
      }
      position[id.index()] = static_cast<std::uint32_t>(i);
    }
    return true;
  }

  void sources(NodeId id, const std::vector<std::uint32_t>& position) {
    const Node& node = facts_.node(id);
    for (const Input& input : dag_.inputs_of(node)) {
      if (input.cls == dag::EdgeClass::param || !input.source.node.valid()) continue;
      if (position[input.source.node.index()] > position[id.index()])
        before(input.source.node, id, "reads it");
    }
    if (is_recv(node.kind)) {
      const NodeId send = dag_.comms[node.comm.index()].members.front();
      if (position[send.index()] > position[id.index()]) before(send, id, "receives it");
    }
  }

  /// Terms are added in the order in which they are made.
  void terms(NodeId id, const std::vector<std::uint32_t>& position) {
    for_each_port(dag_, facts_.node(id), [&](std::span<const Input> sources) {
      for (std::size_t k = 1; k < sources.size(); ++k) {
        const NodeId first = sources[k - 1].source.node, second = sources[k].source.node;
        if (position[first.index()] <= position[second.index()]) continue;
        facts_.sink.report(Code::wrong_order, facts_.loc(id),
                           "`{}` adds `{}` before `{}`, which is made before it", facts_.name(id),
                           facts_.name(first), facts_.name(second));
        return;
      }
    });
  }

  /// Neither missing nor the stream of work: both are reported elsewhere.
  static bool for_communication(dag::StreamId stream) {
    return stream.valid() && stream.value() != 0;
  }

  /// A communicator is on one stream at all its members.
  void one_stream(const dag::Comm& comm) {
    const Node& first = facts_.node(comm.members.front());
    for (const NodeId id : comm.members) {
      const Node& member = facts_.node(id);
      if (member.stream == first.stream || !for_communication(member.stream) ||
          !for_communication(first.stream))
        continue;
      facts_.sink
          .report(Code::wrong_stream, member.loc,
                  "`{}` is on stream `{}`, and `{}`, which communicates with it, on stream `{}`",
                  facts_.name(id), facts_.text(dag_.streams[member.stream.index()].name),
                  facts_.name(comm.members.front()),
                  facts_.text(dag_.streams[first.stream.index()].name))
          .related(first.loc, "`{}` is here", facts_.name(comm.members.front()));
      return;
    }
  }

  void before(NodeId first, NodeId second, std::string_view why) {
    facts_.sink
        .report(Code::wrong_order, facts_.loc(second), "`{}` stands before `{}`, but {}",
                facts_.name(second), facts_.name(first), why)
        .related(facts_.loc(first), "`{}` is made here", facts_.name(first));
  }

  Facts& facts_;
  const Dag& dag_;
};

}  // namespace

void check_placement(Facts& facts) { Placement(facts).check(); }
void check_order(Facts& facts) { Order(facts).check(); }

}  // namespace piper::verify
