#include "passes/plan.h"

#include <atomic>

#include "ir/parallel.h"
#include "passes/plan_role.h"
#include "passes/requirements.h"

namespace piper::passes {

using namespace dag;

bool plan(Dag& dag, Ordered ordered, Sizes sizes, DiagnosticSink& sink) {
  const RoleTable& roles = ordered.roles;
  const RoleNodes& nodes = ordered.nodes;
  const PlanFacts facts{dag, ordered.communicators, std::move(sizes), bucket_layouts(dag), param_places(dag), std::move(ordered.issued_after)};
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
  made->communicators = std::move(ordered.communicators.list);
  dag.plan = std::move(made);
  dag.level = Level::planned;
  return check_requirements(dag, sink);
}

}  // namespace piper::passes
