#include <algorithm>
#include <set>

#include "ir/verify/facts.h"

namespace piper::verify {

namespace {

/// Owners of buckets are the devices of the work that reads or trains them, and have several
/// devices along the axes of their layouts. Frozen buckets and those of forward-only programs have
/// no update that would show it.
class Homes {
 public:
  explicit Homes(Facts& facts)
      : facts_(facts),
        dag_(facts.dag),
        bucket_of_(dag_.params.size(), kNone),
        used_(dag_.buckets.size()) {
    for (std::uint32_t b = 0; b < dag_.buckets.size(); ++b) {
      for (const tensor::ParamId param : dag_.buckets[b].params) bucket_of_[param.index()] = b;
    }
  }

  void check() {
    if (dag_.level < Level::placed) return;  // placement is under way
    for (std::size_t b = 0; b < dag_.buckets.size() && !facts_.enough(); ++b)
      layouts(dag_.buckets[b]);
    if (!facts_.ok()) return;
    find_users();
    for (std::size_t b = 0; b < dag_.buckets.size() && !facts_.enough(); ++b) owners(b);
  }

 private:
  template <typename... Args>
  void wrong(Code code, const dag::Bucket& bucket,
             MessagePattern<std::type_identity_t<Args>...> pattern, const Args&... args) {
    facts_.sink.report(code, bucket.loc, pattern, args...);
  }

  void layouts(const dag::Bucket& bucket) {
    if (dag_.forward_only && !bucket.unreduced.replicated())
      return wrong(
          Code::wrong_layout, bucket,
          "bucket `{}` says how its gradients are made, and a forward-only program makes none",
          facts_.text(bucket.name));
    for (const LayoutId layout :
         {bucket.unreduced, bucket.state, bucket.gradients, bucket.parameters}) {
      for (const Layout::Axis& axis : dag_.context->layouts[layout].axes) {
        const std::size_t at = dag_.mesh.find(axis.name);
        const auto several = [&](DeviceSetId owner) {
          return at < dag_.mesh.axes.size() && dag_.mesh.axes[at].size > 1 &&
                 (dag_.device_sets[owner].whole_axes() >> at & 1) != 0;
        };
        const auto one = std::find_if_not(bucket.owners.begin(), bucket.owners.end(), several);
        if (one == bucket.owners.end()) continue;
        return wrong(Code::wrong_layout, bucket,
                     "bucket `{}` is laid out over `{}`, along which its owner `{}` has one device",
                     facts_.text(bucket.name), facts_.text(axis.name), facts_.text(*one));
      }
    }
  }

  /// Instances of a chunk use the same parameters, so each body is checked once per device set;
  /// ports of a shared body name the parameters of one of its chunks.
  void find_users() {
    std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> seen;  // body, chunk, devices
    std::vector<std::pair<DeviceSetId, dag::ChunkId>> last(dag_.bodies.size());
    for (std::size_t i = 0; i < dag_.nodes.size(); ++i) {
      if (!runs_body(facts_.kind[i])) continue;
      const Node& node = dag_.nodes[i];
      const std::pair now(node.devices, node.chunk);
      if (!node.devices.valid() || last[node.body.index()] == now) continue;
      last[node.body.index()] = now;
      if (seen.emplace(node.body.value(), node.chunk.value(), node.devices.value()).second)
        touch(NodeId::at(i), node);
    }
  }

  void touch(NodeId id, const Node& node) {
    const dag::Body& body = dag_.bodies[node.body.index()];
    const bool shared = facts_.shared_body[node.body.index()];
    const auto use = [&](std::uint32_t bucket) {
      if (bucket != kNone) used_[bucket].insert(node.devices);
    };
    for (const Input& input : dag_.inputs_of(node)) {
      if (body.inputs[input.port].kind != PortKind::param) continue;
      use(shared && input.source.node.valid()
              ? facts_.node(input.source.node).subject.bucket().value()
              : bucket_of_[body.inputs[input.port].param.index()]);
    }
    for (std::uint32_t k = 0; k < body.outputs.size(); ++k) {
      if (body.outputs[k].kind != PortKind::grad || dag_.forward_only) continue;
      const std::uint32_t to = shared && !facts_.added_to.empty()
                                   ? facts_.added_to[facts_.output({id, k})]
                                   : body.outputs[k].param.value();
      if (to != kNone) use(bucket_of_[to]);
    }
  }

  /// A forward-only program keeps the owners of training, whether they read the parameters or not.
  void owners(std::size_t b) {
    const dag::Bucket& bucket = dag_.buckets[b];
    const std::set<DeviceSetId> owners(bucket.owners.begin(), bucket.owners.end());
    if (owners.size() < bucket.owners.size())
      return wrong(Code::wrong_update, bucket, "bucket `{}` names one of its owners twice",
                   facts_.text(bucket.name));
    for (const DeviceSetId used : used_[b]) {
      if (!owners.contains(used))
        return wrong(Code::wrong_update, bucket,
                     "work on `{}` uses parameters of bucket `{}`, which has no owner there",
                     facts_.text(used), facts_.text(bucket.name));
    }
    for (const DeviceSetId owner : owners) {
      if (!dag_.forward_only && !used_[b].contains(owner))
        return wrong(Code::wrong_update, bucket,
                     "nothing uses the parameters of bucket `{}` on its owner `{}`",
                     facts_.text(bucket.name), facts_.text(owner));
    }
  }

  Facts& facts_;
  const Dag& dag_;
  std::vector<std::uint32_t> bucket_of_;  // per parameter
  // Per bucket: devices of work that reads its parameters or makes their gradients.
  std::vector<std::set<DeviceSetId>> used_;
};

}  // namespace

void check_owners(Facts& facts) { Homes(facts).check(); }

}  // namespace piper::verify
