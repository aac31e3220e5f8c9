#include "passes/communicate/messages.h"

#include <algorithm>
#include <utility>

#include "passes/selectors/lines_of.h"

namespace piper::passes {

using namespace dag;

namespace {

constexpr std::uint32_t kEnd = 0xFFFFFFFFu, kSeveral = 0xFFFFFFFFu;

struct Message {
  NodeId source;
  DeviceSetId to;
  ChunkId reader;      // the first
  std::uint32_t next;  // of the same source
  // The output of the source that it carries; for several, their begin in the pool.
  std::uint32_t port;
  std::uint32_t num_ports = 1;
  NodeId recv;
};

/// An edge between device sets, and the message that carries its value.
struct Crossing {
  std::uint32_t edge;
  std::uint32_t message;
};

class Messages {
 public:
  Messages(Dag& dag, const directive::Strategy& strategy)
      : dag_(dag),
        strategy_(strategy),
        work_(dag.nodes.size()),
        placed_(dag.device_sets.size()),
        first_(work_, kEnd) {
    messages_.reserve(work_);
    crossing_.reserve(work_);
  }

  void add() {
    find();
    if (messages_.empty()) return;
    gather_ports();
    number();
    connect_readers();
    make_nodes();
  }

 private:
  void find() {
    // A compact table, because edges visit nodes at random.
    std::vector<DeviceSetId> devices;
    devices.reserve(work_);
    for (const Node& node : dag_.nodes) devices.push_back(node.devices);
    NodePolls polls(dag_.context->cancellation);
    for (std::uint32_t n = 0; n < work_; ++n) {
      polls.visit();
      const Node& reader = dag_.nodes[n];
      const DeviceSetId to = devices[n];
      for (std::uint32_t e = reader.first_input, end = e + reader.num_inputs; e < end; ++e) {
        const Input& input = dag_.edges[e];
        // Nodes around the chunks may have existed before: their ids are beyond the work.
        if (input.cls != EdgeClass::data || !input.source.node.valid() ||
            input.source.node.index() >= work_ || devices[input.source.node.index()] == to)
          continue;
        const std::uint32_t message = message_of(input.source, to, reader.chunk);
        crossing_.push_back({e, message});
        if (messages_[message].port != input.source.index) messages_[message].num_ports = kSeveral;
      }
    }
  }

  std::uint32_t message_of(Port source, DeviceSetId to, ChunkId reader) {
    std::uint32_t& head = first_[source.node.index()];
    for (std::uint32_t m = head; m != kEnd; m = messages_[m].next) {
      if (messages_[m].to == to) return m;
    }
    messages_.push_back({source.node, to, reader, head, source.index, 1, {}});
    return head = static_cast<std::uint32_t>(messages_.size() - 1);
  }

  /// For messages with several outputs.
  void gather_ports() {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> carried;  // message and port
    for (const auto& [edge, m] : crossing_) {
      if (messages_[m].num_ports == kSeveral)
        carried.emplace_back(m, dag_.edges[edge].source.index);
    }
    std::sort(carried.begin(), carried.end());
    carried.erase(std::unique(carried.begin(), carried.end()), carried.end());
    ports_.reserve(carried.size());
    for (const auto& [m, port] : carried) {
      Message& message = messages_[m];
      if (message.num_ports == kSeveral) {
        message.port = static_cast<std::uint32_t>(ports_.size());
        message.num_ports = 0;
      }
      ++message.num_ports;
      ports_.push_back(port);
    }
  }

  std::span<const std::uint32_t> ports(const Message& message) const {
    return message.num_ports == 1 ? std::span(&message.port, 1)
                                  : std::span(ports_).subspan(message.port, message.num_ports);
  }

  /// Each source's messages by the sets that they go to. The receives get their ids, so that
  /// readers can be connected before the pool of edges grows.
  void number() {
    const auto before = [&](std::uint32_t a, std::uint32_t b) {
      return dag_.device_sets[messages_[a].to].at < dag_.device_sets[messages_[b].to].at;
    };
    order_.reserve(messages_.size());
    for (const std::uint32_t head : first_) {
      const auto begin = static_cast<std::ptrdiff_t>(order_.size());
      for (std::uint32_t m = head; m != kEnd; m = messages_[m].next) order_.push_back(m);
      if (std::ssize(order_) - begin > 1) std::sort(order_.begin() + begin, order_.end(), before);
    }
    for (std::size_t i = 0; i < order_.size(); ++i)
      messages_[order_[i]].recv = NodeId::at(work_ + 2 * i + 1);
  }

  void connect_readers() {
    for (const auto& [edge, m] : crossing_) {
      Port& source = dag_.edges[edge].source;
      const std::span<const std::uint32_t> carried = ports(messages_[m]);
      const auto at = std::lower_bound(carried.begin(), carried.end(), source.index);
      source = {messages_[m].recv, static_cast<std::uint32_t>(at - carried.begin())};
    }
  }

  void make_nodes() {
    // Reserves room for the nodes around too, so that no node moves while another is copied from
    // it.
    dag_.nodes.reserve(work_ + 2 * messages_.size() + dag_.buckets.size() * 4 + 1024);
    dag_.comms.reserve(messages_.size() + dag_.buckets.size() + 16);
    NodePolls polls(dag_.context->cancellation);
    for (const std::uint32_t m : order_) {
      polls.visit(2);
      const Message& message = messages_[m];
      const std::span<const std::uint32_t> carried = ports(message);
      Node& send = dag_.nodes.emplace_back(dag_.node(message.source));
      send.kind = NodeKind::send;
      send.body = {};
      send.stream = {};
      send.comm = CommId::at(dag_.comms.size());
      send.first_input = static_cast<std::uint32_t>(dag_.edges.size());
      send.num_inputs = message.num_ports;
      send.num_outputs = 0;
      for (std::uint32_t i = 0; i < carried.size(); ++i)
        dag_.edges.push_back({{message.source, carried[i]}, i, EdgeClass::data});
      Node& recv = dag_.nodes.emplace_back(send);
      recv.kind = NodeKind::recv;
      recv.chunk = message.reader;
      recv.devices = message.to;
      recv.loc = placed(message.to, recv.loc);
      send.loc = placed(send.devices, send.loc);
      recv.first_input = recv.num_inputs = 0;
      recv.num_outputs = message.num_ports;
      Comm& comm = dag_.comms.emplace_back();
      comm.members.resize_for_overwrite(2);
      comm.members[0] = NodeId::at(dag_.nodes.size() - 2);
      comm.members[1] = message.recv;
      comm.loc = send.loc;
    }
  }

  LocId placed(DeviceSetId devices, LocId otherwise) {
    LocId& line = placed_[devices.index()];
    if (!line.valid()) line = place_line(strategy_, devices, otherwise);
    return line;
  }

  Dag& dag_;
  const directive::Strategy& strategy_;
  const std::size_t work_;
  // Per device set: the line that places work there, computed on demand.
  std::vector<LocId> placed_;
  std::vector<std::uint32_t> first_;  // per node: its first message
  std::vector<Message> messages_;     // in the order of edges
  std::vector<Crossing> crossing_;
  std::vector<std::uint32_t> ports_;
  std::vector<std::uint32_t> order_;  // outputs of the messages
};

}  // namespace

void add_messages(Dag& dag, const directive::Strategy& strategy) { Messages(dag, strategy).add(); }

}  // namespace piper::passes
