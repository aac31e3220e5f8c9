#include "passes/transform/buckets.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "ir/dag/segment_text.h"
#include "ir/dag/value_layout.h"
#include "ir/layout/box.h"
#include "llvm/ADT/DenseSet.h"

namespace piper::passes {

using namespace dag;

namespace {

/// Work of one chunk on one device set that uses a parameter.
struct Use {
  ChunkId chunk;
  DeviceSetId devices;
  // axes along which its gradients are partial; without gradients those over which its samples are
  // sharded, if it has any.
  std::optional<AxisMask> axes;
  bool makes_gradient = false;
};

/// Work without samples takes the axes of the other uses.
void complete(std::span<Use> uses) {
  std::optional<AxisMask> axes;
  for (const Use& use : uses) axes = use.makes_gradient || !axes ? use.axes : axes;
  for (Use& use : uses) use.axes = use.axes ? use.axes : axes.value_or(0);
}

/// The uses of each parameter: below level placed by the bodies of chunks, from there on by nodes.
std::vector<std::vector<Use>> uses_of(const Dag& dag) {
  std::vector<std::vector<Use>> uses(dag.params.size());
  const auto add = [&](const Use& use, NodeId node, const Body& body) {
    const auto touch = [&](tensor::ParamId param, std::optional<AxisMask> gradient) {
      std::vector<Use>& list = uses[param.index()];
      const auto same = std::find_if(list.begin(), list.end(), [&](const Use& u) {
        return u.chunk == use.chunk && u.devices == use.devices;
      });
      Use& entry = same == list.end() ? list.emplace_back(use) : *same;
      if (!gradient) return;
      entry.makes_gradient = true;
      entry.axes = gradient;
    };
    for (const BodyPort& port : body.inputs) {
      if (port.kind == PortKind::param) touch(port.param, std::nullopt);
    }
    for (std::uint32_t i = 0; i < body.outputs.size(); ++i) {
      if (body.outputs[i].kind == PortKind::grad)
        touch(body.outputs[i].param, summed_axes(dag, {node, i}));
    }
  };
  // The passes of a chunk alternate, but their devices rarely change.
  std::vector<DeviceSetId> last(dag.bodies.size());
  llvm::DenseSet<std::uint64_t> seen;
  for (std::size_t n = 0; n < dag.nodes.size(); ++n) {
    const Node& node = dag.nodes[n];
    if (!runs_body(node.kind)) continue;
    if (node.devices.valid() && node.devices == last[node.body.index()]) continue;
    last[node.body.index()] = node.devices;
    if (!seen.insert(std::uint64_t{node.body.value()} << 32 |
                     (node.devices.valid() ? node.devices.value() : 0))
             .second)
      continue;
    const Body& body = dag.bodies[node.body.index()];
    add({node.chunk, node.devices, sample_axes(dag, body), false}, NodeId::at(n), body);
  }
  for (std::vector<Use>& of_param : uses) complete(of_param);
  return uses;
}

/// Groups parameters with equal keys, in parameter order; each bucket has the size limit of its
/// first parameter.
class BucketFiller {
 public:
  explicit BucketFiller(Dag& dag) : dag_(dag) { dag.buckets.clear(); }

  void add(tensor::ParamId param, const std::vector<std::uint32_t>& key, const Bucket& like,
           ChunkId user, std::int64_t limit) {
    const std::int64_t bytes = dag_.param_types[param.index()].bytes();
    const auto [entry, fresh] = open_.try_emplace(key);
    Open& open = entry->second;
    if (fresh || open.bytes + bytes > open.limit) {
      open = {BucketId::at(dag_.buckets.size()), 0, limit};
      Bucket bucket = like;
      const Symbol chunk = dag_.chunks[user.index()].name;
      bucket.name = dag_.context->symbol(std::string(dag_.context->text(chunk)) + "." +
                                         std::to_string(numbers_[chunk]++));
      if (!bucket.loc.valid()) bucket.loc = dag_.params[param.index()].loc;
      dag_.buckets.push_back(std::move(bucket));
    }
    open.bytes += bytes;
    dag_.buckets[open.bucket.index()].params.push_back(param);
  }

 private:
  struct Open {
    BucketId bucket;
    std::int64_t bytes = 0, limit = 0;
  };
  Dag& dag_;
  std::map<std::vector<std::uint32_t>, Open> open_;
  std::map<Symbol, std::uint32_t> numbers_;
};

constexpr std::int64_t kNoLimit = INT64_MAX;

/// The chunks that use a parameter, and those of them that make a gradient.
void add_users(std::span<const Use> uses, std::vector<std::uint32_t>& key) {
  std::vector<std::uint32_t> users;
  for (const Use& use : uses) users.push_back(use.chunk.value() * 2 + (use.makes_gradient ? 1 : 0));
  std::sort(users.begin(), users.end());
  users.erase(std::unique(users.begin(), users.end()), users.end());
  key.insert(key.end(), users.begin(), users.end());
}

/// The parameters in their order, frozen ones after all others.
std::vector<std::size_t> frozen_last(const Dag& dag) {
  std::vector<std::size_t> order(dag.params.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_partition(order.begin(), order.end(),
                        [&](std::size_t p) { return !dag.params[p].frozen; });
  return order;
}

}  // namespace

void make_buckets(Dag& dag) {
  const std::vector<std::vector<Use>> uses = uses_of(dag);
  BucketFiller filler(dag);
  for (const std::size_t p : frozen_last(dag)) {
    if (uses[p].empty()) continue;
    std::vector<std::uint32_t> key{dag.params[p].frozen};
    for (const Use& use : uses[p]) key.push_back(use.chunk.value());
    std::sort(key.begin() + 1, key.end());
    filler.add(tensor::ParamId::at(p), key, {}, ChunkId(key[1]), kNoLimit);
  }
}

bool make_buckets(Dag& dag, std::span<const BucketRules> rules, DiagnosticSink& sink) {
  const std::vector<std::vector<Use>> uses = uses_of(dag);
  // A frozen bucket has no state except its parameters.
  const auto flat = [&](const Use& use, bool frozen) {
    const BucketRules& rule = rules[use.chunk.index()];
    return frozen && rule.zero < 3 ? 0 : *use.axes & rule.flat;
  };
  const auto sharded_alike = [&](const Use& a, const Use& b, bool frozen) {
    const BucketRules &x = rules[a.chunk.index()], &y = rules[b.chunk.index()];
    return flat(a, frozen) == flat(b, frozen) &&
           (flat(a, frozen) == 0 ||
            (x.zero == y.zero && x.reduced == y.reduced && x.prefetch == y.prefetch));
  };
  BucketFiller filler(dag);
  LayoutTable& layouts = dag.context->layouts;
  for (const std::size_t p : frozen_last(dag)) {
    if (uses[p].empty()) continue;
    const bool frozen = dag.params[p].frozen;  // its gradient is never made
    const std::string_view name = dag.context->text(dag.params[p].name);
    const LocId loc = dag.params[p].loc;
    Bucket like;
    std::vector<bool> has_gradient;
    bool fits = true;
    for (const Use& use : uses[p]) {
      auto owner = std::find(like.owners.begin(), like.owners.end(), use.devices);
      if (owner == like.owners.end()) {
        for (const DeviceSetId other : like.owners) {
          if (!fits || !dag.device_sets[other].intersects(dag.device_sets[use.devices])) continue;
          sink.report(
                  Code::owners_overlap, loc,
                  "weight `{}` is used on `{}` and on `{}`, which have devices in common but differ",
                  name, dag.text(other), dag.text(use.devices))
              .related(dag.chunks[use.chunk.index()].loc, "`{}` uses it here",
                       region_text(dag, use.chunk))
              .hint("place what uses one weight on equal or on disjoint device sets");
          fits = false;
        }
        owner = like.owners.insert(like.owners.end(), use.devices);
        has_gradient.push_back(false);
      }
      if (use.makes_gradient)
        has_gradient[static_cast<std::size_t>(owner - like.owners.begin())] = true;
      if (use.axes != uses[p].front().axes && fits && !frozen) {
        const Use& first = uses[p].front();
        sink.report(
                Code::gradients_reduced_differently, loc,
                "`{}` and `{}` use weight `{}` but divide their samples over different mesh axes",
                region_text(dag, first.chunk), region_text(dag, use.chunk), name)
            .hint("replicate both regions over the same axes");
        fits = false;
      }
      if (!sharded_alike(use, uses[p].front(), frozen) && fits) {
        const Use& first = uses[p].front();
        sink.report(
                Code::state_sharded_differently, loc,
                "`{}` and `{}` use weight `{}`, which they shard in different ways: `zero`, or another setting of its line, differs",
                region_text(dag, first.chunk), region_text(dag, use.chunk), name)
            .hint(
                "one weight has one layout: write the same settings of `replicate` for both regions");
        fits = false;
      }
    }
    if (!fits) return false;  // the other weights of the same regions would only repeat it
    // An owner makes the gradients of all parameters of a bucket or of none.
    std::vector<std::uint32_t> contributing;
    for (std::size_t h = 0; h < like.owners.size(); ++h) {
      if (has_gradient[h]) contributing.push_back(like.owners[h].value());
    }
    std::sort(contributing.begin(), contributing.end());
    std::sort(like.owners.begin(), like.owners.end(), [&](DeviceSetId a, DeviceSetId b) {
      return dag.device_sets[a].at < dag.device_sets[b].at;
    });
    like.unreduced = layouts.intern(
        layout_over(frozen ? 0 : *uses[p].front().axes, AxisLayout::partial(), dag.mesh));
    const BucketRules& rule = rules[uses[p].front().chunk.index()];
    if (const LayoutId blocks = layouts.intern(
            layout_over(flat(uses[p].front(), frozen), AxisLayout::flat_sharded(), dag.mesh));
        !blocks.replicated()) {
      if (!frozen) like.state = blocks;
      if (!frozen && rule.zero > 1) like.gradients = blocks;
      if (rule.zero > 2) like.parameters = blocks;
      if (rule.zero > 1) like.reduced = rule.reduced;
      if (rule.zero > 2) like.prefetch = rule.prefetch;
    }
    if (!like.unreduced.replicated() || like.sharded()) like.loc = rule.line;
    ChunkId user = uses[p].front().chunk;
    for (const Use& use : uses[p]) user = std::min(user, use.chunk);
    const bool reduced = !frozen && (!like.unreduced.replicated() || like.owners.size() > 1),
               travels = reduced || like.sharded();
    std::vector<std::uint32_t> key{frozen,
                                   like.unreduced.value(),
                                   like.state.value(),
                                   like.gradients.value(),
                                   like.parameters.value(),
                                   reduced ? 0xFFFFFFFFu : user.value(),
                                   static_cast<std::uint32_t>(like.reduced),
                                   like.prefetch};
    for (const DeviceSetId owner : like.owners) key.push_back(owner.value());
    key.insert(key.end(), contributing.begin(), contributing.end());
    if (like.gathered_per_use()) add_users(uses[p], key);
    filler.add(tensor::ParamId::at(p), key, like, user,
               travels ? rules[user.index()].bytes : kNoLimit);
  }
  return true;
}

}  // namespace piper::passes
