#include "passes/plan/workspaces.h"

#include <tuple>
#include <unordered_map>

#include "passes/build/localise.h"

namespace piper::passes {

using namespace dag;

namespace {

/// Computes a workspace once for all bodies that run the same code, for all norms, and for all
/// buckets of equal parameters.
class Workspaces {
 public:
  Workspaces(const Dag& dag, const WorkspaceBytes& ask)
      : dag_(dag), ask_(ask), of_body_(dag.bodies.size(), kUnknown) {}

  std::int64_t of(const Node& node) {
    switch (node.kind) {
      case NodeKind::chunk: {
        std::int64_t& bytes = of_body_[node.body.index()];
        if (bytes == kUnknown) bytes = of_equal_bodies(node);
        return bytes;
      }
      case NodeKind::norm:
        if (norm_ == kUnknown) norm_ = ask_(dag_, node);
        return norm_;
      case NodeKind::sum_squares:
      case NodeKind::update: {
        std::vector<tensor::Type> types;
        for (const tensor::ParamId param : dag_.buckets[node.subject.bucket().index()].params)
          types.push_back(dag_.param_types[param.index()]);
        const AxisMask flat = dag_.sharded_over(dag_.buckets[node.subject.bucket().index()]);
        for (const auto& [kind, cut, known, bytes] : buckets_) {
          if (kind == node.kind && cut == flat && known == types) return bytes;
        }
        return std::get<3>(
            buckets_.emplace_back(node.kind, flat, std::move(types), ask_(dag_, node)));
      }
      case NodeKind::load:
      case NodeKind::count:
      case NodeKind::accumulate:
      case NodeKind::report:
      case NodeKind::send:
      case NodeKind::recv:
      case NodeKind::offload:
      case NodeKind::fetch:
      case NodeKind::all_reduce:
      case NodeKind::reduce_scatter:
      case NodeKind::all_gather:
      case NodeKind::all_gather_v: return 0;
    }
    return 0;
  }

 private:
  static constexpr std::int64_t kUnknown = -1;

  std::int64_t of_equal_bodies(const Node& node) {
    const Body& body = dag_.bodies[node.body.index()];
    std::vector<BodyId>& equal = by_hash_[hash_body(body)];
    for (const BodyId other : equal) {
      if (same_body(dag_.bodies[other.index()], body)) return of_body_[other.index()];
    }
    equal.push_back(node.body);
    return ask_(dag_, node);
  }

  const Dag& dag_;
  const WorkspaceBytes& ask_;
  std::vector<std::int64_t> of_body_;
  std::unordered_map<std::size_t, std::vector<BodyId>> by_hash_;
  std::int64_t norm_ = kUnknown;
  // There are few kinds of buckets.
  std::vector<std::tuple<NodeKind, AxisMask, std::vector<tensor::Type>, std::int64_t>> buckets_;
};

}  // namespace

std::vector<std::int64_t> measure_workspaces(const Dag& dag, const WorkspaceBytes& workspace) {
  std::vector<std::int64_t> bytes(dag.nodes.size(), 0);
  if (!workspace) return bytes;
  Workspaces known(dag, workspace);
  NodePolls polls(dag.context->cancellation);
  for (std::size_t i = 0; i < dag.nodes.size(); ++i) {
    polls.visit();
    bytes[i] = known.of(dag.nodes[i]);
  }
  return bytes;
}

}  // namespace piper::passes
