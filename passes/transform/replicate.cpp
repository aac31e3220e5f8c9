#include "passes/transform/replicate.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "ir/dag/segment_text.h"
#include "ir/layout/box.h"
#include "llvm/ADT/DenseSet.h"
#include "passes/build/sampling.h"
#include "passes/build/wiring.h"
#include "passes/selectors/lines_of.h"
#include "passes/selectors/select.h"
#include "passes/transform/buckets.h"

namespace piper::passes {

using namespace dag;
using directive::Replicate;

namespace {

/// The rule for a chunk on one axis: the directive with the most coordinates.
struct Chosen {
  const Replicate* directive = nullptr;
  std::uint32_t specificity = 0;
};

bool same_settings(const Replicate& a, const Replicate& b) {
  return a.bucket_bytes == b.bucket_bytes && a.zero == b.zero && a.prefetch == b.prefetch &&
         a.reduce == b.reduce;
}

class Replicator {
 public:
  Replicator(Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink)
      : dag_(dag), strategy_(strategy), sink_(sink), selection_(dag) {}
  bool run();

 private:
  bool apply(const Replicate& replicate);
  bool check_layouts() const;
  bool check_layouts(const Node& node, AxisMask wanted) const;
  AxisMask asked_of(ChunkId chunk) const;
  bool set_cuts();
  bool check_sharding(const Chunk& chunk, AxisMask cut);
  bool check_edges() const;
  bool pair_up(DeviceSetId a, DeviceSetId b) const {
    return whole_[a.index()] == whole_[b.index()];
  }
  void report_misfit(NodeId from_id, NodeId to_id) const;
  void warn_of_repeated_work() const;
  AxisMask repeated_by(std::size_t node) const;
  LayoutId on(LayoutId layout, AxisMask axes) const;
  void lay_out(Body& body, AxisMask cut) const;
  void lay_out_bodies();
  std::optional<std::vector<BucketRules>> bucket_rules();
  static directive::Reduce reduce_of(const Replicate& replicate);
  static bool sharded_alike(const Replicate& a, const Replicate& b);
  void report_mixed(const Chunk& chunk, const Replicate& a, const Replicate& b) const;
  LocId replicate_of(ChunkId a, ChunkId b) const;
  std::string axes_text(AxisMask axes) const;
  std::string_view text(Symbol symbol) const { return dag_.context->text(symbol); }

  Dag& dag_;
  const directive::Strategy& strategy_;
  DiagnosticSink& sink_;
  Selection selection_;
  std::vector<Chosen> chosen_;   // per chunk and axis
  std::vector<AxisMask> cuts_;   // per node that runs a body: the axes that shard its samples
  std::vector<AxisMask> whole_;  // per device set
  llvm::DenseSet<const Replicate*> effective_;
};

std::string Replicator::axes_text(AxisMask axes) const {
  std::string result;
  for (std::size_t a = 0; a < dag_.mesh.axes.size(); ++a) {
    if ((axes >> a & 1) != 0)
      result += (result.empty() ? "`" : ", `") + std::string(text(dag_.mesh.axes[a].name)) + "`";
  }
  return result.empty() ? "no axis" : result;
}

/// A directive that shards the samples of only one of two chunks.
LocId Replicator::replicate_of(ChunkId a, ChunkId b) const {
  const std::size_t axes = dag_.mesh.axes.size();
  for (std::size_t axis = 0; axis < axes; ++axis) {
    const Replicate *x = chosen_[a.index() * axes + axis].directive,
                    *y = chosen_[b.index() * axes + axis].directive;
    if (x != nullptr && y == nullptr) return x->loc;
    if (y != nullptr && x == nullptr) return y->loc;
  }
  return dag_.chunks[b.index()].loc;
}

// ---- rules

bool Replicator::apply(const Replicate& replicate) {
  for (const directive::Selector& target : replicate.targets) {
    const std::optional<Selection::Found> found = selection_.find(target, sink_);
    if (!found) return false;
    const std::uint32_t specificity = static_cast<std::uint32_t>(target.coordinates.size());
    for (const ChunkId chunk : found->chunks) {
      for (const Symbol axis : replicate.axes) {
        Chosen& chosen = chosen_[chunk.index() * dag_.mesh.axes.size() + dag_.mesh.find(axis)];
        if (chosen.directive == nullptr || chosen.specificity < specificity) {
          chosen = {&replicate, specificity};
        } else if (chosen.specificity == specificity &&
                   !same_settings(*chosen.directive, replicate)) {
          sink_
              .report(
                  Code::replicated_twice, replicate.loc,
                  "`{}` is replicated over `{}` twice, with different settings, by selectors with equally many coordinates",
                  region_text(dag_, chunk), text(axis))
              .related(chosen.directive->loc, "the other `replicate` stands here")
              .hint("keep one of them");
          return false;
        }
      }
    }
  }
  return true;
}

// ---- legality

/// Every replica has at least one sample of each microbatch, and no operation needs several samples.
bool Replicator::check_sharding(const Chunk& chunk, AxisMask cut) {
  std::int64_t parts = 1;
  std::string how;
  for (const SplitDim& dim : dag_.dims) {
    parts *= dim.extent;
    how += (how.empty() ? "`" : " x `") + std::string(text(dim.name)) + ": " +
           std::to_string(dim.extent) + "`";
  }
  LocId loc;
  for (std::size_t a = 0; a < dag_.mesh.axes.size(); ++a) {
    if ((cut >> a & 1) == 0) continue;
    parts *= dag_.mesh.axes[a].size;
    how += (how.empty() ? "`" : " x `") + std::string(text(dag_.mesh.axes[a].name)) + ": " +
           std::to_string(dag_.mesh.axes[a].size) + "`";
    loc = chosen_[static_cast<std::size_t>(&chunk - dag_.chunks.data()) * dag_.mesh.axes.size() + a]
              .directive->loc;
  }
  const Batch batch = batch_of(dag_);
  if (batch.samples < parts && !batch_divides(batch, parts, how, loc, sink_)) return false;
  return samples_are_independent(dag_, chunk, "replicated", loc, sink_);
}

/// The axes over which its lines replicate a chunk.
AxisMask Replicator::asked_of(ChunkId chunk) const {
  AxisMask asked = 0;
  const std::size_t axes = dag_.mesh.axes.size();
  for (std::size_t a = 0; a < axes; ++a) {
    if (chosen_[chunk.index() * axes + a].directive != nullptr) asked |= AxisMask{1} << a;
  }
  return asked;
}

/// A DAG read from text has layouts; on the axes that devices have they must be those of its lines,
/// in the bodies of all passes.
bool Replicator::check_layouts() const {
  llvm::DenseSet<std::pair<std::uint64_t, std::uint32_t>> checked;
  for (std::size_t n = 0; n < cuts_.size(); ++n) {
    const Node& node = dag_.nodes[n];
    if (!runs_body(node.kind) ||
        !checked
             .insert({std::uint64_t{node.chunk.value()} << 32 | node.body.value(),
                      node.devices.value()})
             .second)
      continue;
    if (!check_layouts(node, cuts_[n])) return false;
  }
  return true;
}

bool Replicator::check_layouts(const Node& node, AxisMask wanted) const {
  const Chunk& chunk = dag_.chunks[node.chunk.index()];
  for (const tensor::Value& value : dag_.bodies[node.body.index()].graph.values()) {
    const tensor::Dim* const samples = value.type.samples();
    if (samples == nullptr) continue;
    const Layout& layout = dag_.context->layouts[on(value.layout, whole_[node.devices.index()])];
    const AxisMask cut = mask_of(layout, AxisLayout::sharded(samples->name), dag_.mesh);
    if (cut == wanted && layout.axes.size() == static_cast<std::size_t>(std::popcount(cut)))
      continue;
    sink_
        .report(Code::layouts_differ, chunk.loc,
                "the layouts of `{}` divide its samples over {}, and its lines over {}",
                region_text(dag_, chunk), axes_text(cut), axes_text(wanted))
        .hint("replicate what was replicated when its layouts were derived");
    return false;
  }
  return true;
}

bool Replicator::set_cuts() {
  const std::size_t axes = dag_.mesh.axes.size();
  std::vector<AxisMask> asked;
  for (std::size_t c = 0; c < dag_.chunks.size(); ++c) asked.push_back(asked_of(ChunkId::at(c)));
  AxisMask single = 0;  // an axis of one device shards nothing
  for (std::size_t a = 0; a < axes; ++a) {
    if (dag_.mesh.axes[a].size == 1) single |= AxisMask{1} << a;
  }
  llvm::DenseSet<std::uint64_t> checked;
  bool good = true;
  std::uint64_t last = ~0ull;
  NodePolls polls(dag_.context->cancellation);
  for (std::size_t n = 0; n < cuts_.size(); ++n) {
    polls.visit();
    if (!runs_body(dag_.nodes[n].kind)) continue;
    const Node& node = dag_.nodes[n];
    const AxisMask fits = asked[node.chunk.index()] & whole_[node.devices.index()];
    cuts_[n] = fits & ~single;
    const std::uint64_t key = std::uint64_t{node.chunk.value()} << 32 | node.devices.value();
    if (key == last || !checked.insert(key).second) continue;
    last = key;
    for (std::size_t a = 0; a < axes; ++a) {
      if ((fits >> a & 1) != 0) effective_.insert(chosen_[node.chunk.index() * axes + a].directive);
    }
    if (cuts_[n] != 0 && good) good = check_sharding(dag_.chunks[node.chunk.index()], cuts_[n]);
  }
  // No layout shards samples that depend on each other; that is reported instead.
  good = good && check_layouts();
  for (const directive::Directive& directive : strategy_.directives) {
    const auto* replicate = std::get_if<Replicate>(&directive);
    if (replicate == nullptr || effective_.contains(replicate) || !good) continue;
    bool overridden = true;
    for (const directive::Selector& target : replicate->targets) {
      const std::optional<Selection::Found> found = selection_.find(target, sink_);
      for (const ChunkId chunk : found->chunks) {
        for (const Symbol axis : replicate->axes)
          overridden = overridden &&
                       chosen_[chunk.index() * axes + dag_.mesh.find(axis)].directive != replicate;
      }
    }
    if (overridden) continue;
    AxisMask named = 0;
    for (const Symbol axis : replicate->axes) named |= AxisMask{1} << dag_.mesh.find(axis);
    sink_
        .report(
            Code::replicate_without_effect, replicate->loc,
            "nothing is replicated over {}: every region named is placed on one coordinate of it",
            axes_text(named))
        .hint("replicate over an axis that `place` leaves whole");
    good = false;
  }
  return good;
}

/// Edges pair devices by coordinate, so both ends must have the same whole axes and shard their
/// samples alike.
bool Replicator::check_edges() const {
  struct Misfit {
    NodeId maker, reader;
  };
  // One per pair of chunks; that of the forward, the direction that programs name.
  std::map<std::pair<ChunkId, ChunkId>, Misfit> misfits;
  NodePolls polls(dag_.context->cancellation);
  for (std::size_t n = 0; n < cuts_.size(); ++n) {
    polls.visit();
    if (!runs_body(dag_.nodes[n].kind)) continue;
    const Node& reader = dag_.nodes[n];
    for (const Input& input : dag_.inputs_of(reader)) {
      if (input.cls != EdgeClass::data || !input.source.node.valid() ||
          !runs_body(dag_.node(input.source.node).kind))
        continue;
      const Node& maker = dag_.node(input.source.node);
      if (pair_up(maker.devices, reader.devices) && cuts_[input.source.node.index()] == cuts_[n])
        continue;
      const auto [known, fresh] = misfits.try_emplace(std::minmax(maker.chunk, reader.chunk),
                                                      Misfit{input.source.node, NodeId::at(n)});
      if (!fresh && reader.pass == Pass::F && dag_.node(known->second.reader).pass != Pass::F)
        known->second = {input.source.node, NodeId::at(n)};
    }
  }
  for (const auto& [chunks, misfit] : misfits) report_misfit(misfit.maker, misfit.reader);
  return misfits.empty();
}

void Replicator::report_misfit(NodeId from_id, NodeId to_id) const {
  const Node &maker = dag_.node(from_id), &reader = dag_.node(to_id);
  const Chunk &from = dag_.chunks[maker.chunk.index()], &to = dag_.chunks[reader.chunk.index()];
  if (!pair_up(maker.devices, reader.devices)) {
    sink_
        .report(
            Code::devices_do_not_pair, place_line(strategy_, reader.devices, to.loc),
            "`{}` on `{}` feeds `{}` on `{}`: the devices of the two sets do not pair one to one",
            region_text(dag_, from), dag_.text(maker.devices), region_text(dag_, to),
            dag_.text(reader.devices))
        .related(place_line(strategy_, maker.devices, from.loc), "`{}` is placed here",
                 region_text(dag_, from))
        .related(to.loc, "`{}` starts here", region_text(dag_, to))
        .hint("place both on sets that leave the same axes whole");
    return;
  }
  sink_
      .report(Code::layouts_differ, replicate_of(maker.chunk, reader.chunk),
              "`{}` divides its samples over {}, but `{}`, which reads from it, over {}",
              region_text(dag_, from), axes_text(cuts_[from_id.index()]), region_text(dag_, to),
              axes_text(cuts_[to_id.index()]))
      .related(to.loc, "`{}` starts here", region_text(dag_, to))
      .hint("replicate both over the same axes");
}

/// An unused axis is reported once; an axis that only some regions use, for each other region.
void Replicator::warn_of_repeated_work() const {
  AxisMask used = 0, repeated = 0;
  for (std::size_t n = 0; n < cuts_.size(); ++n) {
    if (!runs_body(dag_.nodes[n].kind)) continue;
    used |= cuts_[n] | ~whole_[dag_.nodes[n].devices.index()];
    repeated |= repeated_by(n);
  }
  for (std::size_t a = 0; a < dag_.mesh.axes.size(); ++a) {
    if ((repeated & ~used & AxisMask{1} << a) == 0) continue;
    sink_
        .report(Code::repeated_work, dag_.mesh.loc,
                "nothing uses axis `{}`: its {} devices all do the same work",
                text(dag_.mesh.axes[a].name), dag_.mesh.axes[a].size)
        .hint(
            "add `replicate model over {}`, place regions on its coordinates, or make the axis 1 long",
            text(dag_.mesh.axes[a].name));
  }
  if ((repeated & used) == 0) return;
  // Nearly always one line places or replicates all instances of a region.
  std::set<std::vector<Symbol>> reported;
  for (std::size_t n = 0; n < cuts_.size(); ++n) {
    if (!runs_body(dag_.nodes[n].kind) || (repeated_by(n) & used) == 0) continue;
    const Chunk& chunk = dag_.chunks[dag_.nodes[n].chunk.index()];
    std::vector<Symbol> path;
    for (RegionId region = chunk.region; region.valid(); region = dag_.regions.parent(region))
      path.push_back(dag_.regions.name(region));
    if (!reported.insert(std::move(path)).second) continue;
    const std::string axes = axes_text(repeated_by(n) & used);
    sink_
        .report(Code::repeated_work, chunk.loc,
                "`{}` does not use {}: the devices there all do the same work of it",
                region_text(dag_, chunk), axes)
        .hint("replicate it over {}, as what stands beside it is, or place it on one coordinate",
              axes);
  }
}

/// The axes along which several devices run a node on the same samples.
AxisMask Replicator::repeated_by(std::size_t node) const {
  AxisMask repeated = whole_[dag_.nodes[node].devices.index()] & ~cuts_[node];
  for (std::size_t a = 0; a < dag_.mesh.axes.size(); ++a) {
    if (dag_.mesh.axes[a].size == 1) repeated &= ~(AxisMask{1} << a);
  }
  return repeated;
}

// ---- rewrite

/// The layout restricted to these axes.
LayoutId Replicator::on(LayoutId layout, AxisMask axes) const {
  Layout kept;
  for (const Layout::Axis& axis : dag_.context->layouts[layout].axes) {
    if ((axes >> dag_.mesh.find(axis.name) & 1) != 0) kept.axes.push_back(axis);
  }
  return dag_.context->layouts.intern(std::move(kept));
}

/// Gives the values of a body their layouts on these axes.
void Replicator::lay_out(Body& body, AxisMask cut) const {
  for (tensor::Value& value : body.graph.mutable_values()) {
    if (!value.layout.replicated()) value.layout = on(value.layout, cut);
  }
}

/// A chunk on device sets with different sharding has several bodies.
void Replicator::lay_out_bodies() {
  std::map<std::pair<BodyId, AxisMask>, BodyId> variants;
  std::vector<bool> taken(dag_.bodies.size());
  std::vector<std::pair<BodyId, AxisMask>> to_lay_out;
  const std::size_t bodies = dag_.bodies.size();
  std::vector<Body> added;
  struct Last {
    AxisMask cut = 0;
    BodyId variant;
  };
  // The passes of a chunk alternate, but their sharding rarely changes.
  std::vector<Last> last(bodies);
  llvm::DenseSet<Symbol> names;
  NodePolls polls(dag_.context->cancellation);
  for (std::size_t n = 0; n < cuts_.size(); ++n) {
    polls.visit();
    if (!runs_body(dag_.nodes[n].kind)) continue;
    Node& node = dag_.nodes[n];
    Last& known = last[node.body.index()];
    if (known.variant.valid() && known.cut == cuts_[n]) {
      node.body = known.variant;
      continue;
    }
    const auto [entry, fresh] = variants.try_emplace({node.body, cuts_[n]});
    if (fresh) {
      entry->second = node.body;
      if (taken[node.body.index()]) {
        entry->second = BodyId::at(bodies + added.size());
        added.push_back(dag_.bodies[node.body.index()]);
        const std::string name = std::string(text(added.back().name)) + ".of" +
                                 std::to_string(dag_.samples_divisor(node) * dag_.extent(cuts_[n]));
        added.back().name = dag_.context->symbol(name);
        for (int i = 2; !names.insert(added.back().name).second; ++i)
          added.back().name = dag_.context->symbol(name + ".no" + std::to_string(i));
      }
      taken[node.body.index()] = true;
      to_lay_out.push_back({entry->second, cuts_[n]});
    }
    known = {cuts_[n], entry->second};
    node.body = entry->second;
  }
  for (Body& body : added) dag_.bodies.push_back(std::move(body));
  for (const auto& [body, cut] : to_lay_out) lay_out(dag_.bodies[body.index()], cut);
}

bool Replicator::run() {
  chosen_.resize(dag_.chunks.size() * dag_.mesh.axes.size());
  cuts_.resize(dag_.nodes.size());
  for (std::size_t s = 0; s < dag_.device_sets.size(); ++s)
    whole_.push_back(dag_.device_sets[DeviceSetId::at(s)].whole_axes());
  bool good = true;
  for (const directive::Directive& directive : strategy_.directives) {
    if (const auto* replicate = std::get_if<Replicate>(&directive))
      good = good && apply(*replicate);
  }
  if (!good) return false;
  if (!set_cuts() || !check_edges()) return false;
  warn_of_repeated_work();
  lay_out_bodies();
  dag_.level = Level::placed;
  const std::optional<std::vector<BucketRules>> rules = bucket_rules();
  return rules && make_buckets(dag_, *rules, sink_);
}

/// Nothing after reporting axes that shard the parameters of one chunk in different ways.
std::optional<std::vector<BucketRules>> Replicator::bucket_rules() {
  std::vector<BucketRules> rules(dag_.chunks.size());
  for (std::size_t c = 0; c < dag_.chunks.size(); ++c) {
    std::uint32_t specificity = 0;
    const Replicate* cuts = nullptr;
    for (std::size_t a = 0; a < dag_.mesh.axes.size(); ++a) {
      const Chosen& chosen = chosen_[c * dag_.mesh.axes.size() + a];
      if (chosen.directive == nullptr) continue;
      const Replicate& replicate = *chosen.directive;
      if (!rules[c].line.valid() || (replicate.zero > 0 && cuts == nullptr))
        rules[c].line = replicate.loc;
      if (replicate.zero > 0) {
        rules[c].flat |= AxisMask{1} << a;
        if (cuts != nullptr && !sharded_alike(*cuts, replicate))
          return report_mixed(dag_.chunks[c], *cuts, replicate), std::nullopt;
        cuts = &replicate;
        rules[c].zero = replicate.zero;
        rules[c].reduced = reduce_of(replicate);
        rules[c].prefetch = replicate.prefetch.value_or(0);
      }
      if (!replicate.bucket_bytes || chosen.specificity < specificity) continue;
      specificity = chosen.specificity;
      rules[c].bytes = *replicate.bucket_bytes;
    }
  }
  return rules;
}

directive::Reduce Replicator::reduce_of(const Replicate& replicate) {
  // By `zero`.
  constexpr directive::Reduce kDefaults[] = {directive::Reduce::step, directive::Reduce::step,
                                             directive::Reduce::microbatch,
                                             directive::Reduce::unit};
  return replicate.reduce.value_or(kDefaults[replicate.zero]);
}

bool Replicator::sharded_alike(const Replicate& a, const Replicate& b) {
  return a.zero == b.zero && reduce_of(a) == reduce_of(b) &&
         a.prefetch.value_or(0) == b.prefetch.value_or(0);
}

void Replicator::report_mixed(const Chunk& chunk, const Replicate& a, const Replicate& b) const {
  sink_
      .report(
          Code::zero_mixed, directive::narrowest(b.zero_loc, b.loc),
          "`{}` is sharded over two axes in different ways: `zero`, `reduce` or `prefetch` differs",
          region_text(dag_, chunk))
      .related(a.loc, "the other `replicate` stands here")
      .hint(
          "write the same settings for both axes, or `zero: 0` for one of them: it then reduces full copies or shards");
}

}  // namespace

bool replicate(Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink) {
  return Replicator(dag, strategy, sink).run();
}

}  // namespace piper::passes
