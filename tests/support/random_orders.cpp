#include "tests/support/random_orders.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <tuple>

#include "ir/dag/segment_text.h"
#include "ir/dag/terms.h"
#include "passes/order/work_graph.h"
#include "tests/support/compile.h"
#include "tests/support/order_text.h"

namespace piper::test {

namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFFu;

class OrderDrawer {
 public:
  OrderDrawer(Context& context, Random& random, const tensor::Graph& model,
              const directive::Strategy& strategy, const RandomOrderOptions& options)
      : context_(context), random_(random), model_(model), strategy_(strategy), options_(options) {}

  std::string draw(std::string_view axis) {
    const std::size_t at = strategy_.mesh.find(context_.symbol(axis));
    directive::Strategy strategy = strategy_;
    choose_claims(at);
    if (options_.halves && random_.chance(0.5)) {
      const std::optional<dag::Dag> whole = compile(strategy, dag::Level::placed);
      if (!whole) return "";
      name_halves(*whole, at, strategy);
    }
    const std::optional<dag::Dag> dag = compile(strategy, dag::Level::communicating);
    if (!dag) return "";
    // If an operation names everything on a rank, another rank may stand between two parts of it.
    const bool coarse = random_.chance(0.3);
    if (!(coarse && contract(*dag, at, true) && linearise()) &&
        !(contract(*dag, at, false) && linearise()))
      return "";
    return order_text();
  }

 private:
  std::optional<dag::Dag> compile(const directive::Strategy& strategy, dag::Level level) {
    DiagnosticSink sink(context_.locations);
    passes::Options options;
    options.stop_at = level;
    return test::compile(model_, strategy, sink, options);
  }

  /// Draws the axes that identify ranks, the axis of the work among them, and the claimed ranks.
  void choose_claims(std::size_t axis) {
    axes_.assign(1, axis);
    for (std::size_t other = 0; other < strategy_.mesh.axes.size(); ++other) {
      if (other != axis && random_.chance(0.4)) axes_.push_back(other);
    }
    random_.shuffle(axes_);
    claims_.assign(1, {});
    for (const std::size_t each : axes_) {
      std::vector<RankClaim> finer;
      for (const RankClaim& claim : claims_) {
        for (std::uint32_t i = 0; i < strategy_.mesh.axes[each].size; ++i) {
          finer.push_back(claim);
          finer.back().at.push_back(i);
        }
      }
      claims_ = std::move(finer);
    }
    if (claims_.size() > 1 && random_.chance(0.4)) {
      std::vector<std::size_t> order(claims_.size());
      for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
      random_.shuffle(order);
      const auto kept = static_cast<std::size_t>(
          random_.between(1, static_cast<std::int64_t>(claims_.size()) - 1));
      for (std::size_t i = kept; i < order.size(); ++i) claims_[order[i]].claimed = false;
    }
    work_ = static_cast<std::size_t>(std::find(axes_.begin(), axes_.end(), axis) - axes_.begin());
    claimed_.assign(strategy_.mesh.axes[axis].size, false);
    for (const RankClaim& claim : claims_) {
      if (claim.claimed) claimed_[claim.at[work_]] = true;
    }
  }

  /// A node's coordinate on the axis of the work; an axis of one device identifies none.
  static std::int32_t rank_of(const dag::Dag& dag, const dag::Node& node, std::size_t axis) {
    return dag.mesh.axes[axis].size == 1 ? 0 : dag.device_sets[node.devices].at[axis];
  }

  /// An order that names every `BW`, in any sequence, shows which backwards are split. No order
  /// names those of unclaimed ranks.
  void name_halves(const dag::Dag& dag, std::size_t axis, directive::Strategy& strategy) {
    directive::Order order;
    const LocId loc;
    std::set<std::pair<RegionId, dag::Instance>> decided;
    for (const dag::Node& node : dag.nodes) {
      if (!runs_body(node.kind) || node.pass != Pass::B) continue;
      const std::int32_t rank = rank_of(dag, node, axis);
      if (rank != DeviceSet::kWhole && !claimed_[static_cast<std::size_t>(rank)]) continue;
      const RegionId region = dag.chunks[node.chunk.index()].region;
      if (!decided.emplace(region, node.instance).second || random_.chance(0.5)) continue;
      directive::OrderOp op{Pass::BW, directive::CommClass::none,
                            static_cast<std::uint32_t>(order.coordinates.size()), 0, loc};
      if (region.valid())
        order.coordinates.push_back({dag.regions.name(region), dag.regions.index(region), false});
      if (!region.valid())
        order.coordinates.push_back({context_.symbol("model"), 0, true, loc, true});
      for (std::size_t d = 0; d < dag.dims.size(); ++d)
        order.coordinates.push_back(
            {dag.dims[d].name, static_cast<std::uint32_t>(node.instance.at[d]), false});
      op.num_coordinates =
          static_cast<std::uint32_t>(order.coordinates.size()) - op.first_coordinate;
      order.steps.push_back(
          {directive::OrderStep::Kind::op, static_cast<std::uint32_t>(order.ops.size()), 1, loc});
      order.children.push_back(static_cast<std::uint32_t>(order.steps.size() - 1));
      order.ops.push_back(op);
    }
    DeviceSet first{std::vector<std::int32_t>(strategy.mesh.axes.size(), DeviceSet::kWhole)};
    order.ranks.push_back({strategy.device_sets.intern(first), 0,
                           static_cast<std::uint32_t>(order.children.size()), loc});
    if (!order.ops.empty()) strategy.directives.push_back(std::move(order));
  }

  /// A vertex per operation and per other unit of the work graph. `coarsen`: some ranks name
  /// everything that is on them.
  bool contract(const dag::Dag& dag, std::size_t axis, bool coarsen) {
    const passes::WorkGraph graph(dag);
    operations_.clear();
    const bool any_halves = std::any_of(
        dag.nodes.begin(), dag.nodes.end(),
        [](const dag::Node& node) { return runs_body(node.kind) && node.pass == Pass::BW; });
    std::map<std::int32_t, bool> coarse;
    for (const dag::Node& node : dag.nodes) {
      if (!runs_body(node.kind)) continue;
      const std::int32_t rank = rank_of(dag, node, axis);
      const auto [found, added] = coarse.try_emplace(rank, false);
      if (added && coarsen && !any_halves) found->second = random_.chance(0.5);
    }
    const dag::SegmentTexts texts(dag);
    std::set<std::pair<dag::ChunkId, dag::Instance>> halves;
    for (const dag::Node& node : dag.nodes) {
      if (runs_body(node.kind) && node.pass == Pass::BI) halves.emplace(node.chunk, node.instance);
    }
    // Else recomputation runs directly before its backward.
    const bool again_named = random_.chance(0.5);
    std::map<std::tuple<std::int32_t, Pass, dag::ChunkId, dag::Instance>, std::uint32_t> vertices;
    std::vector<std::uint32_t> vertex_of(graph.units());
    std::set<std::uint32_t> again;
    std::uint32_t count = 0;
    for (std::uint32_t unit = 0; unit < graph.units(); ++unit) {
      const dag::Node& node = dag.node(graph.front(unit));
      if (!runs_body(node.kind)) {
        vertex_of[unit] = count++;
        continue;
      }
      const std::int32_t rank = rank_of(dag, node, axis);
      if (rank == DeviceSet::kWhole) return false;
      const dag::ChunkId chunk = coarse[rank] ? dag::ChunkId() : node.chunk;
      const bool attached = node.pass == Pass::R && !again_named;
      again_attached_ = again_attached_ || attached;
      const Pass pass = !attached                                      ? node.pass
                        : halves.contains({node.chunk, node.instance}) ? Pass::BI
                                                                       : Pass::B;
      const auto [found, added] = vertices.try_emplace({rank, pass, chunk, node.instance}, count);
      vertex_of[unit] = found->second;
      if (attached) again.insert(found->second);
      if (!added) continue;
      ++count;
      DrawnOperation operation{pass, "", "", rank, found->second};
      if (chunk.valid()) operation.region = texts.of(chunk);
      operation.work = operation.region;
      for (std::size_t d = 0; d < dag.dims.size(); ++d) {
        operation.work += (operation.work.empty() ? "" : " ") +
                          std::string(context_.text(dag.dims[d].name)) + "[" +
                          std::to_string(node.instance.at[d]) + "]";
      }
      if (operation.work.empty()) operation.work = "model";
      operations_.push_back(std::move(operation));
    }
    for (DrawnOperation& operation : operations_)
      operation.again = again.contains(operation.vertex);
    readers_.assign(count, {});
    for (std::size_t i = 0; i < dag.nodes.size(); ++i) {
      if (adds_in_place(dag.nodes[i].kind)) continue;
      const std::uint32_t to = vertex_of[graph.unit_of(dag::NodeId::at(i))];
      for (const dag::Input& input : dag.inputs_of(dag.nodes[i])) {
        if (input.cls == dag::EdgeClass::param || !input.source.node.valid()) continue;
        for_each_term(dag, input.source, [&](dag::Port term) {
          const std::uint32_t from = vertex_of[graph.unit_of(term.node)];
          if (from != to) readers_[from].push_back(to);
        });
      }
    }
    note_gathers(dag, graph, vertex_of);
    if (options_.named && random_.chance(0.5)) name_communication(dag, graph, vertex_of);
    order_passes(dag, [&](dag::NodeId node) { return vertex_of[graph.unit_of(node)]; });
    return true;
  }

  /// Orders that hold even if no value flows: F of an instance, then its B or BI, then its BW; and
  /// if a forward reads another's result, their backwards follow each other the other way around.
  /// Read from each instance separately.
  template <typename VertexOf>
  void order_passes(const dag::Dag& dag, VertexOf vertex_of) {
    std::map<std::tuple<dag::ChunkId, dag::Instance, Pass>, dag::NodeId> nodes;
    for (std::size_t i = 0; i < dag.nodes.size(); ++i) {
      if (runs_body(dag.nodes[i].kind))
        nodes[{dag.nodes[i].chunk, dag.nodes[i].instance, dag.nodes[i].pass}] = dag::NodeId::at(i);
    }
    const auto follow = [&](dag::ChunkId before, std::initializer_list<Pass> first,
                            dag::ChunkId after, std::initializer_list<Pass> then,
                            const dag::Instance& instance) {
      for (const Pass p : first) {
        for (const Pass q : then) {
          const auto from = nodes.find({before, instance, p}),
                     to = nodes.find({after, instance, q});
          if (from == nodes.end() || to == nodes.end()) continue;
          const std::uint32_t x = vertex_of(from->second), y = vertex_of(to->second);
          if (x != y) readers_[x].push_back(y);
        }
      }
    };
    for (const auto& [key, id] : nodes) {
      const auto& [chunk, instance, pass] = key;
      if (pass != Pass::F) continue;
      follow(chunk, {Pass::F}, chunk, {Pass::R, Pass::B, Pass::BI}, instance);
      follow(chunk, {Pass::R}, chunk, {Pass::B, Pass::BI}, instance);
      follow(chunk, {Pass::BI}, chunk, {Pass::BW}, instance);
      for (const dag::Input& input : dag.inputs_of(dag.node(id))) {
        if (input.cls != dag::EdgeClass::data) continue;
        dag::Port made = input.source;
        if (const dag::Node& node = dag.node(made.node); is_recv(node.kind)) {
          for (const dag::NodeId member : dag.comms[node.comm.index()].members) {
            if (is_send(dag.node(member).kind))
              made = dag.inputs_of(dag.node(member))[made.index].source;
          }
        }
        const dag::Node& maker = dag.node(made.node);
        if (runs_body(maker.kind))
          follow(chunk, {Pass::B, Pass::BI}, maker.chunk, {Pass::B, Pass::BI}, maker.instance);
      }
    }
  }

  void note_gathers(const dag::Dag& dag, const passes::WorkGraph& graph,
                    const std::vector<std::uint32_t>& vertex_of) {
    std::set<std::uint32_t> reads;
    for (std::size_t i = 0; i < dag.nodes.size(); ++i) {
      if (!runs_body(dag.nodes[i].kind)) continue;
      for (const dag::Input& input : dag.inputs_of(dag.nodes[i])) {
        if (!input.source.node.valid()) continue;
        const dag::Node& from = dag.node(input.source.node);
        if (gathers_shards(from.kind) &&
            dag.shards_parameters(dag.buckets[from.subject.bucket().index()]))
          reads.insert(vertex_of[graph.unit_of(dag::NodeId::at(i))]);
      }
    }
    ahead_ = std::any_of(dag.buckets.begin(), dag.buckets.end(),
                         [](const dag::Bucket& bucket) { return bucket.prefetch > 0; });
    for (DrawnOperation& operation : operations_)
      operation.gathers = !operation.region.empty() && reads.contains(operation.vertex);
  }

  /// Gathers, somewhere before the work that they are for: of single operations, or one of all of a
  /// region's in a pass from there on. `prefetch` keeps the first to itself.
  void name_gathers() {
    std::vector<DrawnOperation> all;
    const auto first =
        std::find_if(operations_.begin(), operations_.end(),
                     [](const DrawnOperation& operation) { return operation.gathers; });
    const std::size_t from = ahead_ ? static_cast<std::size_t>(first - operations_.begin()) + 1 : 0;
    // Regions of which all is named, or something.
    std::set<std::tuple<std::int32_t, Pass, std::string>> whole, some;
    std::set<std::uint32_t> named;  // operations
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      const DrawnOperation& work =
          operations_[i + random_.below(std::min<std::size_t>(operations_.size() - i, 6))];
      const std::tuple region(work.rank, work.pass, work.region);
      if (i >= from && work.gathers && !work.named && !whole.contains(region) &&
          !named.contains(work.vertex) && random_.chance(0.3)) {
        const bool one = some.contains(region) || random_.chance(0.7);
        (one ? some : whole).insert(region);
        named.insert(work.vertex);
        DrawnOperation gather = work;
        gather.named = true;
        gather.work = one ? work.work : work.region;
        gather.work.insert(gather.region.size(), ".gather");
        all.push_back(std::move(gather));
      }
      all.push_back(operations_[i]);
    }
    operations_ = std::move(all);
  }

  /// Communication that is issued where the walk comes to it and not as soon as it can be: messages
  /// of operations that send one, and reductions of regions whose whole backwards on a rank share
  /// one.
  void name_communication(const dag::Dag& dag, const passes::WorkGraph& graph,
                          const std::vector<std::uint32_t>& vertex_of) {
    // By the operation that makes their values.
    std::map<std::uint32_t, std::set<std::uint32_t>> sends, reductions;
    for (std::size_t i = 0; i < dag.nodes.size(); ++i) {
      const dag::Node& node = dag.nodes[i];
      const bool reduces = node.reduces_gradients();
      if (!reduces && !is_send(node.kind)) continue;
      const std::uint32_t own = vertex_of[graph.unit_of(dag::NodeId::at(i))];
      for (const dag::Input& input : dag.inputs_of(node)) {
        for_each_term(dag, input.source, [&](dag::Port term) {
          (reduces ? reductions : sends)[vertex_of[graph.unit_of(term.node)]].insert(own);
        });
      }
    }
    struct Backwards {
      bool whole = true;
      std::set<std::uint32_t> reductions;
    };
    std::map<std::pair<std::int32_t, std::string>, Backwards> of_region;
    const std::size_t work = operations_.size();
    for (std::size_t i = 0; i < work; ++i) {
      if (operations_[i].region.empty()) continue;
      Backwards& backwards = of_region[{operations_[i].rank, operations_[i].region}];
      backwards.whole = backwards.whole && operations_[i].pass <= Pass::B;
      const auto reduced = reductions.find(operations_[i].vertex);
      if (reduced != reductions.end())
        backwards.reductions.insert(reduced->second.begin(), reduced->second.end());
      const auto own = sends.find(operations_[i].vertex);
      if (own == sends.end() || own->second.size() != 1 || random_.chance(0.5)) continue;
      DrawnOperation send = operations_[i];
      send.vertex = *own->second.begin();
      send.work.insert(send.region.size(), ".send");
      send.named = true;
      operations_.push_back(std::move(send));
    }
    for (const auto& [key, backwards] : of_region) {
      if (!backwards.whole || backwards.reductions.size() != 1 || random_.chance(0.5)) continue;
      operations_.push_back({Pass::B, key.second + ".reduce", key.second, key.first,
                             *backwards.reductions.begin(), true});
    }
  }

  /// Preferences, redrawn for every program, make long runs of one kind as likely as changes.
  bool linearise() {
    std::vector<std::uint32_t> waits(readers_.size(), 0), ready, order;
    for (const auto& readers : readers_) {
      for (const std::uint32_t reader : readers) ++waits[reader];
    }
    for (std::uint32_t v = 0; v < readers_.size(); ++v) {
      if (waits[v] == 0) ready.push_back(v);
    }
    const double eager = random_.chance(0.5) ? 0.8 : 0;
    const bool newest = random_.chance(0.5);
    while (!ready.empty()) {
      std::size_t at = random_.below(ready.size());
      if (random_.chance(eager)) at = newest ? ready.size() - 1 : 0;
      const std::uint32_t v = ready[at];
      ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(at));
      order.push_back(v);
      for (const std::uint32_t reader : readers_[v]) {
        if (--waits[reader] == 0) ready.push_back(reader);
      }
    }
    // Chunks of two operations need each other both ways.
    if (order.size() != readers_.size()) return false;
    position_.assign(order.size(), 0);
    for (std::uint32_t i = 0; i < order.size(); ++i) position_[order[i]] = i;
    std::sort(operations_.begin(), operations_.end(),
              [&](const DrawnOperation& a, const DrawnOperation& b) {
                return position_[a.vertex] < position_[b.vertex];
              });
    if (options_.named && random_.chance(0.9)) name_gathers();
    return true;
  }

  bool reaches(std::uint32_t from, std::uint32_t to) const {
    if (position_[from] > position_[to]) return false;
    std::vector<std::uint32_t> queue{from};
    std::set<std::uint32_t> seen;
    for (std::size_t i = 0; i < queue.size(); ++i) {
      for (const std::uint32_t next : readers_[queue[i]]) {
        if (next == to) return true;
        if (position_[next] < position_[to] && seen.insert(next).second) queue.push_back(next);
      }
    }
    return false;
  }

  bool independent(const DrawnStep& step, const DrawnOperation& operation, std::size_t but) const {
    for (std::size_t m = 0; m < step.size(); ++m) {
      for (const DrawnOperation& other : step[m]) {
        if (m != but &&
            (reaches(other.vertex, operation.vertex) || reaches(operation.vertex, other.vertex)))
          return false;
      }
    }
    return true;
  }

  /// Inputs of a group's operations are ready when its first one begins.
  bool ready(const DrawnStep& step, const DrawnOperation& operation) const {
    const std::uint32_t begin = position_[step.front().front().vertex];
    for (std::uint32_t from = 0; from < readers_.size(); ++from) {
      const std::vector<std::uint32_t>& to = readers_[from];
      if (position_[from] >= begin && std::find(to.begin(), to.end(), operation.vertex) != to.end())
        return false;
    }
    return true;
  }

  std::vector<DrawnStep> steps_of(std::int32_t rank) {
    // Recomputation before a group is the same on all replicas: their groups are the same then.
    if (const auto kept = steps_of_rank_.find(rank);
        again_attached_ && kept != steps_of_rank_.end())
      return kept->second;
    return steps_of_rank_[rank] = draw_steps(rank);
  }

  std::vector<DrawnStep> draw_steps(std::int32_t rank) {
    const double group_chance = options_.groups && random_.chance(0.5)
                                    ? random_.pick(std::vector<double>{0.1, 0.3, 0.6})
                                    : 0;
    std::vector<DrawnStep> steps;
    bool open = false;  // the last step takes more members
    for (const DrawnOperation& operation : operations_) {
      if (operation.rank != rank) continue;
      if (operation.named) {
        steps.push_back({{operation}});
        open = false;
        continue;
      }
      const bool joins = open && (!operation.again || ready(steps.back(), operation));
      if (joins && independent(steps.back(), operation, kNone)) {
        steps.back().push_back({operation});
      } else if (joins && steps.back().size() > 1 && random_.chance(0.4) &&
                 independent(steps.back(), operation, steps.back().size() - 1)) {
        steps.back().back().push_back(operation);
      } else {
        steps.push_back({{operation}});
      }
      open = random_.chance(group_chance);
    }
    return steps;
  }

  /// Replicas run the same nodes: they may say so in other words, and group them otherwise.
  std::string order_text() {
    std::map<std::uint32_t, std::vector<DrawnStep>> steps;
    OrderPrinter printer(context_, random_, strategy_.mesh, axes_);
    std::vector<std::string> bodies;  // per claim; none: not claimed
    for (const RankClaim& claim : claims_) {
      bodies.emplace_back();
      if (!claim.claimed) continue;
      const auto [found, added] = steps.try_emplace(claim.at[work_]);
      if (added || random_.chance(0.3))
        found->second = steps_of(static_cast<std::int32_t>(claim.at[work_]));
      bodies.back() = printer.body(found->second);
    }
    return printer.order(claims_, bodies);
  }

  Context& context_;
  Random& random_;
  const tensor::Graph& model_;
  const directive::Strategy& strategy_;
  const RandomOrderOptions& options_;
  std::vector<std::size_t> axes_;  // identify the ranks
  std::size_t work_ = 0;           // the one of them on which work is placed
  std::vector<RankClaim> claims_;
  std::vector<bool> claimed_;    // per coordinate of that axis: by some rank
  bool ahead_ = false;           // a bucket is gathered ahead of its use
  bool again_attached_ = false;  // something runs again that the order does not name
  std::map<std::int32_t, std::vector<DrawnStep>> steps_of_rank_;
  std::vector<DrawnOperation> operations_;
  std::vector<std::vector<std::uint32_t>> readers_;  // per vertex
  std::vector<std::uint32_t> position_;              // of each vertex in the walk
};

}  // namespace

std::string random_order(Context& context, Random& random, const tensor::Graph& model,
                         const directive::Strategy& strategy, std::string_view axis,
                         const RandomOrderOptions& options) {
  return OrderDrawer(context, random, model, strategy, options).draw(axis);
}

}  // namespace piper::test
