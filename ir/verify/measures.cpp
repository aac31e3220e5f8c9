#include <algorithm>
#include <cstdio>
#include <optional>

#include "ir/verify/boxes.h"
#include "ir/verify/plan_facts.h"

namespace piper::verify {

namespace {

using dag::EdgeClass;
using directive::Measure;

/// The measures in bytes that a `require` of the header bounds, from the actions and messages of
/// the plan. The simulator computes bubbles.
class Measures {
 public:
  explicit Measures(const Facts& facts) : facts_(facts), dag_(facts.dag) {}

  std::optional<double> of(Measure measure) const {
    switch (measure) {
      case Measure::peak_memory:
        return most([](const dag::Role& role) { return role.arena_bytes; });
      case Measure::host_memory:
        return most([&](const dag::Role& role) { return role.host_bytes + staged(role); });
      case Measure::traffic: return traffic();
      case Measure::bubble: break;
    }
    return std::nullopt;
  }

 private:
  template <typename Bytes>
  double most(const Bytes& bytes) const {
    std::int64_t most = 0;
    for (const dag::Role& role : dag_.plan->roles) most = std::max(most, bytes(role));
    return static_cast<double>(most);
  }

  /// The bytes from which a device of a role writes its part of a checkpoint: the state of the
  /// buckets whose first owner it belongs to, shared with the other devices that hold it.
  std::int64_t staged(const dag::Role& role) const {
    if (!dag_.settings.checkpoint) return 0;
    std::int64_t bytes = 0;
    for (std::size_t b = 0; b < dag_.buckets.size(); ++b) {
      const DeviceSet& owner = dag_.device_sets[dag_.buckets[b].owners.front()];
      bool owns = true;
      for (std::size_t axis = 0; axis < owner.at.size(); ++axis)
        owns &= owner.at[axis] == DeviceSet::kWhole || owner.at[axis] == role.at[axis];
      if (owns)
        bytes += staged(dag_.buckets[b], dag_.frozen(dag_.buckets[b]),
                        static_cast<std::int64_t>(owner.devices(dag_.mesh)));
    }
    return bytes;
  }

  std::int64_t staged(const dag::Bucket& bucket, bool frozen, std::int64_t devices) const {
    const std::int64_t shares = shares_of(dag_, bucket),
                       block = bucket_elements(dag_, bucket) / shares;
    const std::int64_t slots = frozen ? 0 : slots_of(dag_, bucket);
    // A checkpoint has the master weights, which are in a slot, in place of narrow parameters.
    const bool masters = slots > 0 && tensor::is_narrow(parameter_dtype(dag_, bucket));
    const std::int64_t values = masters ? 0 : parameter_bytes(dag_, bucket, 1),
                       state = slots * gradient_bytes(dag_, bucket, 1);
    const auto rounded = [](std::int64_t elements, std::int64_t holders) {
      return elements / holders + (elements % holders != 0 ? 1 : 0);
    };
    std::int64_t largest = 0;
    for (std::int64_t share = 0; share < shares; ++share) {
      const std::int64_t begin = share * block;
      std::int64_t bytes = 0, at = 0;
      for (const tensor::ParamId param : bucket.params) {
        const std::int64_t elements = dag_.param_types[param.index()].elements();
        const std::int64_t from = std::clamp(begin - at, std::int64_t{0}, elements),
                           to = std::clamp(begin + block - at, std::int64_t{0}, elements);
        const std::int64_t all = rounded(elements, devices),
                           here = rounded(to - from, devices / shares);
        bytes += values * (bucket.parameters.replicated() ? all : here) +
                 state * (bucket.state.replicated() ? all : here);
        at += whole_elements(dag_, param);
      }
      largest = std::max(largest, bytes);
    }
    return largest;
  }

  /// Bytes of a member's inputs on one device, each port once.
  std::int64_t brought(const Node& member) const {
    std::int64_t bytes = 0;
    if (const auto bucket = member.subject.bucket();
        bucket.valid() && dag_.buckets[bucket.index()].sharded()) {
      // The whole bucket moves with its padding, or one shard of it.
      const dag::Bucket& flat = dag_.buckets[bucket.index()];
      const std::int64_t elements =
          bucket_elements(dag_, flat) / (reduces_to_all(member.kind) ? shares_of(dag_, flat) : 1);
      return gathers_shards(member.kind) ? parameter_bytes(dag_, flat, elements)
                                         : gradient_bytes(dag_, flat, elements);
    }
    for_each_port(dag_, member, [&](std::span<const Input> sources) {
      bytes += facts_.output_bytes[facts_.output(sources[0].source)];
    });
    return bytes;
  }

  /// The bytes of a message's values on all devices of its sender together.
  std::int64_t sent(const Node& sender, std::int64_t devices) const {
    std::int64_t bytes = 0;
    for_each_port(dag_, sender, [&](std::span<const Input> sources) {
      const Port origin = facts_.origin_of(sources[0].source);
      const Node& maker = facts_.node(origin.node);
      LayoutId layout = maker.layout;
      if (runs_body(maker.kind)) {
        const dag::Body& body = dag_.bodies[maker.body.index()];
        layout = body.graph.value(body.outputs[origin.index].value).layout;
      }
      bytes += dag_.output_type(origin).bytes() * (devices / shards_of(dag_, layout));
    });
    return bytes;
  }

  /// The bytes that all devices send. In a ring of n devices each sends its input n - 1 times for a
  /// gather of lists, 2 (n - 1) / n times for an all-reduce, and the full buffer (n - 1) / n times
  /// for a reduce-scatter or an all-gather.
  double traffic() const {
    std::int64_t total = 0;
    for (const dag::Comm& comm : dag_.comms) {
      const Node& first = facts_.node(comm.members.front());
      std::int64_t bytes = 0;
      for (const NodeId member : comm.members) bytes += brought(facts_.node(member));
      const auto devices =
          static_cast<std::int64_t>(dag_.device_sets[first.devices].devices(dag_.mesh));
      std::int64_t joined = 1;
      for (std::size_t axis = 0; axis < dag_.mesh.axes.size(); ++axis)
        joined *= (comm.axes >> axis & 1) != 0 ? dag_.mesh.axes[axis].size : 1;
      const auto sets = static_cast<std::int64_t>(comm.members.size());
      const std::int64_t rings = devices / joined, in_ring = joined * sets;
      switch (traits(first.kind).comm_op) {
        case dag::CommOp::none:
        case dag::CommOp::offload:
        case dag::CommOp::fetch: break;  // only between devices
        case dag::CommOp::send:
        case dag::CommOp::recv: total += sent(first, devices); break;
        case dag::CommOp::all_gather_v: total += rings * joined * bytes * (in_ring - 1); break;
        case dag::CommOp::reduce_scatter:
        case dag::CommOp::all_gather: total += rings * (in_ring - 1) * bytes; break;
        case dag::CommOp::all_reduce: total += rings * 2 * (in_ring - 1) * (bytes / sets); break;
      }
    }
    return static_cast<double>(total);
  }

  const Facts& facts_;
  const Dag& dag_;
};

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

}  // namespace

void check_measures(const Facts& facts) {
  if (facts.dag.forward_only) return;  // the bounds are those of training
  const Measures measures(facts);
  for (const directive::Require& require : facts.dag.requirements) {
    const std::optional<double> found = measures.of(require.measure);
    if (!found || directive::holds(*found, require.compare, require.bound)) continue;
    facts.sink.report(Code::measure_out_of_bounds, require.loc,
                      "`{}` of this plan is {}, but {} {} is required{}",
                      directive::kMeasureNames[static_cast<std::size_t>(require.measure)],
                      number(*found),
                      directive::kCompareNames[static_cast<std::size_t>(require.compare)],
                      number(require.bound), require.message.empty() ? "" : ": " + require.message);
  }
}

}  // namespace piper::verify
