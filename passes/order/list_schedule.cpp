#include "passes/order/list_schedule.h"

#include <algorithm>
#include <cmath>
#include <queue>

#include "ir/dag/local_type.h"

namespace piper::passes {

using namespace dag;

std::int64_t unit_cost(const Node& node) {
  if (!runs_body(node.kind)) return 0;
  return node.pass == Pass::B ? 2 : 1;
}

std::vector<tensor::Cost> body_work(const Dag& dag) {
  std::vector<tensor::Cost> work;
  work.reserve(dag.bodies.size());
  std::vector<tensor::Type> operands, results;
  for (const Body& body : dag.bodies) {
    tensor::Cost& total = work.emplace_back();
    for (const tensor::Node& op : body.graph.nodes()) {
      operands.clear();
      results.clear();
      const auto type_of = [&](tensor::ValueId value) {
        return largest_part(dag, body.graph.type(value), body.graph.value(value).layout);
      };
      for (const tensor::ValueId value : body.graph.operands(op))
        operands.push_back(type_of(value));
      for (std::uint32_t i = 0; i < op.num_results; ++i)
        results.push_back(type_of(body.graph.result(op, i)));
      const tensor::Cost cost = tensor::cost(op.op, operands, results, op.attrs);
      total.flops += cost.flops;
      total.bytes += cost.bytes;
    }
  }
  return work;
}

std::vector<std::int64_t> body_costs(const Dag& dag) {
  std::vector<std::int64_t> costs;
  for (const tensor::Cost& work : body_work(dag))
    costs.push_back(std::max<std::int64_t>(1, std::llround(work.flops + 4 * work.bytes)));
  return costs;
}

std::vector<Priority> default_priorities(const Dag& dag, const WorkGraph& graph,
                                         std::span<const std::uint32_t> topological) {
  // Depth of a chunk: how many chunks the longest forward chain to it has.
  std::vector<std::uint32_t> level(graph.units(), 0);
  std::vector<std::uint32_t> depth(dag.chunks.size(), 0);
  for (const std::uint32_t unit : topological) {
    const Node& node = dag.node(graph.front(unit));
    if (node.pass != Pass::F) continue;
    if (runs_body(node.kind)) {
      ++level[unit];
      depth[node.chunk.index()] = std::max(depth[node.chunk.index()], level[unit]);
    }
    for (const std::uint32_t to : graph.successors(unit))
      level[to] = std::max(level[to], level[unit]);
  }
  std::vector<Priority> priorities(graph.units());
  for (std::size_t i = 0; i < topological.size(); ++i) {
    const std::uint32_t unit = topological[i];
    const Node& node = dag.node(graph.front(unit));
    if (!runs_body(node.kind)) continue;
    // The last dimension is the fastest over the samples: first all copies' microbatch 0, then all
    // copies' microbatch 1.
    std::uint64_t microbatch = 0;
    for (std::size_t d = dag.dims.size(); d-- > 0;) {
      microbatch = microbatch * dag.dims[d].extent +
                   static_cast<std::uint64_t>(std::max(node.instance.at[d], 0));
    }
    const std::uint64_t pass = node.pass == Pass::F ? 2 : node.pass == Pass::BW ? 1 : 0;
    priorities[unit] = {
        pass << 60 | std::min<std::uint64_t>(microbatch, (std::uint64_t{1} << 60) - 1),
        std::uint64_t{0xFFFFFFFFu - depth[node.chunk.index()]} << 32 | i};
  }
  return priorities;
}

std::vector<std::int64_t> remaining_paths(const WorkGraph& graph, const Adjacency& more,
                                          std::span<const std::uint32_t> topological,
                                          std::span<const std::int64_t> cost) {
  std::vector<std::int64_t> path(graph.units(), 0);
  for (std::size_t i = topological.size(); i-- > 0;) {
    const std::uint32_t unit = topological[i];
    std::int64_t longest = 0;
    for (const std::uint32_t to : graph.successors(unit)) longest = std::max(longest, path[to]);
    for (const std::uint32_t to : more.of(unit)) longest = std::max(longest, path[to]);
    path[unit] = longest + cost[unit];
  }
  return path;
}

namespace {

class Simulation {
 public:
  Simulation(const Dag& dag, const WorkGraph& graph, const Adjacency& more, const RoleTable& roles,
             std::span<const std::int64_t> cost, std::span<const Priority> priority,
             const std::vector<bool>& attached)
      : dag_(dag),
        graph_(graph),
        more_(more),
        roles_(roles),
        cost_(cost.begin(), cost.end()),
        priority_(priority),
        attached_(attached),
        missing_(graph.indegree()),
        started_(graph.units(), false),
        busy_(roles.size(), false),
        ready_(roles.size()),
        dirty_(roles.size(), false) {
    for (std::uint32_t unit = 0; unit < graph.units(); ++unit) {
      for (const std::uint32_t to : more.of(unit)) ++missing_[to];
    }
    attach();
  }

  std::vector<NodeId> run() {
    for (std::uint32_t unit = 0; unit < graph_.units(); ++unit) {
      if (missing_[unit] == 0) released_.push_back(unit);
    }
    settle();
    start_all(0);
    while (!ends_.empty()) {
      const std::int64_t now = ends_.top().first;
      while (!ends_.empty() && ends_.top().first == now) {
        const std::uint32_t unit = ends_.top().second;
        ends_.pop();
        polls_.visit();
        for (const std::uint32_t role : roles_of(unit)) {
          busy_[role] = false;
          mark(role);
        }
        complete(unit);
      }
      settle();
      start_all(now);
    }
    return std::move(order_);
  }

 private:
  struct Later {
    bool operator()(const std::pair<Priority, std::uint32_t>& a,
                    const std::pair<Priority, std::uint32_t>& b) const {
      return a > b;
    }
  };
  using Ready = std::priority_queue<std::pair<Priority, std::uint32_t>,
                                    std::vector<std::pair<Priority, std::uint32_t>>, Later>;
  using End = std::pair<std::int64_t, std::uint32_t>;

  std::span<const std::uint32_t> roles_of(std::uint32_t unit) const {
    return roles_.roles_of(dag_.node(graph_.front(unit)).devices);
  }

  bool attached(std::uint32_t unit) const { return !attached_.empty() && attached_[unit]; }

  /// A backward with an attached unit takes the time of both.
  void attach() {
    if (attached_.empty()) return;
    before_.assign(graph_.units(), {});
    for (std::uint32_t unit = 0; unit < graph_.units(); ++unit) {
      if (!attached_[unit]) continue;
      const Node& again = dag_.node(graph_.front(unit));
      for (const std::uint32_t to : graph_.successors(unit)) {
        const Node& reader = dag_.node(graph_.front(to));
        if (!runs_body(reader.kind) || reader.chunk != again.chunk || reader.pass == Pass::BW ||
            before_[to].valid())
          continue;
        before_[to] = graph_.front(unit);
        cost_[to] += cost_[unit];
      }
    }
  }

  void mark(std::uint32_t role) {
    if (dirty_[role]) return;
    dirty_[role] = true;
    dirty_list_.push_back(role);
  }

  void complete(std::uint32_t unit) {
    for (const std::uint32_t to : graph_.successors(unit)) {
      if (--missing_[to] == 0) released_.push_back(to);
    }
    for (const std::uint32_t to : more_.of(unit)) {
      if (--missing_[to] == 0) released_.push_back(to);
    }
  }

  /// Chunks become ready; all other units take no time.
  void settle() {
    while (!released_.empty()) {
      const std::uint32_t unit = released_.back();
      released_.pop_back();
      if (!runs_body(dag_.node(graph_.front(unit)).kind) || attached(unit)) {
        complete(unit);
        continue;
      }
      for (const std::uint32_t role : roles_of(unit)) {
        ready_[role].emplace(priority_[unit], unit);
        mark(role);
      }
    }
  }

  void start_all(std::int64_t now) {
    std::sort(dirty_list_.begin(), dirty_list_.end());
    for (const std::uint32_t role : dirty_list_) {
      dirty_[role] = false;
      start(role, now);
    }
    dirty_list_.clear();
  }

  /// Starts the first ready chunk of a free device whose other devices are free too.
  void start(std::uint32_t role, std::int64_t now) {
    if (busy_[role]) return;
    std::vector<std::pair<Priority, std::uint32_t>> held;
    Ready& ready = ready_[role];
    while (!ready.empty()) {
      const std::pair<Priority, std::uint32_t> first = ready.top();
      ready.pop();
      if (started_[first.second]) continue;
      const auto devices = roles_of(first.second);
      if (std::any_of(devices.begin(), devices.end(),
                      [&](std::uint32_t other) { return busy_[other]; })) {
        held.push_back(first);
        continue;
      }
      started_[first.second] = true;
      for (const std::uint32_t other : devices) busy_[other] = true;
      if (!before_.empty() && before_[first.second].valid())
        order_.push_back(before_[first.second]);
      order_.push_back(graph_.front(first.second));
      ends_.emplace(now + cost_[first.second], first.second);
      break;
    }
    for (const auto& entry : held) ready.push(entry);
  }

  const Dag& dag_;
  const WorkGraph& graph_;
  const Adjacency& more_;
  const RoleTable& roles_;
  std::vector<std::int64_t> cost_;
  std::span<const Priority> priority_;
  const std::vector<bool>& attached_;
  std::vector<NodeId> before_;  // per unit: the attached one directly before it
  std::vector<std::uint32_t> missing_;
  std::vector<bool> started_;
  std::vector<bool> busy_;
  std::vector<Ready> ready_;
  std::vector<bool> dirty_;
  std::vector<std::uint32_t> dirty_list_;
  NodePolls polls_{dag_.context->cancellation};
  std::vector<std::uint32_t> released_;
  std::priority_queue<End, std::vector<End>, std::greater<End>> ends_;
  std::vector<NodeId> order_;
};

}  // namespace

std::vector<NodeId> list_schedule(const Dag& dag, const WorkGraph& graph, const Adjacency& more,
                                  const RoleTable& roles, std::span<const std::int64_t> cost,
                                  std::span<const Priority> priority,
                                  const std::vector<bool>& attached) {
  return Simulation(dag, graph, more, roles, cost, priority, attached).run();
}

}  // namespace piper::passes
