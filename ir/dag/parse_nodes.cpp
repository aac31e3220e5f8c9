#include <algorithm>
#include <limits>

#include "ir/dag/parse_parts.h"
#include "ir/text/print_text.h"

namespace piper::dag {

namespace {

constexpr std::int64_t kMax32 = std::numeric_limits<std::int32_t>::max();
constexpr std::uint32_t kNone = 0xFFFFFFFFu;

/// References hold the number of a name until all nodes are known.
class NodesParser {
 public:
  NodesParser(TextReader& reader, Dag& dag, NodeNames& names)
      : reader_(reader), dag_(dag), names_(names) {}

  void parse() {
    reader_.expect("graph");
    reader_.expect("{");
    while (!reader_.failed() && !reader_.at("}")) node();
    reader_.expect("}");
    if (reader_.failed()) return;
    if (!names_.resolve(reader_)) return;
    for (Input& edge : dag_.edges) {
      if (edge.source.node.valid()) edge.source.node = names_.node(edge.source.node.value());
    }
    for (auto& [before, after] : dag_.temporal) before = names_.node(before.value());
    for (std::uint32_t& peer : peers_) peer = names_.node(peer).value();
    connect();
    for (std::size_t i = 0; i < dag_.nodes.size(); ++i) {
      Node& node = dag_.nodes[i];
      if (outputs_[i] == kNone) node.num_outputs = implied_outputs(dag_, node);
    }
    check_sources();
    check_names();
    order();
    gather_intervals();
  }

 private:
  struct Peers {
    std::uint32_t first = 0, count = 0;
    AxisMask axes = 0;
    LocId loc;
    bool any = false;
  };

  void node() {
    const TextReader::Token where = reader_.peek();
    const std::uint32_t name = names_.reference(reader_, "a node");
    if (reader_.failed()) return;
    const NodeId id = NodeId::at(dag_.nodes.size());
    if (!names_.define(name, id))
      return reader_.fail(Code::repeated_dag_name, where, "node `{}` was declared before",
                          where.text);
    where_.push_back(where);
    reader_.expect("=");
    Node node;
    head(node);
    node.first_input = static_cast<std::uint32_t>(dag_.edges.size());
    if (reader_.accept("(")) operands();
    node.num_inputs = static_cast<std::uint32_t>(dag_.edges.size()) - node.first_input;
    Peers peers = parse_peers(node, name);
    std::uint32_t outputs = kNone;
    if (reader_.accept("outputs"))
      outputs = static_cast<std::uint32_t>(reader_.integer("a number of outputs", 0, 1 << 20));
    node.num_outputs = outputs == kNone ? 0 : outputs;
    if (reader_.accept("on")) node.devices = dag_.device_sets.intern(reader_.device_set(dag_.mesh));
    if (node.subject.input().valid() && !reader_.failed())
      node.layout = reader_.layout(&dag_.mesh, dag_.input_types[node.subject.input().index()]);
    if (reader_.accept("stream"))
      node.stream = StreamId(names_.find(reader_, names_.streams, "a stream"));
    if (reader_.accept("group")) {
      dag_.group.resize(dag_.nodes.size(), Dag::kNoGroup);
      dag_.group.push_back(static_cast<std::uint32_t>(reader_.integer("a group", 0, kMax32)));
    }
    if (reader_.accept("after")) {
      do {
        dag_.temporal.emplace_back(NodeId(names_.reference(reader_, "a node")), id);
      } while (!reader_.failed() && reader_.accept(","));
    }
    node.loc = reader_.location(where);
    dag_.nodes.push_back(node);
    if (node.kind == NodeKind::load) dag_.note_load(node);
    if (!dag_.group.empty()) dag_.group.resize(dag_.nodes.size(), Dag::kNoGroup);
    peers_of_.push_back(peers);
    outputs_.push_back(outputs);
  }

  /// Kind, subject, instance and body.
  void head(Node& node) {
    const TextReader::Token where = reader_.peek();
    const std::string_view kind = reader_.name("a kind of node");
    if (reader_.failed()) return;
    if (const std::optional<Pass> pass = parse_pass(kind)) {
      node.pass = *pass;
      node.chunk = ChunkId(names_.find(reader_, names_.chunks, "a chunk"));
    } else {
      const std::optional<NodeKind> named = parse_kind(kind);
      if (!named || runs_body(*named))
        return reader_.fail(Code::unknown_dag_name, where,
                            "`{}` is neither a pass nor a kind of node", where.text);
      node.kind = *named;
      subject(node);
    }
    instance(node);
    if (reader_.accept("@")) body(node);
    if (runs_body(node.kind) && !node.body.valid()) reader_.expect("@");
  }

  /// The subject of a node that is no chunk: an input, a loss, a chunk whose values move, a bucket.
  void subject(Node& node) {
    const auto loss = [&] { return tensor::LossId(names_.find(reader_, names_.losses, "a loss")); };
    const auto may = [&](SubjectKind subject) { return may_speak_of(node.kind, subject); };
    if (may(SubjectKind::input)) {
      node.subject =
          Subject::of_input(tensor::InputId(names_.find(reader_, names_.inputs, "an input")));
    } else if (may(SubjectKind::loss) && reader_.accept("loss")) {
      node.subject = Subject::of_loss(loss());
    } else if (may(SubjectKind::count) && (!is_collective(node.kind) || reader_.accept("count"))) {
      node.subject = Subject::of_count(loss());
    } else if (may(SubjectKind::bucket) && reader_.accept("bucket")) {
      node.subject = Subject::of_bucket(BucketId(names_.find(reader_, names_.buckets, "a bucket")));
    } else if (may(SubjectKind::norm) && (is_collective(node.kind) || reader_.accept("norm"))) {
      node.subject = Subject::of_norm();
    } else if (may(SubjectKind::loss)) {
      reader_.expect("loss");
    } else if (may(SubjectKind::bucket) && !copies_to_or_from_host(node.kind)) {
      reader_.expect("bucket");
    }
    if (const std::optional<Pass> pass = parse_pass(reader_.peek().text);
        pass && reader_.peek().kind == TextReader::Kind::name) {
      reader_.next();
      node.pass = *pass;
      node.chunk = ChunkId(names_.find(reader_, names_.chunks, "a chunk"));
    }
  }

  void instance(Node& node) {
    if (!reader_.accept("[")) return;
    reader_.list("]", [&] {
      const TextReader::Token token = reader_.peek();
      const Symbol dim = reader_.symbol("a split dimension");
      std::size_t i = 0;
      while (i < dag_.dims.size() && dag_.dims[i].name != dim) ++i;
      if (i == dag_.dims.size())
        return reader_.fail(Code::unknown_dag_name, token,
                            "`{}` is not a split dimension of this text", token.text);
      reader_.expect(":");
      node.instance.at[i] = static_cast<std::int32_t>(
          reader_.integer("an index", 0, std::int64_t{dag_.dims[i].extent} - 1));
    });
  }

  void body(Node& node) {
    const TextReader::Token where = reader_.peek();
    const auto found = names_.bodies.find(where.text);
    if (found == names_.bodies.end())
      return reader_.fail(Code::unknown_dag_name, where, "`{}` is not a body of this text",
                          where.text);
    node.body = BodyId(found->second);
    reader_.next();
  }

  EdgeClass edge_class(EdgeClass otherwise) {
    if (reader_.accept("data")) return EdgeClass::data;
    if (reader_.accept("param")) return EdgeClass::param;
    if (reader_.accept("grad")) return EdgeClass::grad;
    return otherwise;
  }

  void operands() {
    std::uint32_t port = 0;
    reader_.list(")", [&] {
      if (reader_.peek().kind == TextReader::Kind::number) {
        port = static_cast<std::uint32_t>(reader_.integer("a port", port, 1 << 20));
        reader_.expect(":");
      }
      EdgeClass cls = edge_class(EdgeClass::data);
      const EdgeClass first = cls;
      do {
        Input edge;
        edge.port = port;
        edge.cls = cls;
        if (reader_.accept("_")) {
          reader_.expect(":");
          edge.source.index = static_cast<std::uint32_t>(reader_.integer("a position", 0, 1 << 20));
        } else {
          source_tokens_.resize(dag_.edges.size() + 1);
          source_tokens_[dag_.edges.size()] = reader_.peek().begin;
          edge.source.node = NodeId(names_.reference(reader_, "a node"));
          if (reader_.accept(":"))
            edge.source.index =
                static_cast<std::uint32_t>(reader_.integer("an output", 0, 1 << 20));
        }
        dag_.edges.push_back(edge);
        if (!reader_.accept("+")) break;
        cls = edge_class(first);
      } while (!reader_.failed());
      ++port;
    });
  }

  Peers parse_peers(const Node& node, std::uint32_t self) {
    Peers peers;
    peers.first = static_cast<std::uint32_t>(peers_.size());
    if (reader_.accept("to") || reader_.accept("from")) {
      const bool to = reader_.previous().text == "to";
      if ((!is_send(node.kind) || !to) && (!is_recv(node.kind) || to)) {
        reader_.fail(Code::malformed_dag_text, reader_.previous(),
                     "a send goes `to` a recv, a recv comes `from` a send");
      }
      const std::uint32_t other = names_.reference(reader_, "a node");
      peers_.push_back(to ? self : other);
      peers_.push_back(to ? other : self);
      peers.any = true;
    } else if (reader_.accept("over")) {
      if (!is_collective(node.kind)) {
        reader_.fail(Code::malformed_dag_text, reader_.previous(),
                     "only collectives are `over` axes");
      }
      if (reader_.accept("(")) {
        reader_.expect(")");
      } else {
        peers.axes = parse_axes(reader_, dag_.mesh);
      }
      if (reader_.accept("with")) {
        reader_.expect("(");
        reader_.list(")", [&] { peers_.push_back(names_.reference(reader_, "a node")); });
      } else {
        peers_.push_back(self);
      }
      peers.any = true;
    }
    peers.count = static_cast<std::uint32_t>(peers_.size()) - peers.first;
    if (peers.any && reader_.accept("at")) peers.loc = reader_.location();
    return peers;
  }

  /// Merges the statements of members about each other into one communication; members that
  /// disagree get separate ones, which no legal DAG has.
  void connect() {
    const auto list = [&](const Peers& peers) {
      return std::span<const std::uint32_t>(peers_).subspan(peers.first, peers.count);
    };
    const auto make = [&](std::size_t i) {
      Comm comm;
      for (const std::uint32_t member : list(peers_of_[i])) comm.members.emplace_back(member);
      comm.axes = peers_of_[i].axes;
      comm.loc = peers_of_[i].loc.valid() && !reader_.uses_own_places() ? peers_of_[i].loc
                                                                        : dag_.nodes[i].loc;
      dag_.nodes[i].comm = CommId::at(dag_.comms.size());
      dag_.comms.push_back(std::move(comm));
    };
    for (std::size_t i = 0; i < dag_.nodes.size(); ++i) {
      if (peers_of_[i].any && list(peers_of_[i]).size() > 0 && list(peers_of_[i])[0] == i) make(i);
    }
    for (std::size_t i = 0; i < dag_.nodes.size(); ++i) {
      if (!peers_of_[i].any || dag_.nodes[i].comm.valid()) continue;
      const std::span<const std::uint32_t> own = list(peers_of_[i]);
      if (!own.empty()) {
        const std::uint32_t first = own[0];
        const std::span<const std::uint32_t> other = list(peers_of_[first]);
        const bool pair = is_recv(dag_.nodes[i].kind) && is_send(dag_.nodes[first].kind);
        if (dag_.nodes[first].comm.valid() &&
            (pair || (dag_.nodes[first].kind == dag_.nodes[i].kind &&
                      peers_of_[first].axes == peers_of_[i].axes &&
                      std::equal(own.begin(), own.end(), other.begin(), other.end())))) {
          dag_.nodes[i].comm = dag_.nodes[first].comm;
          continue;
        }
      }
      make(i);
    }
  }

  /// A source is an output that exists.
  void check_sources() {
    for (std::size_t i = 0; i < dag_.edges.size(); ++i) {
      const Port source = dag_.edges[i].source;
      if (!source.node.valid() || source.index < dag_.nodes[source.node.index()].num_outputs)
        continue;
      const std::uint32_t begin = source_tokens_[i];
      const TextReader::Token& name = where_[source.node.index()];
      return reader_.fail(Code::unknown_dag_name,
                          {TextReader::Kind::name, begin,
                           begin + static_cast<std::uint32_t>(name.text.size()), name.text},
                          "node `{}` has no output `{}`: it has `{}`", name.text, source.index,
                          dag_.nodes[source.node.index()].num_outputs);
    }
  }

  /// Names must agree with the fields, so that a reader may trust them.
  void check_names() {
    for (std::size_t i = 0; i < dag_.nodes.size() && !reader_.failed(); ++i) {
      const std::string name = name_text(dag_.name(NodeId::at(i)));
      if (name != where_[i].text) {
        reader_.fail(Code::misnamed_dag_value, where_[i],
                     "the node called `{}` is `{}` by its fields", where_[i].text, name);
      }
    }
  }

  void order() {
    if (reader_.failed() || dag_.level < Level::ordered) return;
    if (!reader_.accept("order")) {
      for (std::size_t i = 0; i < dag_.nodes.size(); ++i) dag_.order.push_back(NodeId::at(i));
      return;
    }
    reader_.expect("{");
    while (!reader_.failed() && !reader_.at("}")) dag_.order.push_back(names_.known_node(reader_));
    reader_.expect("}");
  }

  void gather_intervals() {
    if (reader_.failed() || dag_.level != Level::ordered || !reader_.accept("gathers")) return;
    reader_.expect("{");
    while (!reader_.failed() && !reader_.at("}")) {
      Dag::GatherInterval gather;
      gather.whole = names_.known_node(reader_);
      reader_.expect("for");
      gather.uses = known_nodes();
      if (reader_.accept("after")) gather.after = known_nodes();
      gather.loc = reader_.location();
      dag_.gather_intervals.push_back(std::move(gather));
    }
    reader_.expect("}");
  }

  std::vector<NodeId> known_nodes() {
    std::vector<NodeId> nodes;
    do {
      nodes.push_back(names_.known_node(reader_));
    } while (!reader_.failed() && reader_.accept(","));
    return nodes;
  }

  TextReader& reader_;
  Dag& dag_;
  NodeNames& names_;
  std::vector<TextReader::Token> where_;      // the name of each node
  std::vector<std::uint32_t> source_tokens_;  // the place of each edge's source in the text
  std::vector<std::uint32_t> peers_;          // names, then nodes
  std::vector<Peers> peers_of_;
  std::vector<std::uint32_t> outputs_;
};

}  // namespace

void parse_nodes(TextReader& reader, Dag& dag, NodeNames& names) {
  NodesParser(reader, dag, names).parse();
}

}  // namespace piper::dag
