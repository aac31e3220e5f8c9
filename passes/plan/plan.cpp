#include "passes/plan/plan.h"

#include <algorithm>
#include <atomic>

#include "ir/parallel.h"
#include "passes/order/communicators.h"
#include "passes/order/roles.h"
#include "passes/order/work_graph.h"
#include "passes/plan/plan_role.h"
#include "passes/plan/requirements.h"
#include "passes/plan/sizes.h"

namespace piper::passes {

using namespace dag;

namespace {

/// Those that the order pass formed to name streams: the global order keeps the numbers of messages.
Communicators communicators_of(const Dag& dag) {
  const WorkGraph graph(dag);
  constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  std::vector<std::uint32_t> of_node(dag.nodes.size()), of_unit(graph.units(), kNone);
  std::uint32_t units = 0;
  for (std::uint32_t i = 0; i < dag.order.size(); ++i) {
    of_node[dag.order[i].index()] = i;
    if (std::uint32_t& place = of_unit[graph.unit_of(dag.order[i])]; place == kNone) place = units++;
  }
  std::vector<StreamId> stream_of(dag.comms.size());
  for (std::size_t i = 0; i < dag.comms.size(); ++i) stream_of[i] = dag.node(dag.comms[i].members.front()).stream;
  Communicators made = form_communicators(dag, graph, Routes(dag), stream_of, of_unit);
  number_collectives(dag, of_node, made);
  return made;
}

/// Sorted: a communication that an order names, the chunk of the step before it.
std::vector<std::pair<NodeId, NodeId>> issued_after(const Dag& dag) {
  std::vector<std::pair<NodeId, NodeId>> pairs;
  for (const auto& [before, after] : dag.temporal) {
    if (is_communication(dag.node(after).kind)) pairs.emplace_back(after, before);
  }
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

}  // namespace

bool plan(Dag& dag, const WorkspaceBytes& workspace, DiagnosticSink& sink) {
  const RoleTable roles(dag, {});
  RoleNodes nodes(dag, roles);
  Communicators communicators;
  Sizes sizes;
  const auto measure = [&] {
    nodes.put(dag.order, roles);
    sizes = measure_sizes(dag, workspace);
  };
  run_both(dag.nodes.size(), [&] { communicators = communicators_of(dag); }, measure);
  const PlanFacts facts{dag, communicators, std::move(sizes), bucket_layouts(dag), param_places(dag), issued_after(dag)};
  std::vector<std::vector<BucketId>> buckets(roles.size());
  for (std::size_t b = 0; b < dag.buckets.size(); ++b) {
    for (const DeviceSetId home : dag.buckets[b].homes) {
      for (const std::uint32_t role : roles.roles_of(home)) buckets[role].push_back(BucketId::at(b));
    }
  }

  auto made = std::make_unique<Plan>();
  made->roles.resize(roles.size());
  std::atomic<std::size_t> next_role = 0;
  run_workers(workers_for(roles.size(), nodes.size()), [&] {
    RolePlanner planner(facts);
    for (std::size_t role; (role = next_role++) < roles.size();) {
      made->roles[role] = planner.plan(nodes.of(role), buckets[role]);
      made->roles[role].name = roles.name(role);
      made->roles[role].at = roles.at(role);
    }
  });
  made->communicators = std::move(communicators.list);
  dag.plan = std::move(made);
  dag.level = Level::planned;
  return check_requirements(dag, sink);
}

}  // namespace piper::passes
