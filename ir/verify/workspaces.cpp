#include <optional>
#include <vector>

#include "ir/dag/text_names.h"
#include "ir/verify/verify.h"

namespace piper::verify {

namespace {

using dag::Node;
using dag::NodeKind;

/// The workspaces of nodes, requested once per body.
class Needs {
 public:
  Needs(const dag::Dag& dag, const dag::WorkspaceBytes& needed)
      : dag_(dag), needed_(needed), of_body_(dag.bodies.size()) {}

  /// None if it is unknown.
  std::optional<std::int64_t> of(const Node& node) {
    switch (node.kind) {
      case NodeKind::chunk: {
        if (dag_.bodies[node.body.index()].graph.nodes().empty()) return std::nullopt;
        std::optional<std::int64_t>& bytes = of_body_[node.body.index()];
        if (!bytes) bytes = needed_(dag_, node);
        return bytes;
      }
      case NodeKind::sum_squares:
      case NodeKind::norm:
      case NodeKind::update: return needed_(dag_, node);
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
  const dag::Dag& dag_;
  const dag::WorkspaceBytes& needed_;
  std::vector<std::optional<std::int64_t>> of_body_;
};

}  // namespace

bool verify_workspaces(const dag::Dag& dag, const dag::WorkspaceBytes& needed,
                       DiagnosticSink& sink) {
  if (dag.plan == nullptr) return true;
  const std::size_t errors = sink.error_count();
  Needs needs(dag, needed);
  for (const dag::Role& role : dag.plan->roles) {
    for (const dag::Action& action : role.actions) {
      if (sink.error_count() >= errors + 24) return false;
      const Node& node = dag.node(action.node);
      const std::optional<std::int64_t> wanted = needs.of(node);
      const std::uint32_t ports = input_ports(dag, node) + node.num_outputs;
      std::int64_t has = 0;
      if (action.num_operands > ports) {
        const dag::Operand& operand = role.operands[action.first_operand + ports];
        has = role.buffers[operand.buffer.index()].bytes - operand.offset;
      }
      if (!wanted || has == *wanted) continue;
      sink.report(Code::wrong_workspace, node.loc,
                  "`{}` has a workspace of `{}` bytes on role `{}`, and it needs `{}`",
                  dag.name(action.node), has, dag.context->text(role.name), *wanted);
    }
  }
  return sink.error_count() == errors;
}

}  // namespace piper::verify
