#include "tests/passes/random_programs.h"

#include <algorithm>
#include <map>

#include "passes/work_graph.h"

namespace piper::test {

using dag::Level;
using dag::NodeId;
using dag::NodeKind;

namespace {

/// Chunk nodes in a random order that respects the data flow.
std::vector<NodeId> random_linearisation(const dag::Dag& dag, Random& random) {
  const passes::WorkGraph graph(dag);
  std::vector<std::uint32_t> missing = graph.indegree(), ready;
  for (std::uint32_t unit = 0; unit < graph.units(); ++unit) {
    if (missing[unit] == 0) ready.push_back(unit);
  }
  // Sometimes far from breadth first: the newest ready one is preferred.
  const double newest = random.unit();
  std::vector<NodeId> order;
  while (!ready.empty()) {
    const std::size_t at = random.chance(newest) ? ready.size() - 1 : random.below(ready.size());
    const std::uint32_t unit = ready[at];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(at));
    if (dag.node(graph.front(unit)).kind == NodeKind::chunk) order.push_back(graph.front(unit));
    for (const std::uint32_t to : graph.successors(unit)) {
      if (--missing[to] == 0) ready.push_back(to);
    }
  }
  return order;
}

}  // namespace

directive::Order RandomProgram::make_order(Context& context, const std::vector<std::pair<DeviceSetId, std::vector<Op>>>& ranks) {
  directive::Order order;
  const FileId file = context.locations.files().add_without_text("order.pipe");
  std::uint32_t line = 0;
  const auto next_line = [&] {
    ++line;
    SourceTable& files = context.locations.files();
    return context.locations.intern({file, files.offset(file, {line, 1}), files.offset(file, {line, 9})});
  };
  order.loc = next_line();
  for (const auto& [devices, ops] : ranks) {
    const LocId loc = next_line();
    std::vector<std::uint32_t> steps;
    const auto op_step = [&](const Op& op) {
      const LocId at = next_line();
      order.steps.push_back({directive::OrderStep::Kind::op, static_cast<std::uint32_t>(order.ops.size()), 0, 0, at});
      order.ops.push_back({op.pass, directive::Part::none, static_cast<std::uint32_t>(order.coordinates.size()), static_cast<std::uint32_t>(op.at.size()), at});
      for (const auto& [name, index] : op.at) order.coordinates.push_back({name, index, false});
      return static_cast<std::uint32_t>(order.steps.size() - 1);
    };
    for (std::size_t i = 0; i < ops.size();) {
      std::size_t next = i + 1;
      while (ops[i].group >= 0 && next < ops.size() && ops[next].group == ops[i].group) ++next;
      std::vector<std::uint32_t> members;
      for (std::size_t k = i; k < next; ++k) members.push_back(op_step(ops[k]));
      if (members.size() == 1) {
        steps.push_back(members[0]);
      } else {
        steps.push_back(static_cast<std::uint32_t>(order.steps.size()));
        order.steps.push_back({directive::OrderStep::Kind::group, 0, static_cast<std::uint32_t>(order.children.size()),
                               static_cast<std::uint32_t>(members.size()), next_line()});
        order.children.insert(order.children.end(), members.begin(), members.end());
      }
      i = next;
    }
    order.ranks.push_back({devices, static_cast<std::uint32_t>(order.children.size()), static_cast<std::uint32_t>(steps.size()), loc});
    order.children.insert(order.children.end(), steps.begin(), steps.end());
  }
  return order;
}

RandomProgram::RandomProgram(Random& random) : random_model_(random.next()), kind_(static_cast<int>(random.below(4))) {
  const std::uint32_t ranks = static_cast<std::uint32_t>(random.between(1, 4));
  const bool replicas = random.chance(0.4);
  std::vector<Index> mesh = {{"pp", ranks}};
  if (replicas) mesh.emplace_back("dp", 2u);
  build_ = std::make_unique<StrategyBuilder>(context, mesh);
  StrategyBuilder& build = *build_;

  const std::uint32_t stages = static_cast<std::uint32_t>(random.between(1, 3));
  const std::uint32_t microbatches = std::uint32_t{1} << random.below(3);
  const bool copies = random.chance(0.3);
  build.partition("stage", stages);
  if (copies) {
    build.split({{"copy", 2}, {"mb", microbatches}});
  } else {
    build.split({{"mb", microbatches}});
  }
  // Copies of one stage may share a rank or not; a stage's weights are then used on one or two device sets.
  for (std::uint32_t s = 0; s < stages; ++s) {
    for (std::uint32_t c = 0; c < (copies ? 2u : 1u); ++c) {
      std::vector<Index> what = {{"stage", s}};
      if (copies) what.emplace_back("copy", c);
      build.place(what, {{"pp", static_cast<std::uint32_t>(random.below(ranks))}});
    }
  }
  if (replicas) build.replicate({"dp"}, random.chance(0.5) ? std::optional<std::int64_t>(200) : std::nullopt);
  if (random.chance(0.5)) build.clip(1.0);
  strategy = build.strategy();
  if (random.chance(0.3)) return;  // the default order

  // Which backwards are split is known from an order that names every operation, in any sequence.
  const Symbol stage = context.symbol("stage"), copy = context.symbol("copy"), mb = context.symbol("mb");
  std::vector<Op> all;
  for (std::uint32_t s = 0; s < stages; ++s) {
    for (std::uint32_t i = 0; i < (copies ? 2 * microbatches : microbatches); ++i) {
      std::vector<std::pair<Symbol, std::uint32_t>> at = {{stage, s}};
      if (copies) at.emplace_back(copy, i / microbatches);
      at.emplace_back(mb, i % microbatches);
      const bool halves = random.chance(0.5);
      all.push_back({Pass::F, at});
      if (!halves) all.push_back({Pass::B, at});
      if (halves) all.push_back({Pass::BI, at});
      if (halves) all.push_back({Pass::BW, at});
    }
  }
  const DeviceSetId first = build.devices({{"pp", 0}});
  directive::Strategy provisional = build.strategy();
  provisional.directives.push_back(make_order(context, {{first, all}}));
  std::swap(strategy, provisional);
  const std::optional<dag::Dag> dag = compile(Level::communicating);
  if (!dag) return;

  std::map<DeviceSetId, std::vector<Op>> by_rank;
  std::map<DeviceSetId, std::vector<dag::Instance>> instances;
  for (const NodeId id : random_linearisation(*dag, random)) {
    const dag::Node& node = dag->node(id);
    const dag::Chunk& chunk = dag->chunks[node.chunk.index()];
    Op op{node.pass, {}};
    if (const auto s = dag->regions.coordinate(chunk.region, stage)) op.at.emplace_back(stage, *s);
    for (std::size_t d = 0; d < dag->dims.size(); ++d) op.at.emplace_back(dag->dims[d].name, static_cast<std::uint32_t>(node.instance.at[d]));
    std::vector<Op>& ops = by_rank[node.devices];
    // An operation names all pieces of its stage.
    const auto same = [&](const Op& other) { return other.pass == op.pass && other.at == op.at; };
    if (std::any_of(ops.begin(), ops.end(), same)) continue;
    std::vector<dag::Instance>& seen = instances[node.devices];
    if (!ops.empty() && seen.back() != node.instance && random.chance(0.2)) {
      // A group's members are of different instances.
      std::size_t begin = ops.size() - 1;
      while (begin > 0 && ops[begin].group >= 0 && ops[begin - 1].group == ops[begin].group) --begin;
      if (std::find(seen.begin() + static_cast<std::ptrdiff_t>(begin), seen.end(), node.instance) == seen.end()) {
        if (ops.back().group < 0) ops.back().group = static_cast<int>(ops.size());
        op.group = ops.back().group;
      }
    }
    ops.push_back(op);
    seen.push_back(node.instance);
  }
  std::vector<std::pair<DeviceSetId, std::vector<Op>>> claimed;
  const bool some = random.chance(0.2);
  for (const auto& [devices, ops] : by_rank) {
    const bool splits = std::any_of(ops.begin(), ops.end(), [](const Op& op) { return op.pass == Pass::BI; });
    if (some && !splits && random.chance(0.5)) continue;  // left to the default; `BI` must be named somewhere
    claimed.emplace_back(devices, ops);
  }
  strategy = build.strategy();
  if (!claimed.empty()) strategy.directives.push_back(make_order(context, claimed));
}

tensor::Graph RandomProgram::model() const {
  auto& mutable_context = const_cast<Context&>(context);
  switch (kind_) {
    case 0: return mlp_chain(mutable_context, {.layers = 4, .batch = 32, .dim = 2, .hidden = 3});
    case 1: return two_towers(mutable_context, {.layers = 2, .batch = 32, .dim = 3, .out = 2, .tied = true});
    case 2: return small_gpt(mutable_context, {.layers = 2, .batch = 32, .seq = 2, .dim = 4, .heads = 2, .vocab = 5, .auxiliary_loss = true});
    default: return two_towers(mutable_context, {.layers = 2, .batch = 32, .dim = 3, .out = 2});
  }
}

std::optional<dag::Dag> RandomProgram::compile(Level level, bool forward_only) {
  tensor::Graph graph = model();
  passes::Options options;
  options.stop_at = level;
  options.forward_only = forward_only;
  options.workspace_bytes = [](const dag::Dag& dag, const dag::Node& node) {
    return node.kind == dag::NodeKind::chunk ? static_cast<std::int64_t>(dag.bodies[node.body.index()].graph.nodes().size() % 3) * 100 : std::int64_t{64};
  };
  return passes::compile(graph, strategy, sink, options);
}

}  // namespace piper::test
