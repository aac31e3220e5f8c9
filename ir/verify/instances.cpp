#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "ir/verify/facts.h"

namespace piper::verify {

namespace {

using dag::EdgeClass;

/// The ports of a body that chunks share are named by the values of one of them. This checks the
/// others: all instances of a chunk read the same parameters, inputs and chunks and add to the same
/// gradients, and its passes use the same parameters and make gradients of all trained ones.
class Instances {
 public:
  explicit Instances(Facts& facts)
      : facts_(facts),
        dag_(facts.dag),
        first_(dag_.chunks.size()),
        user_(dag_.bodies.size(), kNone),
        grads_(dag_.bodies.size()) {
    for (auto& of_chunk : first_) of_chunk.fill(kNone);
    for (std::uint32_t c = 0; c < dag_.chunks.size(); ++c) {
      for (const dag::BodyId body : dag_.chunks[c].bodies) {
        if (body.valid() && user_[body.index()] == kNone) user_[body.index()] = c;
      }
      if (const dag::BodyId recomputed_forward = dag_.chunks[c].recomputed_forward;
          recomputed_forward.valid() && user_[recomputed_forward.index()] == kNone)
        user_[recomputed_forward.index()] = c;
    }
    for (std::size_t b = 0; b < dag_.bodies.size(); ++b) {
      for (std::uint32_t k = 0; k < dag_.bodies[b].outputs.size(); ++k) {
        if (dag_.bodies[b].outputs[k].kind == PortKind::grad) grads_[b].push_back(k);
      }
    }
  }

  void check() {
    if (std::find(facts_.shared_body.begin(), facts_.shared_body.end(), true) ==
        facts_.shared_body.end())
      return;
    std::vector<bool> shares(dag_.chunks.size());
    for (std::size_t c = 0; c < shares.size(); ++c) {
      shares[c] = std::any_of(
          dag_.chunks[c].bodies.begin(), dag_.chunks[c].bodies.end(),
          [&](dag::BodyId body) { return body.valid() && facts_.shared_body[body.index()]; });
    }
    for (std::uint32_t i = 0; i < dag_.nodes.size(); ++i) {
      if (!runs_body(facts_.kind[i])) continue;
      const Node& node = dag_.nodes[i];
      if (!shares[node.chunk.index()] && !facts_.shared_body[node.body.index()]) continue;
      std::uint32_t& first = first_[node.chunk.index()][static_cast<std::size_t>(node.pass)];
      if (first == kNone) {
        first = i;
      } else if (!like(NodeId(i), NodeId(first)) && facts_.enough()) {
        return;
      }
    }
    for (std::uint32_t c = 0; c < first_.size() && !facts_.enough(); ++c) {
      passes(c);
      if (facts_.ok()) gradients(c);
    }
  }

 private:
  const dag::Body& body_of(const Node& node) const { return dag_.bodies[node.body.index()]; }
  std::string_view param(std::uint32_t id) const { return facts_.text(dag_.params[id].name); }

  /// The instance has the inputs and gradients of the first one of its chunk and pass. False after
  /// a report.
  bool like(NodeId id, NodeId first) {
    const Node &node = facts_.node(id), &other = facts_.node(first);
    const std::span<const Input> inputs = dag_.inputs_of(node), others = dag_.inputs_of(other);
    // Reported by the checks of chunks and of edges.
    if (node.body != other.body || inputs.size() != others.size()) return true;
    for (std::size_t e = 0; e < inputs.size(); ++e) {
      if (alike(inputs[e], others[e])) continue;
      facts_.sink
          .report(
              Code::wrong_edge, node.loc,
              "input `{}` of `{}` is `{}`, and that of `{}` is `{}`: instances of a chunk differ in their samples alone",
              inputs[e].port, facts_.name(id), facts_.text(inputs[e].source), facts_.name(first),
              facts_.text(others[e].source))
          .related(other.loc, "`{}` is here", facts_.name(first));
      return false;
    }
    if (facts_.added_to.empty()) return true;
    for (const std::uint32_t k : grads_[node.body.index()]) {
      const std::uint32_t to = facts_.added_to[facts_.output({id, k})],
                          same = facts_.added_to[facts_.output({first, k})];
      if (to == same || to == kNone || same == kNone) continue;
      facts_.sink
          .report(
              Code::wrong_gradient, node.loc,
              "output `{}` of `{}` is added to the gradient of `{}`, and that of `{}` to the gradient of `{}`",
              k, facts_.name(id), param(to), facts_.name(first), param(same))
          .related(other.loc, "`{}` is here", facts_.name(first));
      return false;
    }
    return true;
  }

  /// Whether two edges bring the same value of two instances.
  bool alike(const Input& a, const Input& b) const {
    if (a.cls != b.cls || a.port != b.port || a.source.node.valid() != b.source.node.valid())
      return false;
    if (!a.source.node.valid()) return a.source.index == b.source.index;
    const Port x = facts_.origin_of(a.source), y = facts_.origin_of(b.source);
    const Node &p = facts_.node(x.node), &q = facts_.node(y.node);
    if (runs_body(p.kind) && runs_body(q.kind)) {
      // Some instances may have a B and others BI and BW, and some may have an R.
      return p.chunk == q.chunk &&
             (p.body == q.body ? x.index == y.index : is_backward(p.pass) == is_backward(q.pass));
    }
    return p.kind == q.kind && p.subject == q.subject && x.index == y.index;
  }

  std::uint32_t param_of(const Input& edge) const {
    const Node& update = facts_.node(edge.source.node);
    return dag_.buckets[update.subject.bucket().index()].params[edge.source.index].value();
  }

  /// A port name of a shared body refers to the same parameter in all passes of a chunk whose
  /// bodies are named by the same chunk.
  void passes(std::uint32_t chunk) {
    // (user, parameter there) -> (parameter, node that uses it so).
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<std::uint32_t, NodeId>> bound;
    const auto bind = [&](std::uint32_t called, const Node& node, NodeId id, std::uint32_t actual) {
      const auto [entry, fresh] = bound.try_emplace({user_[node.body.index()], called}, actual, id);
      if (fresh || entry->second.first == actual) return;
      facts_.sink
          .report(Code::wrong_edge, node.loc,
                  "`{}` works on parameter `{}` where `{}` works on `{}`", facts_.name(id),
                  param(actual), facts_.name(entry->second.second), param(entry->second.first))
          .related(facts_.loc(entry->second.second), "`{}` is here",
                   facts_.name(entry->second.second));
    };
    for (const std::uint32_t first : first_[chunk]) {
      if (first == kNone || facts_.enough()) continue;
      const NodeId id(first);
      const Node& node = facts_.node(id);
      for (const Input& edge : dag_.inputs_of(node)) {
        if (edge.source.node.valid() && body_of(node).inputs[edge.port].kind == PortKind::param)
          bind(body_of(node).inputs[edge.port].param.value(), node, id, param_of(edge));
      }
      for (const std::uint32_t k : grads_[node.body.index()]) {
        const std::uint32_t to =
            facts_.added_to.empty() ? kNone : facts_.added_to[facts_.output({id, k})];
        if (to != kNone) bind(body_of(node).outputs[k].param.value(), node, id, to);
      }
    }
  }

  /// The backward makes gradients of exactly the trained parameters that the forward reads,
  /// whatever the names of its ports are.
  void gradients(std::uint32_t chunk) {
    const auto first = [&](Pass pass) { return first_[chunk][static_cast<std::size_t>(pass)]; };
    if (first(Pass::F) == kNone || facts_.added_to.empty()) return;
    std::set<std::uint32_t> read;
    const Node& forward = facts_.node(NodeId(first(Pass::F)));
    for (const Input& edge : dag_.inputs_of(forward)) {
      if (!edge.source.node.valid() || body_of(forward).inputs[edge.port].kind != PortKind::param)
        continue;
      if (const std::uint32_t each = param_of(edge); !dag_.params[each].frozen) read.insert(each);
    }
    const auto compare = [&](std::initializer_list<std::uint32_t> backward) {
      std::set<std::uint32_t> made;
      for (const std::uint32_t id : backward) {
        if (id == kNone) continue;
        for (const std::uint32_t k : grads_[facts_.node(NodeId(id)).body.index()])
          made.insert(facts_.added_to[facts_.output({NodeId(id), k})]);
      }
      if (made == read) return;
      facts_.sink.report(
          Code::wrong_gradient, forward.loc,
          "`{}` reads other trained parameters than those whose gradients the backward of its chunk makes",
          facts_.name(NodeId(first(Pass::F))));
    };
    if (first(Pass::B) != kNone) compare({first(Pass::B)});
    if (first(Pass::BI) != kNone || first(Pass::BW) != kNone)
      compare({first(Pass::BI), first(Pass::BW)});
  }

  Facts& facts_;
  const Dag& dag_;
  // Per chunk and pass: its first node, where the chunk shares a body.
  std::vector<std::array<std::uint32_t, kPasses>> first_;
  std::vector<std::uint32_t> user_;                // per body: the first chunk that uses it
  std::vector<std::vector<std::uint32_t>> grads_;  // per body: its outputs that are gradients
};

}  // namespace

void check_instances(Facts& facts) { Instances(facts).check(); }

}  // namespace piper::verify
