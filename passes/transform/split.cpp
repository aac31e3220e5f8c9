#include "passes/transform/split.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "ir/dag/segment_text.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "passes/build/sampling.h"
#include "passes/build/wiring.h"
#include "passes/selectors/select.h"
#include "passes/transform/buckets.h"
#include "passes/transform/place.h"

namespace piper::passes {

using namespace dag;
using directive::Directive;
using directive::Order;
using directive::RankSteps;

namespace {

/// The split of the batch; null if there is none.
const directive::Split* split_of(const directive::Strategy& strategy) {
  for (const Directive& directive : strategy.directives) {
    if (const auto* split = std::get_if<directive::Split>(&directive)) return split;
  }
  return nullptr;
}

// ---- legality

bool can_be_split(const Dag& dag, const directive::Split& split, DiagnosticSink& sink) {
  bool good = true;
  for (const Chunk& chunk : dag.chunks)
    good = samples_are_independent(dag, chunk, "split", split.loc, sink) && good;
  return good;
}

/// The names of a backward in orders, per chunk and instance.
enum class Backward : std::uint8_t { unnamed, whole, halves, both };

/// Maximum number of reported operations that name a backward in another way than an earlier one.
constexpr unsigned kMaxNamedBothWays = 8;

/// Finds the names of all backwards.
class Namings {
 public:
  Namings(Dag& dag, const directive::Strategy& strategy, Selection& selection, DiagnosticSink& sink,
          std::vector<Backward>& backward)
      : dag_(dag),
        strategy_(strategy),
        selection_(selection),
        sink_(sink),
        backward_(backward),
        named_(backward.size()) {}

  /// False after reporting backwards named in both ways.
  bool find() {
    for (const Directive& directive : strategy_.directives) {
      const auto* order = std::get_if<Order>(&directive);
      for (std::size_t i = 0; order != nullptr && i < order->ranks.size(); ++i) {
        const RankSteps& rank = order->ranks[i];
        name(*order, std::span(order->children).subspan(rank.first_step, rank.num_steps), rank);
      }
    }
    return reported_.empty();
  }

 private:
  void name(const Order& order, std::span<const std::uint32_t> steps, const RankSteps& rank) {
    for (const std::uint32_t number : steps) {
      const directive::OrderStep& step = order.steps[number];
      if (step.kind != directive::OrderStep::Kind::op) {
        name(order, std::span(order.children).subspan(step.first, step.count), rank);
        continue;
      }
      for (const directive::OrderOp& op : std::span(order.ops).subspan(step.first, step.count))
        name(order, op, rank);
    }
  }

  /// Operations without matches are reported when orders are applied.
  void name(const Order& order, const directive::OrderOp& op, const RankSteps& rank) {
    if (!is_backward(op.pass) || op.part != directive::CommClass::none) return;
    const Selection::Named named = selection_.named(order, op);
    if (named.kind == Selection::Named::Kind::segment) return name(op, named.chunk, named.instance);
    const std::optional<Selection::Found> found = selection_.find(order, op);
    if (!found) return;
    // An operation that names work of several ranks applies to the work of its own rank.
    const bool several = found->chunks.size() * found->instances.size() > 1;
    for (const ChunkId chunk : found->chunks) {
      for (const std::uint32_t instance : found->instances) {
        if (!several ||
            runs(rank, op.pass, chunk.index() * selection_.instances().size() + instance))
          name(op, chunk, instance);
      }
    }
  }

  void name(const directive::OrderOp& op, ChunkId chunk, std::uint32_t instance) {
    const std::size_t at = chunk.index() * selection_.instances().size() + instance;
    const Backward how = op.pass == Pass::B ? Backward::whole : Backward::halves;
    if (backward_[at] == Backward::unnamed || backward_[at] == how) {
      backward_[at] = how;
      named_[at] = op.loc;
      return;
    }
    if (std::exchange(backward_[at], Backward::both) == Backward::both) return;
    if (reported_.size() < kMaxNamedBothWays && reported_.insert(op.loc).second)
      report(chunk, instance, op.loc, named_[at]);
  }

  void report(ChunkId chunk, std::uint32_t instance, LocId at, LocId first) {
    std::string work = SegmentTexts(dag_).of(chunk);
    const Instance named = selection_.instances().at(instance);
    for (std::size_t d = 0; d < dag_.dims.size(); ++d)
      work += " " + std::string(dag_.context->text(dag_.dims[d].name)) + "[" +
              std::to_string(named.at[d]) + "]";
    sink_
        .report(Code::backward_named_both_ways, at,
                "the backward of `{}` is named both as `B` and as `BI` or `BW`", work)
        .related(first, "the other way is named here")
        .hint("use `B` alone, or `BI` and `BW`");
  }

  /// Whether the lines of the strategy place that pass of a (chunk, instance) on the rank; true if
  /// no line places it.
  bool runs(const RankSteps& rank, Pass pass, std::size_t at) {
    if (!places_) places_ = places_of(dag_, strategy_);
    const DeviceSetId place = (*places_)[static_cast<std::size_t>(pass)][at];
    if (!place.valid()) return true;
    const auto [known, fresh] = on_rank_.try_emplace({place.value(), rank.devices.value()}, false);
    if (fresh) known->second = dag_.device_sets[place].intersects(dag_.device_sets[rank.devices]);
    return known->second;
  }

  Dag& dag_;
  const directive::Strategy& strategy_;
  Selection& selection_;
  DiagnosticSink& sink_;
  std::vector<Backward>& backward_;
  std::vector<LocId> named_;      // the last operation that names it
  std::optional<Places> places_;  // computed on demand
  // Whether a place and a claim have devices in common.
  llvm::DenseMap<std::pair<std::uint32_t, std::uint32_t>, bool> on_rank_;
  llvm::DenseSet<LocId> reported_;
};

bool find_halves(Dag& dag, const directive::Strategy& strategy, Selection& selection,
                 DiagnosticSink& sink, std::vector<Backward>& backward) {
  bool any = false;
  for (const Directive& directive : strategy.directives) {
    if (const auto* order = std::get_if<Order>(&directive)) {
      any = any ||
            std::any_of(order->ops.begin(), order->ops.end(), [](const directive::OrderOp& op) {
              return op.pass == Pass::BI || op.pass == Pass::BW;
            });
    }
  }
  return !any || Namings(dag, strategy, selection, sink, backward).find();
}

/// The location of the first `recompute` line of each instance, chunk by chunk, for chunks with
/// saved values. False after reporting.
bool find_recomputed(const Dag& dag, const directive::Strategy& strategy, Selection& selection,
                     DiagnosticSink& sink, std::vector<std::optional<LocId>>& recomputed) {
  const std::size_t errors = sink.error_count();
  for (const Directive& directive : strategy.directives) {
    const auto* recompute = std::get_if<directive::Recompute>(&directive);
    if (recompute == nullptr) continue;
    for (const directive::Selector& target : recompute->targets) {
      const std::optional<Selection::Found> found = selection.find(target, sink);
      if (!found) continue;
      bool any = false;
      for (const ChunkId chunk : found->chunks) {
        if (!dag.chunks[chunk.index()].bodies[static_cast<std::size_t>(Pass::R)].valid()) continue;
        any = true;
        for (const std::uint32_t instance : found->instances) {
          std::optional<LocId>& line =
              recomputed[chunk.index() * selection.instances().size() + instance];
          if (!line) line = directive::narrowest(target.loc, recompute->loc);
        }
      }
      if (any) continue;
      sink.report(Code::nothing_to_recompute, directive::narrowest(target.loc, recompute->loc),
                  "`{}` saves nothing for its backward that could be computed again",
                  print_selector(target, dag.context->symbols))
          .hint(
              "what it reads is saved where it is made; leave the line out, or name regions with work between what enters and what the backward reads");
    }
  }
  return sink.error_count() == errors;
}

// ---- rewrite

/// Keeps the bodies of passes that some instance has. If all instances have an R, the lean F is the
/// only F.
void keep_run_bodies(Dag& dag, std::span<const Backward> backward,
                     std::span<const std::optional<LocId>> recomputed) {
  std::vector<bool> used(dag.bodies.size());
  const std::size_t instances = dag.chunks.empty() ? 0 : backward.size() / dag.chunks.size();
  for (std::size_t c = 0; c < dag.chunks.size(); ++c) {
    const std::span<const Backward> own = backward.subspan(c * instances, instances);
    const auto halves =
        static_cast<std::size_t>(std::count(own.begin(), own.end(), Backward::halves));
    const auto use = [&](Pass pass) {
      if (const BodyId body = dag.chunks[c].bodies[static_cast<std::size_t>(pass)]; body.valid())
        used[body.index()] = true;
    };
    const auto lines = recomputed.subspan(c * instances, instances);
    const auto again = static_cast<std::size_t>(
        std::count_if(lines.begin(), lines.end(),
                      [](const std::optional<LocId>& line) { return line.has_value(); }));
    Chunk& chunk = dag.chunks[c];
    if (again == instances) {
      BodyId& forward = chunk.bodies[static_cast<std::size_t>(Pass::F)];
      dag.bodies[chunk.recomputed_forward.index()].name = dag.bodies[forward.index()].name;
      forward = std::exchange(chunk.recomputed_forward, BodyId());
    }
    if (again > 0) use(Pass::R);
    if (again > 0 && chunk.recomputed_forward.valid())
      used[chunk.recomputed_forward.index()] = true;
    use(Pass::F);
    if (halves < instances) use(Pass::B);
    if (halves == 0) continue;
    use(Pass::BI);
    use(Pass::BW);
  }
  keep_bodies(dag, used);
}

void make_nodes(Dag& dag, const Instances& instances, std::span<const Backward> backward,
                std::span<const std::optional<LocId>> recomputed) {
  dag.nodes.clear();
  dag.edges.clear();
  dag.nodes.reserve(backward.size() * 8);  // three passes, two messages at both ends, loads
  NodePolls polls(dag.context->cancellation);
  for (std::size_t c = 0; c < dag.chunks.size(); ++c) {
    const Chunk& chunk = dag.chunks[c];
    Node node;
    node.chunk = ChunkId::at(c);
    for (std::uint32_t i = 0; i < instances.size(); ++i) {
      polls.visit();
      node.instance = instances.at(i);
      const bool halves = backward[c * instances.size() + i] == Backward::halves;
      const std::optional<LocId>& again = recomputed[c * instances.size() + i];
      for (const Pass pass : kAllPasses) {
        if (pass == Pass::R ? !again : is_backward(pass) && halves == (pass == Pass::B)) continue;
        node.pass = pass;
        node.loc = pass == Pass::R ? *again : chunk.loc;
        node.body = pass == Pass::F && again && chunk.recomputed_forward.valid()
                        ? chunk.recomputed_forward
                        : chunk.bodies[static_cast<std::size_t>(pass)];
        dag.nodes.push_back(node);
      }
    }
  }
}

}  // namespace

bool split(Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink) {
  const directive::Split* const split = split_of(strategy);
  for (std::size_t i = 0; split != nullptr && i < split->into.size(); ++i)
    dag.dims.push_back({split->into[i].name, split->dim, split->into[i].extent, split->loc});
  Selection selection(dag);
  const std::uint32_t instances = selection.instances().size();
  if (instances > 1 && !can_be_split(dag, *split, sink)) return false;
  std::vector<Backward> backward(dag.chunks.size() * instances, Backward::unnamed);
  std::vector<std::optional<LocId>> recomputed(backward.size());
  if (!find_halves(dag, strategy, selection, sink, backward) ||
      !find_recomputed(dag, strategy, selection, sink, recomputed))
    return false;

  dag.level = Level::split;
  keep_run_bodies(dag, backward, recomputed);
  for (Body& body : dag.bodies) divide_samples(body, instances);
  make_nodes(dag, selection.instances(), backward, recomputed);
  wire(dag);
  return true;
}

}  // namespace piper::passes
