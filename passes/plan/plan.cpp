#include "passes/plan/plan.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <optional>

#include "ir/parallel.h"
#include "passes/order/communicators.h"
#include "passes/order/roles.h"
#include "passes/order/work_graph.h"
#include "passes/plan/plan_role.h"
#include "passes/plan/requirements.h"
#include "passes/plan/workspaces.h"

namespace piper::passes {

using namespace dag;

namespace {

/// The place of every node in the global order.
std::vector<std::uint32_t> places(const Dag& dag) {
  std::vector<std::uint32_t> place(dag.nodes.size());
  for (std::uint32_t i = 0; i < dag.order.size(); ++i) place[dag.order[i].index()] = i;
  return place;
}

/// Numbers units by the global order, but messages by their producer, or by the place where an
/// order names them: the global order may delay a message of one communicator for those of another,
/// and messages were divided among communicators by their producers.
std::vector<std::uint32_t> positions(const Dag& dag, const WorkGraph& graph,
                                     std::span<const std::uint32_t> place) {
  std::vector<std::uint64_t> key(graph.units());  // place of the producer, then its own
  for (std::uint32_t unit = 0; unit < graph.units(); ++unit) {
    const Node& node = dag.node(graph.front(unit));
    const std::uint32_t own = place[graph.front(unit).index()];
    std::uint32_t made = own;
    if (is_send(node.kind)) {
      made = 0;
      for (const Input& input : dag.inputs_of(node))
        made = std::max(made, place[input.source.node.index()]);
    }
    key[unit] = std::uint64_t{made} << 32 | own;
  }
  for (const auto& [before, after] : dag.temporal) {
    if (!is_message(dag.node(after).kind)) continue;
    std::uint64_t& of_unit = key[graph.unit_of(after)];
    of_unit =
        std::max(of_unit, std::uint64_t{place[before.index()]} << 32 | (of_unit & 0xFFFFFFFFu));
  }
  std::vector<std::uint32_t> sorted(graph.units()), position(graph.units());
  std::iota(sorted.begin(), sorted.end(), 0u);
  std::sort(sorted.begin(), sorted.end(),
            [&](std::uint32_t a, std::uint32_t b) { return key[a] < key[b]; });
  for (std::uint32_t i = 0; i < sorted.size(); ++i) position[sorted[i]] = i;
  return position;
}

/// The communicators that the order pass formed to name streams.
Communicators communicators_of(const Dag& dag) {
  const WorkGraph graph(dag);
  const std::vector<std::uint32_t> place = places(dag);
  std::vector<StreamId> stream_of(dag.comms.size());
  for (std::size_t i = 0; i < dag.comms.size(); ++i)
    stream_of[i] = dag.node(dag.comms[i].members.front()).stream;
  Communicators made =
      form_communicators(dag, graph, Routes(dag), stream_of, positions(dag, graph, place));
  number_collectives(dag, place, made);
  return made;
}

/// Sorted: a communication that an order names, the chunk of the order step before it.
std::vector<std::pair<NodeId, NodeId>> issued_after(const Dag& dag) {
  std::vector<std::pair<NodeId, NodeId>> pairs;
  for (const auto& [before, after] : dag.temporal) {
    if (is_communication(dag.node(after).kind)) pairs.emplace_back(after, before);
  }
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

}  // namespace

void plan(Dag& dag, const WorkspaceBytes& workspace) {
  const RoleTable roles(dag, {});
  RoleNodes nodes(dag, roles);
  Communicators communicators;
  std::optional<Residences> residences;
  std::vector<std::int64_t> workspaces;
  const auto measure = [&] {
    nodes.put(dag.order, roles);
    residences.emplace(dag);
    workspaces = measure_workspaces(dag, workspace);
  };
  run_both(dag.nodes.size(), [&] { communicators = communicators_of(dag); }, measure);
  const SharedFacts facts{dag, communicators, std::move(*residences), std::move(workspaces),
                          issued_after(dag)};
  std::vector<std::vector<BucketId>> buckets(roles.size());
  for (std::size_t b = 0; b < dag.buckets.size(); ++b) {
    for (const DeviceSetId owner : dag.buckets[b].owners) {
      for (const std::uint32_t role : roles.roles_of(owner))
        buckets[role].push_back(BucketId::at(b));
    }
  }

  auto made = std::make_unique<Plan>();
  made->roles.resize(roles.size());
  std::atomic<std::size_t> next_role = 0;
  run_workers(workers_for(roles.size(), nodes.size()), [&] {
    RolePlanner planner(facts);
    for (std::size_t role; (role = next_role++) < roles.size();) {
      dag.context->poll();
      made->roles[role] = planner.plan(nodes.of(role), buckets[role]);
      made->roles[role].name = roles.name(role);
      made->roles[role].at = roles.at(role);
    }
  });
  made->communicators = std::move(communicators.list);
  dag.plan = std::move(made);
  dag.level = Level::planned;
}

}  // namespace piper::passes
