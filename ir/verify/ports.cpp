#include <algorithm>
#include <map>

#include "ir/verify/facts.h"

namespace piper::verify {

namespace {

/// Checks the kinds of ports against their edges: a `saved` value stays in a chunk, or arrives once
/// for several of its passes.
class Ports {
 public:
  explicit Ports(Facts& facts)
      : facts_(facts),
        dag_(facts.dag),
        differ_(std::any_of(dag_.chunks.begin(), dag_.chunks.end(), [](const dag::Chunk& chunk) {
          return chunk.recomputed_forward.valid();
        })) {}

  void check() {
    for (std::size_t i = 0; i < dag_.nodes.size(); ++i) {
      if (is_first(dag_.nodes[i])) note_reads(dag_.nodes[i]);
    }
    for (std::size_t i = 0; i < dag_.nodes.size() && !facts_.enough(); ++i) {
      if (!is_first(dag_.nodes[i])) continue;
      inputs(NodeId::at(i));
      outputs(NodeId::at(i));
    }
  }

 private:
  /// The first instance of a chunk: all of them have its bodies, and their edges differ only in
  /// samples. If some have an `R`, all are checked.
  bool is_first(const Node& node) const {
    if (differ_ && runs_body(node.kind)) return true;
    return runs_body(node.kind) && std::all_of(node.instance.at.begin(), node.instance.at.end(),
                                               [](std::int32_t at) { return at <= 0; });
  }
  const dag::Body& body_of(const Node& node) const { return dag_.bodies[node.body.index()]; }

  /// Calls `visit` with the port and the output that its value comes from, for ports of values.
  template <typename Visit>
  void for_each_value(const Node& node, Visit visit) const {
    for (const Input& input : dag_.inputs_of(node)) {
      const dag::BodyPort& port = body_of(node).inputs[input.port];
      if (input.source.node.valid() &&
          (port.kind == PortKind::data || port.kind == PortKind::saved))
        visit(input.port, port, facts_.origin_of(input.source));
    }
  }

  void note_reads(const Node& node) {
    for_each_value(node, [&](std::uint32_t, const dag::BodyPort&, Port origin) {
      const auto [pass, fresh] =
          earliest_.try_emplace({facts_.output(origin), node.chunk}, node.pass);
      if (!fresh) pass->second = std::min(pass->second, node.pass);
    });
  }

  void inputs(NodeId id) {
    const Node& node = facts_.node(id);
    for_each_value(node, [&](std::uint32_t number, const dag::BodyPort& port, Port origin) {
      const Node& maker = facts_.node(origin.node);
      const bool own = runs_body(maker.kind) && maker.chunk == node.chunk;
      const bool kept = !port.input.valid() &&
                        (own || earliest_.at({facts_.output(origin), node.chunk}) < node.pass);
      if (kept == (port.kind == PortKind::saved)) return;
      facts_.sink.report(
          Code::wrong_edge, node.loc,
          "input `{}` of `{}` is a `{}` port, and {} of its chunk made or received the value",
          number, facts_.name(id), dag::port_kind_name(port.kind),
          kept ? "an earlier pass" : "no earlier pass");
    });
  }

  /// A `data` output may have readers only in its own chunk, because reads of the model's value by
  /// other chunks may have been removed.
  void outputs(NodeId id) {
    const Node& node = facts_.node(id);
    const std::vector<dag::BodyPort>& ports = body_of(node).outputs;
    for (std::uint32_t k = 0; k < ports.size(); ++k) {
      if (ports[k].kind != PortKind::saved) continue;
      const std::uint32_t output = facts_.output({id, k});
      bool elsewhere = false;
      for (auto read = earliest_.lower_bound({output, dag::ChunkId(0)});
           read != earliest_.end() && read->first.first == output; ++read) {
        elsewhere = elsewhere || read->first.second != node.chunk;
      }
      if (!elsewhere) continue;
      facts_.sink.report(Code::wrong_edge, node.loc,
                         "output `{}` of `{}` is a `saved` port, and another chunk reads it", k,
                         facts_.name(id));
    }
  }

  Facts& facts_;
  const Dag& dag_;
  const bool differ_;                                                // instances of one chunk
  std::map<std::pair<std::uint32_t, dag::ChunkId>, Pass> earliest_;  // by output and reading chunk
};

}  // namespace

void check_ports(Facts& facts) { Ports(facts).check(); }

}  // namespace piper::verify
