#include "passes/plan.h"

#include <algorithm>
#include <atomic>
#include <tuple>
#include <unordered_map>

#include "ir/parallel.h"
#include "passes/localise.h"
#include "passes/plan_role.h"
#include "passes/requirements.h"

namespace piper::passes {

using namespace dag;

namespace {

/// Sizes of all outputs that are values of the step.
void measure_ports(const Dag& dag, PlanFacts& facts) {
  std::vector<std::vector<std::int64_t>> body_bytes(dag.bodies.size());
  for (std::size_t b = 0; b < dag.bodies.size(); ++b) {
    for (const BodyPort& port : dag.bodies[b].outputs) {
      body_bytes[b].push_back(port.kind == PortKind::grad ? 0 : dag.bodies[b].graph.type(port.value).bytes());
    }
  }
  facts.first_port.reserve(dag.nodes.size() + 1);
  facts.first_port.push_back(0);
  facts.port_bytes.reserve(dag.edges.size());
  const auto measure = [&](NodeId id, std::uint32_t output) { facts.port_bytes.push_back(dag.output_type({id, output}).bytes()); };
  for (std::size_t i = 0; i < dag.nodes.size(); ++i) {
    const Node& node = dag.nodes[i];
    if (node.kind == NodeKind::chunk) {
      const std::vector<std::int64_t>& bytes = body_bytes[node.body.index()];
      facts.port_bytes.insert(facts.port_bytes.end(), bytes.begin(), bytes.end());
    } else if (node.kind == NodeKind::update || (node.kind == NodeKind::all_reduce && node.bucket.valid())) {
      facts.port_bytes.resize(facts.port_bytes.size() + node.num_outputs, 0);  // state
    } else if (node.kind == NodeKind::recv) {
      for (const Input& input : dag.inputs_of(dag.node(dag.comms[node.comm.index()].members.front()))) {
        const std::uint32_t source = input.source.node.value();
        if (source < i && dag.nodes[source].kind == NodeKind::chunk) {
          facts.port_bytes.push_back(facts.port_bytes[facts.first_port[source] + input.source.index]);
        } else {
          measure(input.source.node, input.source.index);
        }
      }
    } else {
      for (std::uint32_t port = 0; port < node.num_outputs; ++port) measure(NodeId::at(i), port);
    }
    facts.first_port.push_back(static_cast<std::uint32_t>(facts.port_bytes.size()));
  }
}

/// Asks once for all bodies that run the same code, for all norms, and for all buckets of equal parameters.
class Workspaces {
 public:
  Workspaces(const Dag& dag, const WorkspaceBytes& ask) : dag_(dag), ask_(ask), of_body_(dag.bodies.size(), kUnknown) {}

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
        for (const tensor::ParamId param : dag_.buckets[node.bucket.index()].params) types.push_back(dag_.param_types[param.index()]);
        for (const auto& [kind, known, bytes] : buckets_) {
          if (kind == node.kind && known == types) return bytes;
        }
        return std::get<2>(buckets_.emplace_back(node.kind, std::move(types), ask_(dag_, node)));
      }
      default: return 0;
    }
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
  std::vector<std::tuple<NodeKind, std::vector<tensor::Type>, std::int64_t>> buckets_;  // few kinds of buckets differ
};

std::vector<std::int64_t> workspace_of_nodes(const Dag& dag, const WorkspaceBytes& workspace) {
  std::vector<std::int64_t> bytes(dag.nodes.size(), 0);
  if (!workspace) return bytes;
  Workspaces known(dag, workspace);
  for (std::size_t i = 0; i < dag.nodes.size(); ++i) bytes[i] = known.of(dag.nodes[i]);
  return bytes;
}

/// The nodes of each role in the global order.
struct NodesByRole {
  std::vector<std::uint32_t> first;  // per role, one more
  std::vector<NodeId> nodes;
  std::span<const NodeId> of(std::size_t role) const { return std::span(nodes).subspan(first[role], first[role + 1] - first[role]); }
};

/// Fills also `facts.issued_after`.
NodesByRole nodes_by_role(const Dag& dag, const RoleTable& roles, PlanFacts& facts) {
  NodesByRole made;
  made.first.assign(roles.size() + 1, 0);
  // Beside each other: nodes are large, and the order visits them everywhere.
  std::vector<DeviceSetId> devices;
  std::vector<bool> communicates;
  devices.reserve(dag.nodes.size());
  communicates.reserve(dag.nodes.size());
  for (const Node& node : dag.nodes) {
    devices.push_back(node.devices);
    communicates.push_back(node.comm.valid());
    for (const std::uint32_t role : roles.roles_of(node.devices)) ++made.first[role + 1];
  }
  for (std::size_t i = 1; i < made.first.size(); ++i) made.first[i] += made.first[i - 1];
  made.nodes.resize(made.first.back());
  std::vector<std::uint32_t> next(made.first.begin(), made.first.end() - 1);
  for (const NodeId node : dag.order) {
    for (const std::uint32_t role : roles.roles_of(devices[node.index()])) made.nodes[next[role]++] = node;
  }
  for (const auto& [before, after] : dag.temporal) {
    if (communicates[after.index()]) facts.issued_after.emplace_back(after, before);
  }
  std::sort(facts.issued_after.begin(), facts.issued_after.end());
  return made;
}

}  // namespace

bool plan(Dag& dag, Ordered ordered, const WorkspaceBytes& workspace, DiagnosticSink& sink) {
  const RoleTable& roles = ordered.roles;
  PlanFacts facts{dag, ordered.communicators, bucket_layouts(dag), param_places(dag), {}, {}, {}, {}};
  NodesByRole nodes;
  const auto measure = [&] {
    facts.workspace = workspace_of_nodes(dag, workspace);
    measure_ports(dag, facts);
  };
  run_both(dag.nodes.size(), measure, [&] { nodes = nodes_by_role(dag, roles, facts); });
  std::vector<std::vector<BucketId>> buckets(roles.size());
  for (std::size_t b = 0; b < dag.buckets.size(); ++b) {
    for (const DeviceSetId home : dag.buckets[b].homes) {
      for (const std::uint32_t role : roles.roles_of(home)) buckets[role].push_back(BucketId::at(b));
    }
  }

  auto made = std::make_unique<Plan>();
  made->roles.resize(roles.size());
  std::atomic<std::size_t> next_role = 0;
  run_workers(workers_for(roles.size(), nodes.nodes.size()), [&] {
    RolePlanner planner(facts);
    for (std::size_t role; (role = next_role++) < roles.size();) {
      made->roles[role] = planner.plan(nodes.of(role), buckets[role]);
      made->roles[role].name = roles.name(role);
      made->roles[role].at = roles.at(role);
    }
  });
  made->communicators = std::move(ordered.communicators.list);
  dag.plan = std::move(made);
  dag.level = Level::planned;
  return check_requirements(dag, sink);
}

}  // namespace piper::passes
