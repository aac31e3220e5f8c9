#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "ir/verify/facts.h"

namespace piper::verify {

namespace {

/// Checks `R` against its `F`: bodies once, edges node by node.
class Recompute {
 public:
  explicit Recompute(Facts& facts) : facts_(facts), dag_(facts.dag) {}

  void check() {
    for (const dag::Chunk& chunk : dag_.chunks) {
      if (facts_.enough()) return;
      bodies(chunk);
    }
    find_passes();
    if (forward_.empty()) return;
    for (std::size_t i = 0; i < dag_.nodes.size() && !facts_.enough(); ++i) {
      const Node& node = dag_.nodes[i];
      if (runs_body(facts_.kind[i]) && node.pass == Pass::R) inputs(NodeId::at(i));
    }
    outputs();
  }

 private:
  using Key = std::pair<dag::ChunkId, dag::Instance>;

  const dag::Body& body_of(const Node& node) const { return dag_.bodies[node.body.index()]; }
  const dag::Body& body(dag::BodyId id) const { return dag_.bodies[id.index()]; }

  template <typename... Args>
  void wrong(LocId loc, MessagePattern<std::type_identity_t<Args>...> pattern,
             const Args&... args) {
    facts_.sink.report(Code::wrong_recompute, loc, pattern, args...);
  }

  // ---- bodies

  void bodies(const dag::Chunk& chunk) {
    const dag::BodyId full = chunk.bodies[static_cast<std::size_t>(Pass::F)];
    // Other instances run the full forward in its place.
    if (chunk.recomputed_forward.valid() && full.valid() &&
        named_alike({full, chunk.recomputed_forward})) {
      Twins twins = of_ports(body(full));
      same_operations(chunk, body(full), body(chunk.recomputed_forward), twins);
    }
    if (!facts_.enough() && chunk.bodies[static_cast<std::size_t>(Pass::R)].valid()) again(chunk);
  }

  /// Ports of a shared body name the values of its first chunk.
  bool named_alike(std::initializer_list<dag::BodyId> bodies) const {
    const auto named = [](const dag::Chunk& chunk, dag::BodyId body) {
      return chunk.recomputed_forward == body ||
             std::find(chunk.bodies.begin(), chunk.bodies.end(), body) != chunk.bodies.end();
    };
    const auto first = [&](dag::BodyId body) {
      return std::find_if(dag_.chunks.begin(), dag_.chunks.end(),
                          [&](const dag::Chunk& chunk) { return named(chunk, body); });
    };
    return std::all_of(bodies.begin(), bodies.end(),
                       [&](dag::BodyId body) { return first(body) == first(*bodies.begin()); });
  }

  void again(const dag::Chunk& chunk) {
    const dag::Body& again = body(chunk.bodies[static_cast<std::size_t>(Pass::R)]);
    const dag::BodyId full = chunk.bodies[static_cast<std::size_t>(Pass::F)];
    const dag::BodyId runs = chunk.recomputed_forward.valid() ? chunk.recomputed_forward : full;
    for (const dag::BodyPort& port : again.outputs) {
      if (port.kind != PortKind::saved)
        return wrong(chunk.loc,
                     "`{}` makes `{}`, which is no `saved` value: an `R` serves its own backward",
                     facts_.text(again.name), facts_.text(again.graph.value(port.value).name));
    }
    if (!runs.valid()) return;  // a missing F is reported elsewhere
    const dag::Body& forward = body(runs);
    for (const dag::BodyPort& port : forward.outputs) {
      const bool twice =
          port.kind == PortKind::saved &&
          std::any_of(again.outputs.begin(), again.outputs.end(), [&](const dag::BodyPort& made) {
            return made.global_value == port.global_value;
          });
      if (twice)
        return wrong(chunk.loc, "`{}` keeps `{}`, which `{}` makes again",
                     facts_.text(forward.name), facts_.text(forward.graph.value(port.value).name),
                     facts_.text(again.name));
    }
    Twins twins = of_ports(forward);
    if (!all_read(chunk, again) || !same_operations(chunk, forward, again, twins) ||
        !full.valid() || full == runs ||
        !named_alike({full, runs, chunk.bodies[static_cast<std::size_t>(Pass::R)]}))
      return;
    // The full forward keeps the values that `R` makes. Values that only the lean one outputs are
    // matched by their operations.
    Twins of_full = of_ports(body(full)), of_recomputed = of_full;
    if (!same_operations(chunk, body(full), forward, of_recomputed)) return;
    for (const dag::BodyPort& port : forward.outputs) {
      if (const auto twin = of_recomputed.of_value.find(port.value);
          twin != of_recomputed.of_value.end())
        of_full.of_port.try_emplace(port.global_value, twin->second);
    }
    same_operations(chunk, body(full), again, of_full);
  }

  /// The values of a forward, by the model values of its ports and by the values of the body that
  /// is compared with it.
  struct Twins {
    std::map<tensor::ValueId, tensor::ValueId> of_port, of_value;
  };

  static Twins of_ports(const dag::Body& forward) {
    Twins twins;
    for (const auto* ports : {&forward.inputs, &forward.outputs}) {
      for (const dag::BodyPort& port : *ports) {
        if (port.global_value.valid())
          twins.of_port.emplace(port.global_value, origin(forward.graph, port.value));
      }
    }
    return twins;
  }

  /// Every operation of a body is one of the forward, on the same values, and common outputs are
  /// equal. Bodies with a signature only pass. False after a report.
  bool same_operations(const dag::Chunk& chunk, const dag::Body& forward, const dag::Body& other,
                       Twins& twins) {
    if (forward.graph.nodes().empty() || other.graph.nodes().empty()) return true;
    for (const dag::BodyPort& port : other.inputs) {
      const auto found = twins.of_port.find(port.global_value);
      if (found == twins.of_port.end()) {
        wrong(chunk.loc, "`{}` reads `{}`, which `{}` neither reads nor gives",
              facts_.text(other.name), facts_.text(other.graph.value(port.value).name),
              facts_.text(forward.name));
        return false;
      }
      twins.of_value.emplace(port.value, found->second);
    }
    const auto twin_of = [&](tensor::ValueId value) {
      const auto found = twins.of_value.find(value);
      return found == twins.of_value.end() ? tensor::ValueId() : found->second;
    };
    // Two equal operations of the forward on equal values count as one value.
    std::multimap<std::pair<tensor::Op, std::vector<tensor::ValueId>>, tensor::NodeId> known;
    std::vector<tensor::ValueId> first(forward.graph.values().size());
    const auto first_of = [&](tensor::ValueId value) {
      return first[value.index()].valid() ? first[value.index()] : value;
    };
    const auto find = [&](const tensor::Node& node, const std::vector<tensor::ValueId>& operands) {
      const auto [begin, end] = known.equal_range(std::pair(node.op, operands));
      const auto same = std::find_if(begin, end, [&](const auto& each) {
        const tensor::Node& other = forward.graph.node(each.second);
        return other.attrs == node.attrs && other.num_results == node.num_results;
      });
      return same == end ? nullptr : &forward.graph.node(same->second);
    };
    for (std::size_t n = 0; n < forward.graph.nodes().size(); ++n) {
      const tensor::Node& node = forward.graph.nodes()[n];
      if (is_copy(forward.graph, node)) {
        first[forward.graph.result(node).index()] = first_of(forward.graph.operands(node)[0]);
        continue;
      }
      std::vector<tensor::ValueId> operands;
      for (const tensor::ValueId operand : forward.graph.operands(node))
        operands.push_back(first_of(operand));
      const tensor::Node* same = find(node, operands);
      for (std::size_t r = 0; same != nullptr && r < node.num_results; ++r)
        first[forward.graph.result(node, r).index()] = forward.graph.result(*same, r);
      if (same == nullptr)
        known.emplace(std::pair(node.op, std::move(operands)), tensor::NodeId::at(n));
    }
    for (auto& [value, made] : twins.of_value) made = first_of(made);
    for (const tensor::Node& node : other.graph.nodes()) {
      if (is_copy(other.graph, node)) {
        twins.of_value.emplace(other.graph.result(node), twin_of(other.graph.operands(node)[0]));
        continue;
      }
      std::vector<tensor::ValueId> operands;
      for (const tensor::ValueId operand : other.graph.operands(node))
        operands.push_back(twin_of(operand));
      const tensor::Node* same = find(node, operands);
      if (same == nullptr) {
        wrong(chunk.loc, "`{}` computes `{}`, which `{}` does not", facts_.text(other.name),
              facts_.text(other.graph.value(other.graph.result(node)).name),
              facts_.text(forward.name));
        return false;
      }
      for (std::size_t r = 0; r < node.num_results; ++r)
        twins.of_value.emplace(other.graph.result(node, r), forward.graph.result(*same, r));
    }
    for (const dag::BodyPort& port : other.outputs) {
      const tensor::ValueId made = twin_of(port.value);
      const auto given = port.kind == PortKind::loss_sum ? loss_of(forward, port.loss)
                                                         : port_value(twins, port.global_value);
      if (!given || first_of(*given) == made) continue;
      wrong(chunk.loc, "`{}` gives `{}` for a port that has another value in `{}`",
            facts_.text(other.name), facts_.text(other.graph.value(port.value).name),
            facts_.text(forward.name));
      return false;
    }
    return true;
  }

  static std::optional<tensor::ValueId> port_value(const Twins& twins, tensor::ValueId carried) {
    const auto found = twins.of_port.find(carried);
    return found == twins.of_port.end() ? std::nullopt : std::optional(found->second);
  }
  static std::optional<tensor::ValueId> loss_of(const dag::Body& forward, tensor::LossId loss) {
    for (const dag::BodyPort& port : forward.outputs) {
      if (port.kind == PortKind::loss_sum && port.loss == loss)
        return origin(forward.graph, port.value);
    }
    return std::nullopt;
  }

  /// Every recomputed operation has a reader, because it takes time. False after a report.
  bool all_read(const dag::Chunk& chunk, const dag::Body& again) {
    std::vector<bool> read(again.graph.values().size());
    for (const dag::BodyPort& port : again.outputs) read[port.value.index()] = true;
    for (const tensor::Node& node : again.graph.nodes()) {
      for (const tensor::ValueId operand : again.graph.operands(node)) read[operand.index()] = true;
    }
    for (const tensor::Node& node : again.graph.nodes()) {
      bool any_read = false;
      for (std::size_t r = 0; r < node.num_results; ++r)
        any_read = any_read || read[again.graph.result(node, r).index()];
      if (any_read) continue;
      wrong(chunk.loc, "`{}` computes `{}` again, which nothing reads", facts_.text(again.name),
            facts_.text(again.graph.value(again.graph.result(node)).name));
      return false;
    }
    return true;
  }

  /// Another body may output an unchanged value as a copy.
  static bool is_copy(const tensor::Graph& graph, const tensor::Node& node) {
    return node.op == tensor::Op::broadcast &&
           graph.type(graph.result(node)) == graph.type(graph.operands(node)[0]);
  }
  static tensor::ValueId origin(const tensor::Graph& graph, tensor::ValueId value) {
    for (tensor::NodeId def = graph.value(value).def;
         def.valid() && is_copy(graph, graph.node(def)); def = graph.value(value).def)
      value = graph.operands(graph.node(def))[0];
    return value;
  }

  // ---- nodes

  void find_passes() {
    for (std::size_t i = 0; i < dag_.nodes.size(); ++i) {
      const Node& node = dag_.nodes[i];
      if (!runs_body(facts_.kind[i]) ||
          !dag_.chunks[node.chunk.index()].bodies[static_cast<std::size_t>(Pass::R)].valid())
        continue;
      if (node.pass == Pass::F) forward_[{node.chunk, node.instance}] = NodeId::at(i);
      if (node.pass == Pass::B || node.pass == Pass::BI)
        backward_[{node.chunk, node.instance}] = NodeId::at(i);
    }
  }

  /// `R` reads values that its forward read or made, and is on the devices of its backward.
  void inputs(NodeId id) {
    const Node& node = facts_.node(id);
    const auto forward = forward_.find({node.chunk, node.instance}),
               backward = backward_.find({node.chunk, node.instance});
    // Reported by the check of instances.
    if (forward == forward_.end() || backward == backward_.end()) return;
    if (dag_.level >= Level::placed && node.devices != facts_.node(backward->second).devices) {
      wrong(node.loc, "`{}` runs elsewhere than `{}`, which reads it", facts_.name(id),
            facts_.name(backward->second));
    }
    for (const Input& input : dag_.inputs_of(node)) {
      if (!input.source.node.valid()) continue;
      const Port origin = facts_.origin_of(input.source);
      const std::span<const Input> read = dag_.inputs_of(facts_.node(forward->second));
      const bool known =
          origin.node == forward->second ||
          std::any_of(read.begin(), read.end(), [&](const Input& each) {
            return each.source.node.valid() && same(facts_.origin_of(each.source), origin);
          });
      if (!known)
        wrong(node.loc, "`{}` reads `{}`, which `{}` neither reads nor makes", facts_.name(id),
              facts_.text(origin), facts_.name(forward->second));
    }
  }

  /// Whether two ports are the same value, or loads, copies or all-gathers of it on different
  /// device sets.
  bool same(Port a, Port b) const {
    if (a == b) return true;
    const Node &x = facts_.node(a.node), &y = facts_.node(b.node);
    return !runs_body(x.kind) && x.kind == y.kind && x.subject == y.subject &&
           (x.instance == y.instance || gathers_shards(x.kind)) && a.index == b.index;
  }

  /// All outputs of `R` are read, by backwards of its own instance.
  void outputs() {
    std::vector<bool> read(facts_.owner.size());
    for (std::size_t i = 0; i < dag_.nodes.size() && !facts_.enough(); ++i) {
      const Node& node = dag_.nodes[i];
      for (const Input& input : dag_.inputs_of(node)) {
        if (!input.source.node.valid()) continue;
        const Port origin = facts_.origin_of(input.source);
        const Node& maker = facts_.node(origin.node);
        if (!runs_body(maker.kind) || maker.pass != Pass::R) continue;
        read[facts_.output(origin)] = true;
        if (!runs_body(node.kind) || (is_backward(node.pass) && node.chunk == maker.chunk))
          continue;
        wrong(node.loc, "`{}` reads `{}`, which runs again for the backward of its own chunk alone",
              facts_.name(NodeId::at(i)), facts_.text(origin));
      }
    }
    for (std::size_t i = 0; i < dag_.nodes.size() && !facts_.enough(); ++i) {
      if (!runs_body(facts_.kind[i]) || dag_.nodes[i].pass != Pass::R) continue;
      for (std::uint32_t k = 0; k < dag_.nodes[i].num_outputs; ++k) {
        const Port port{NodeId::at(i), k};
        if (!read[facts_.output(port)])
          wrong(dag_.nodes[i].loc, "nothing reads `{}`, which `{}` makes again", facts_.text(port),
                facts_.name(port.node));
      }
    }
  }

  Facts& facts_;
  const Dag& dag_;
  std::map<Key, NodeId> forward_, backward_;  // of chunks that have an R
};

}  // namespace

void check_recompute(Facts& facts) { Recompute(facts).check(); }

}  // namespace piper::verify
