#include "passes/transform/split.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "ir/dag/piece_text.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "passes/build/wiring.h"
#include "passes/selectors/select.h"
#include "passes/transform/buckets.h"
#include "passes/transform/place.h"

namespace piper::passes {

using namespace dag;
using directive::Directive;

namespace {

bool same_extents(const directive::Split& a, const directive::Split& b) {
  return a.dim == b.dim && std::equal(a.into.begin(), a.into.end(), b.into.begin(), b.into.end(), [](const auto& x, const auto& y) {
           return x.name == y.name && x.extent == y.extent;
         });
}

bool is_everything(const directive::Selector& selector, const Context& context) {
  return !selector.pass && std::all_of(selector.coordinates.begin(), selector.coordinates.end(), [&](const directive::Coordinate& c) {
           return c.all && !c.rest && context.text(c.name) == "model";
         });
}

// ---- argument rules

/// The one split of the batch; null where there is none. False where it is not known which holds; other mistakes are told, and the line is taken for what it
/// would be without them.
bool find_split(const directive::Strategy& strategy, const Batch& batch, const Context& context, DiagnosticSink& sink, const directive::Split*& found) {
  found = nullptr;
  for (const Directive& directive : strategy.directives) {
    const auto* split = std::get_if<directive::Split>(&directive);
    if (split == nullptr) continue;
    if (split->dim != batch.name && context.text(split->dim) != "batch") {
      sink.report(Code::unknown_split_dimension, directive::narrowest(split->dim_loc, split->loc), "`{}` is not the dimension that counts samples", context.text(split->dim))
          .hint("write `split {} into ...`", batch.name.valid() ? context.text(batch.name) : "batch");
    }
    for (const directive::Selector& target : split->targets) {
      if (is_everything(target, context)) continue;
      sink.report(Code::split_of_a_part, target.loc.valid() ? target.loc : split->loc, "only the whole model can be split; `{}` is a part of it",
                  print_selector(target, context.symbols))
          .hint("leave `in ...` out, so that every region is split alike");
    }
    if (found != nullptr && !same_extents(*found, *split)) {
      sink.report(Code::split_conflict, split->loc, "the batch is split twice, and differently").related(found->loc, "the other `split` stands here").hint("keep one of them, or make their extents equal");
      return false;
    }
    if (found != nullptr) continue;
    found = split;
    if (split->into.size() > kMaxSplitDims) {
      sink.report(Code::split_conflict, split->loc, "the batch is split along {} dimensions; {} are possible", split->into.size(), kMaxSplitDims).hint("multiply some of them together");
      return false;
    }
    for (std::size_t i = 0; i < split->into.size(); ++i) {
      const directive::NamedExtent& dim = split->into[i];
      const bool repeated = std::any_of(split->into.begin(), split->into.begin() + static_cast<std::ptrdiff_t>(i), [&](const auto& other) { return other.name == dim.name; });
      if (repeated) {
        sink.report(Code::split_conflict, split->loc, "`{}` is named twice in one `split`", context.text(dim.name)).hint("give each dimension its own name");
        return false;
      }
      if (dim.extent == 0) {
        sink.report(Code::split_conflict, split->loc, "a split into 0 of `{}` leaves no work", context.text(dim.name)).hint("write `{}: 1` or more", context.text(dim.name));
        return false;
      }
    }
  }
  return true;
}

/// What else the program calls `name`, where it does: a partition or regions of the model.
struct Namesake {
  LocId loc;
  bool partition = false;
};

std::optional<Namesake> namesake_of(Symbol name, const tensor::Graph& model, const directive::Strategy& strategy) {
  for (const Directive& directive : strategy.directives) {
    const auto* partition = std::get_if<directive::Partition>(&directive);
    if (partition != nullptr && partition->into.name == name) return Namesake{directive::narrowest(partition->into.loc, partition->loc), true};
  }
  for (const tensor::Node& node : model.nodes()) {
    if (model.regions.coordinate(node.region, name)) return Namesake{node.loc};
  }
  return std::nullopt;
}

// ---- legality

std::string extents_text(const directive::Split& split, const Context& context) {
  std::string text;
  for (const directive::NamedExtent& dim : split.into) text += (text.empty() ? "`" : " x `") + std::string(context.text(dim.name)) + ": " + std::to_string(dim.extent) + "`";
  return text;
}

/// The largest number where there are more.
std::int64_t parts_of(const directive::Split& split) {
  std::int64_t parts = 1;
  for (const directive::NamedExtent& dim : split.into) {
    if (__builtin_mul_overflow(parts, std::int64_t{dim.extent}, &parts)) return INT64_MAX;
  }
  return parts;
}

bool check_division(const directive::Split& split, const Batch& batch, const Context& context, DiagnosticSink& sink) {
  const LocId at = split.into.size() == 1 ? directive::narrowest(split.into.front().loc, split.loc) : split.loc;
  return batch_divides(batch, parts_of(split), extents_text(split, context), at, sink);
}

bool check_legality(const Dag& dag, const directive::Split& split, DiagnosticSink& sink) {
  if (!check_division(split, batch_of(dag), *dag.context, sink)) return false;
  bool good = true;
  for (const Chunk& chunk : dag.chunks) good = (parts_of(split) == 1 || samples_are_independent(dag, chunk, "split", split.loc, sink)) && good;
  return good;
}

/// How an order names the backward of each instance of each chunk.
enum class Backward : std::uint8_t { unnamed, whole, halves, both };

/// How many operations are told that name a backward in another way than one before.
constexpr unsigned kMostNamedBothWays = 8;

void report_both_ways(const Dag& dag, ChunkId chunk, const Instance& instance, LocId at, LocId first, DiagnosticSink& sink) {
  std::string work = PieceTexts(dag).of(chunk);
  for (std::size_t d = 0; d < dag.dims.size(); ++d) work += " " + std::string(dag.context->text(dag.dims[d].name)) + "[" + std::to_string(instance.at[d]) + "]";
  sink.report(Code::backward_named_both_ways, at, "the backward of `{}` is named both as `B` and as `BI` or `BW`", work)
      .related(first, "the other way is named here")
      .hint("use `B` alone, or `BI` and `BW`");
}

/// Who named a backward first.
struct Naming {
  const directive::Order* order = nullptr;
  LocId loc;
};

/// Whether two orders are of some devices both: that is the mistake, and the first one stands.
bool claim_one_rank(const Dag& dag, const directive::Order& a, const directive::Order& b) {
  const auto meets = [&](const directive::RankSteps& rank, const directive::Order& other) {
    return std::any_of(other.ranks.begin(), other.ranks.end(),
                       [&](const directive::RankSteps& each) { return dag.device_sets[rank.devices].intersects(dag.device_sets[each.devices]); });
  };
  return &a != &b && std::any_of(a.ranks.begin(), a.ranks.end(), [&](const directive::RankSteps& rank) { return meets(rank, b); });
}

/// How the backward of each instance is named.
class Namings {
 public:
  Namings(Dag& dag, const directive::Strategy& strategy, Selection& selection, DiagnosticSink& sink, std::vector<Backward>& backward)
      : dag_(dag), strategy_(strategy), selection_(selection), sink_(sink), unread_(sink.locations()), backward_(backward), named_(backward.size()) {}

  /// Reports where both ways are named. What an operation means that matches nothing is told where orders are applied.
  void find() {
    for (const Directive& directive : strategy_.directives) {
      const auto* order = std::get_if<directive::Order>(&directive);
      if (order == nullptr) continue;
      rank_of_op_.clear();
      for (std::uint32_t op = 0; op < order->ops.size(); ++op) name(*order, op);
    }
  }

 private:
  void name(const directive::Order& order, std::uint32_t number) {
    const directive::OrderOp& op = order.ops[number];
    if (!is_backward(op.pass) || op.part != directive::Part::none) return;
    const Selection::Named named = selection_.named(order, op);
    if (named.kind == Selection::Named::Kind::piece) return name(order, op, named.chunk, named.instance);
    const std::optional<Selection::Found> found = selection_.find(order, op, unread_);
    if (!found) return;
    // What names work of several ranks means that of its own; which that was of a rank that failed is not known.
    const bool several = found->chunks.size() * found->instances.size() > 1;
    const directive::RankSteps* const rank = several ? rank_of(order, number) : nullptr;
    if (several && rank == nullptr) return;
    for (const ChunkId chunk : found->chunks) {
      for (const std::uint32_t instance : found->instances) {
        if (rank == nullptr || runs(*rank, op.pass, chunk.index() * selection_.instances().size() + instance)) name(order, op, chunk, instance);
      }
    }
  }

  void name(const directive::Order& order, const directive::OrderOp& op, ChunkId chunk, std::uint32_t instance) {
    const std::size_t at = chunk.index() * selection_.instances().size() + instance;
    const Backward how = op.pass == Pass::B ? Backward::whole : Backward::halves;
    if (backward_[at] == Backward::unnamed || backward_[at] == how) {
      backward_[at] = how;
      named_[at] = {&order, op.loc};
      return;
    }
    const auto [meets, fresh] = one_rank_.try_emplace({&order, named_[at].order}, false);
    if (fresh) meets->second = claim_one_rank(dag_, order, *named_[at].order);
    if (meets->second || std::exchange(backward_[at], Backward::both) == Backward::both) return;
    if (told_.size() < kMostNamedBothWays && told_.insert(op.loc).second) report_both_ways(dag_, chunk, selection_.instances().at(instance), op.loc, named_[at].loc, sink_);
  }

  /// The rank whose steps an operation is one of; null for what a rank that failed has left.
  const directive::RankSteps* rank_of(const directive::Order& order, std::uint32_t op) {
    if (rank_of_op_.empty()) {
      rank_of_op_.assign(order.ops.size(), nullptr);
      for (const directive::RankSteps& rank : order.ranks) {
        for (std::uint32_t i = 0; i < rank.num_steps; ++i) enter(order, order.steps[order.children[rank.first_step + i]], rank);
      }
    }
    return rank_of_op_[op];
  }

  void enter(const directive::Order& order, const directive::OrderStep& step, const directive::RankSteps& rank) {
    for (std::uint32_t i = step.first; i < step.first + step.count; ++i) {
      if (step.kind == directive::OrderStep::Kind::op) {
        rank_of_op_[i] = &rank;
      } else {
        enter(order, order.steps[order.children[i]], rank);
      }
    }
  }

  /// Whether that pass of a (chunk, instance) has a place on the rank, as far as the lines of the strategy say.
  bool runs(const directive::RankSteps& rank, Pass pass, std::size_t at) {
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
  DiagnosticSink unread_;
  std::vector<Backward>& backward_;
  std::vector<Naming> named_;
  std::vector<const directive::RankSteps*> rank_of_op_;  // of the order at hand; empty: not asked for
  std::optional<Places> places_;                         // when they were asked for
  llvm::DenseMap<std::pair<std::uint32_t, std::uint32_t>, bool> on_rank_;  // whether a place and a claim have devices in common
  llvm::DenseSet<LocId> told_;
  std::map<std::pair<const directive::Order*, const directive::Order*>, bool> one_rank_;  // whether they claim one, of those that meet
};

void find_halves(Dag& dag, const directive::Strategy& strategy, Selection& selection, DiagnosticSink& sink, std::vector<Backward>& backward) {
  bool any = false;
  for (const Directive& directive : strategy.directives) {
    if (const auto* order = std::get_if<directive::Order>(&directive)) {
      any = any || std::any_of(order->ops.begin(), order->ops.end(), [](const directive::OrderOp& op) { return op.pass == Pass::BI || op.pass == Pass::BW; });
    }
  }
  if (any) Namings(dag, strategy, selection, sink, backward).find();
}

/// Marks the instances, chunk by chunk, that `recompute` lines name and whose chunks save something. False after reporting.
bool find_recomputed(const Dag& dag, const directive::Strategy& strategy, Selection& selection, DiagnosticSink& sink, std::vector<bool>& recomputed) {
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
        for (const std::uint32_t instance : found->instances) recomputed[chunk.index() * selection.instances().size() + instance] = true;
      }
      if (any) continue;
      sink.report(Code::nothing_to_recompute, directive::narrowest(target.loc, recompute->loc), "`{}` saves nothing for its backward that could be computed again",
                  print_selector(target, dag.context->symbols))
          .hint("what it reads is saved where it is made; leave the line out, or name regions with work between what enters and what the backward reads");
    }
  }
  return sink.error_count() == errors;
}

// ---- rewrite

/// Bodies of the passes that some instance has. Where all instances have an R, the lean F is the one that there is.
void keep_run_bodies(Dag& dag, std::span<const Backward> backward, const std::vector<bool>& recomputed) {
  std::vector<bool> used(dag.bodies.size());
  const std::size_t instances = dag.chunks.empty() ? 0 : backward.size() / dag.chunks.size();
  for (std::size_t c = 0; c < dag.chunks.size(); ++c) {
    const std::span<const Backward> own = backward.subspan(c * instances, instances);
    const auto halves = static_cast<std::size_t>(std::count(own.begin(), own.end(), Backward::halves));
    const auto use = [&](Pass pass) {
      if (const BodyId body = dag.chunks[c].bodies[static_cast<std::size_t>(pass)]; body.valid()) used[body.index()] = true;
    };
    const auto first = recomputed.begin() + static_cast<std::ptrdiff_t>(c * instances);
    const auto again = static_cast<std::size_t>(std::count(first, first + static_cast<std::ptrdiff_t>(instances), true));
    Chunk& chunk = dag.chunks[c];
    if (again == instances) {
      BodyId& forward = chunk.bodies[static_cast<std::size_t>(Pass::F)];
      dag.bodies[chunk.lean.index()].name = dag.bodies[forward.index()].name;
      forward = std::exchange(chunk.lean, BodyId());
    }
    if (again > 0) use(Pass::R);
    if (again > 0 && chunk.lean.valid()) used[chunk.lean.index()] = true;
    use(Pass::F);
    if (halves < instances) use(Pass::B);
    if (halves == 0) continue;
    use(Pass::BI);
    use(Pass::BW);
  }
  keep_bodies(dag, used);
}

void make_nodes(Dag& dag, const Instances& instances, std::span<const Backward> backward, const std::vector<bool>& recomputed) {
  dag.nodes.clear();
  dag.edges.clear();
  dag.nodes.reserve(backward.size() * 8);  // three passes, two messages at both ends, loads
  for (std::size_t c = 0; c < dag.chunks.size(); ++c) {
    const Chunk& chunk = dag.chunks[c];
    Node node;
    node.chunk = ChunkId::at(c);
    node.loc = chunk.loc;
    for (std::uint32_t i = 0; i < instances.size(); ++i) {
      node.instance = instances.at(i);
      const bool halves = backward[c * instances.size() + i] == Backward::halves;  // of one named both ways the whole stands
      const bool again = recomputed[c * instances.size() + i];
      for (const Pass pass : kAllPasses) {
        if (pass == Pass::R ? !again : is_backward(pass) && halves == (pass == Pass::B)) continue;
        node.pass = pass;
        node.body = pass == Pass::F && again && chunk.lean.valid() ? chunk.lean : chunk.bodies[static_cast<std::size_t>(pass)];
        dag.nodes.push_back(node);
      }
    }
  }
}

void check_split_names(const tensor::Graph& model, const directive::Strategy& strategy, DiagnosticSink& sink) {
  llvm::DenseSet<Symbol> seen;
  for (const Directive& directive : strategy.directives) {
    const auto* split = std::get_if<directive::Split>(&directive);
    if (split == nullptr) continue;
    for (const directive::NamedExtent& dim : split->into) {
      if (!seen.insert(dim.name).second) continue;
      const std::optional<Namesake> namesake = namesake_of(dim.name, model, strategy);
      if (!namesake) continue;
      const std::string_view name = model.context().text(dim.name);
      auto report = sink.report(Code::split_name_taken, directive::narrowest(dim.loc, split->loc), "`{}` already names regions of the model", name);
      if (namesake->partition) {
        report.related(namesake->loc, "the partition calls its parts `{}`", name);
      } else {
        report.related(namesake->loc, "this stands in a region `{}`", name);
      }
      report.hint("give the dimension another name");
    }
  }
}

}  // namespace

void check_splits(const tensor::Graph& model, const directive::Strategy& strategy, DiagnosticSink& sink) {
  const Batch batch = batch_of(model, strategy);
  const directive::Split* split = nullptr;
  if (find_split(strategy, batch, model.context(), sink, split) && split != nullptr) check_division(*split, batch, model.context(), sink);
  check_split_names(model, strategy, sink);
}

bool divides(const directive::Split& split, const Batch& batch) {
  const std::int64_t parts = parts_of(split);
  return parts == 0 || batch.samples % parts == 0;
}

bool split(Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink) {
  const directive::Split* split = nullptr;
  if (!find_split(strategy, batch_of(dag), *dag.context, sink, split)) return false;
  const std::int64_t parts = split == nullptr ? 1 : parts_of(*split);
  if (split != nullptr) {
    if (!check_legality(dag, *split, sink)) return false;
    for (const directive::NamedExtent& dim : split->into) dag.dims.push_back({dim.name, split->dim, dim.extent, split->loc});
  }
  Selection selection(dag);
  const std::uint32_t instances = selection.instances().size();
  std::vector<Backward> backward(dag.chunks.size() * instances, Backward::unnamed);
  find_halves(dag, strategy, selection, sink, backward);
  std::vector<bool> recomputed(backward.size());
  if (!find_recomputed(dag, strategy, selection, sink, recomputed)) return false;

  dag.level = Level::split;
  keep_run_bodies(dag, backward, recomputed);
  for (Body& body : dag.bodies) divide_samples(body, parts);
  make_nodes(dag, selection.instances(), backward, recomputed);
  wire(dag);
  return true;
}

}  // namespace piper::passes
