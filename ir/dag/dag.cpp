#include "ir/dag/dag.h"

#include <algorithm>
#include <map>

#include "ir/dag/bucket_layout.h"
#include "ir/dag/plan.h"
#include "llvm/ADT/DenseMap.h"

namespace piper::dag {

std::string_view port_kind_name(PortKind kind) {
  constexpr std::string_view kNames[] = {"data", "saved", "param", "grad", "loss_sum", "count"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view level_name(Level level) {
  constexpr std::string_view kNames[] = {"built",         "split",   "placed",
                                         "communicating", "ordered", "planned"};
  return kNames[static_cast<std::size_t>(level)];
}

std::optional<NodeKind> parse_kind(std::string_view name) {
  for (std::size_t i = 0; i < kNodeTraits.size(); ++i) {
    if (kNodeTraits[i].name == name) return static_cast<NodeKind>(i);
  }
  return std::nullopt;
}

/// Caches of facts that follow from nodes.
struct Dag::Derived {
  explicit Derived(Context& context)
      : scalar(context.symbol("scalar")),
        param(context.symbol("param")),
        element(context.symbol("element")) {}
  Symbol scalar, param, element;  // interned before several threads look at the DAG
  // of outputs that no body or parameter declares; few, because they depend on extents alone
  std::map<std::tuple<NodeKind, Subject, std::int64_t>, tensor::Type> types;

  /// The layouts of the loads of one input for one instance on one device set.
  struct LoadLayouts {
    LayoutId first;
    bool differ = false;
  };
  using LoadKey = std::pair<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>>;
  llvm::DenseMap<LoadKey, LoadLayouts> load_layouts;

  static LoadKey key_of(const Node& load) {
    const auto both = [](auto high, auto low) {
      return std::uint64_t{static_cast<std::uint32_t>(high)} << 32 |
             static_cast<std::uint32_t>(low);
    };
    static_assert(kMaxSplitDims == 4);
    const auto& at = load.instance.at;
    return {both(load.subject.input().value(), load.devices.value()),
            {both(at[0], at[1]), both(at[2], at[3])}};
  }

  bool loads_differ(const Node& load) const {
    const auto found = load_layouts.find(key_of(load));
    return found != load_layouts.end() && found->second.differ;
  }

  /// One device's shard of the parameters of a bucket, or of its sums.
  const tensor::Type& block(const Dag& dag, Subject subject, bool sums) {
    const auto [entry, fresh] =
        types.try_emplace({sums ? NodeKind::reduce_scatter : NodeKind::update, subject, 0});
    if (fresh) {
      const BucketLayout layout = bucket_layout(dag, dag.buckets[subject.bucket().index()]);
      entry->second = {sums ? layout.sums : layout.parameters, {{element, layout.block(), false}}};
    }
    return entry->second;
  }

  /// The optimizer state of one device's shard, slot after slot.
  const tensor::Type& state(const Dag& dag, Subject subject) {
    const auto [entry, fresh] = types.try_emplace({NodeKind::fetch, subject, 0});
    if (fresh) {
      entry->second = block(dag, subject, true);
      entry->second.dims.front().extent *=
          bucket_layout(dag, dag.buckets[subject.bucket().index()]).slots;
    }
    return entry->second;
  }
};

namespace {

/// The number of values of a sum_squares of the bucket: one per parameter, or one for the shard.
std::int64_t num_squares(const Bucket& bucket) {
  return bucket.sharded() ? 1 : static_cast<std::int64_t>(bucket.params.size());
}

}  // namespace

Dag::Dag(Context& context) : context(&context), derived_(std::make_unique<Derived>(context)) {}
Dag::Dag(Dag&&) = default;
Dag& Dag::operator=(Dag&&) = default;
Dag::~Dag() = default;

NodeId Dag::add(const Node& node, std::span<const Input> inputs) {
  const NodeId id = NodeId::at(nodes.size());
  nodes.push_back(node);
  nodes.back().first_input = 0;
  nodes.back().num_inputs = 0;
  if (node.kind == NodeKind::load) note_load(node);
  set_inputs(id, inputs);
  return id;
}

void Dag::note_load(const Node& load) {
  const auto [entry, fresh] = derived_->load_layouts.try_emplace(Derived::key_of(load));
  Derived::LoadLayouts& known = entry->second;
  if (fresh) known.first = load.layout;
  known.differ = known.differ || known.first != load.layout;
}

void Dag::forget_loads() { derived_->load_layouts.clear(); }

void Dag::set_inputs(NodeId id, std::span<const Input> inputs) {
  Node& node = nodes[id.index()];
  const std::uint32_t first = static_cast<std::uint32_t>(edges.size());
  if (!inputs.empty() && inputs.data() >= edges.data() &&
      inputs.data() < edges.data() + edges.size()) {
    // The pool may move while it grows.
    const std::vector<Input> copy(inputs.begin(), inputs.end());
    edges.insert(edges.end(), copy.begin(), copy.end());
  } else {
    edges.insert(edges.end(), inputs.begin(), inputs.end());
  }
  const auto by_port = [](const Input& a, const Input& b) { return a.port < b.port; };
  if (!std::is_sorted(edges.begin() + first, edges.end(), by_port))
    std::stable_sort(edges.begin() + first, edges.end(), by_port);
  node.first_input = first;
  node.num_inputs = static_cast<std::uint32_t>(inputs.size());
}

std::span<const Input> Dag::inputs_of(const Node& node, std::uint32_t port) const {
  const std::span<const Input> all = inputs_of(node);
  const auto first = std::partition_point(all.begin(), all.end(),
                                          [&](const Input& input) { return input.port < port; });
  return {first, std::partition_point(first, all.end(),
                                      [&](const Input& input) { return input.port == port; })};
}

std::int64_t Dag::samples_divisor(const Node& node) const {
  std::int64_t parts = 1;
  for (std::size_t i = 0; i < dims.size() && i < kMaxSplitDims; ++i) {
    if (node.instance.at[i] != Instance::kNone) parts *= dims[i].extent;
  }
  return parts;
}

std::size_t Dag::trained_buckets() const {
  return static_cast<std::size_t>(
      std::partition_point(buckets.begin(), buckets.end(),
                           [&](const Bucket& bucket) { return !frozen(bucket); }) -
      buckets.begin());
}

AxisMask Dag::reduced_over(const Bucket& bucket) const {
  return mask_of(context->layouts[bucket.unreduced], AxisLayout::partial(), mesh);
}

AxisMask Dag::sharded_over(const Bucket& bucket) const {
  return mask_of(context->layouts[sharded_layout(bucket)], AxisLayout::flat_sharded(), mesh);
}

std::int64_t Dag::extent(AxisMask axes) const {
  std::int64_t devices = 1;
  for (std::size_t i = 0; i < mesh.axes.size(); ++i) {
    if ((axes >> i & 1) != 0) devices *= mesh.axes[i].size;
  }
  return devices;
}

Symbol Dag::subject_symbol(Subject subject) const {
  if (subject.input().valid()) return inputs[subject.input().index()].name;
  if (subject.loss().valid()) return losses[subject.loss().index()].name;
  if (subject.count().valid()) return losses[subject.count().index()].name;
  return subject.bucket().valid() ? buckets[subject.bucket().index()].name : Symbol();
}

std::string_view Dag::subject_name(Subject subject) const {
  const Symbol symbol = subject_symbol(subject);
  return symbol.valid() ? context->text(symbol) : subject.is_norm() ? "norm" : "";
}

const Node& Dag::adding_member(const Node& reduction) const {
  if (reduction.num_inputs > 0 || !reduction.comm.valid()) return reduction;
  for (const NodeId member : comms[reduction.comm.index()].members) {
    if (node(member).num_inputs > 0) return node(member);
  }
  return reduction;
}

const tensor::Type& Dag::output_type(Port port) const {
  // Sends, sums and reductions keep the type of their input: follow it to its producer.
  for (;;) {
    const Node& node = nodes[port.node.index()];
    const auto source_of = [&](const Node& reader, std::uint32_t input) {
      const std::span<const Input> sources = inputs_of(reader, input);
      return sources.empty() ? Port{} : sources.front().source;
    };
    Port next;
    switch (node.kind) {
      case NodeKind::chunk: {
        const Body& body = bodies[node.body.index()];
        return body.graph.type(body.outputs[port.index].value);
      }
      case NodeKind::load: {
        const std::int64_t parts = samples_divisor(node);
        const auto [entry, fresh] = derived_->types.try_emplace({node.kind, node.subject, parts});
        if (fresh) {
          entry->second = input_types[node.subject.input().index()];
          for (tensor::Dim& dim : entry->second.dims) {
            if (dim.sampled) dim.extent /= parts;
          }
        }
        return entry->second;
      }
      case NodeKind::sum_squares:
      case NodeKind::norm: {
        const bool norm = node.kind == NodeKind::norm;
        const std::int64_t extent = norm ? 2 : num_squares(buckets[node.subject.bucket().index()]);
        const auto [entry, fresh] = derived_->types.try_emplace({node.kind, Subject(), extent});
        if (fresh)
          entry->second = {tensor::DType::f64,
                           {{norm ? derived_->scalar : derived_->param, extent, false}}};
        return entry->second;
      }
      case NodeKind::count: {
        static const tensor::Type kCount{tensor::DType::f64, {}};
        return kCount;
      }
      case NodeKind::update:
      case NodeKind::all_gather:
        if (is_optimizer_state(node, port.index)) return derived_->state(*this, node.subject);
        if (leaves_shard(node)) return derived_->block(*this, node.subject, false);
        return param_types[buckets[node.subject.bucket().index()].params[port.index].index()];
      case NodeKind::recv:
        next = source_of(nodes[comms[node.comm.index()].members.front().index()], port.index);
        break;
      case NodeKind::all_gather_v: {
        // Outputs stand member by member, each member's inputs in order.
        std::uint32_t before = 0;
        for (const NodeId member : comms[node.comm.index()].members) {
          const Node& other = nodes[member.index()];
          const std::span<const Input> inputs = inputs_of(other);
          const std::uint32_t count = inputs.empty() ? 0 : inputs.back().port + 1;
          if (port.index < before + count) {
            next = source_of(other, port.index - before);
            break;
          }
          before += count;
        }
        break;
      }
      case NodeKind::accumulate: next = source_of(node, port.index); break;
      case NodeKind::all_reduce: next = source_of(adding_member(node), port.index); break;
      case NodeKind::reduce_scatter:
        if (leaves_shard(node)) return derived_->block(*this, node.subject, true);
        next = source_of(node, port.index);
        break;
      case NodeKind::send:
      case NodeKind::offload:
      case NodeKind::fetch:
      case NodeKind::report:
        if (node.subject.bucket().valid()) return derived_->state(*this, node.subject);
        next = source_of(node, port.index);
        break;
    }
    if (!next.node.valid()) {
      static const tensor::Type kNoType;
      return kNoType;
    }
    port = next;
  }
}

namespace {

/// `.mb3.copy1`.
std::string instance_text(const Dag& dag, const Instance& instance) {
  std::string text;
  for (std::size_t i = 0; i < dag.dims.size() && i < kMaxSplitDims; ++i) {
    if (instance.at[i] == Instance::kNone) continue;
    text += '.';
    text += dag.context->text(dag.dims[i].name);
    text += std::to_string(instance.at[i]);
  }
  return text;
}

/// End 0 or 1 of a message; a node that is no message or has no other end is returned itself.
const Node& end_of(const Dag& dag, const Node& node, std::size_t end) {
  const bool paired = is_message(node.kind) && node.comm.valid() &&
                      dag.comms[node.comm.index()].members.size() == 2;
  return paired ? dag.node(dag.comms[node.comm.index()].members[end]) : node;
}

/// `.pp1.dp0`; nothing before placement.
void append_devices(std::string& text, const Dag& dag, DeviceSetId devices) {
  if (!devices.valid()) return;
  text += '.';
  text += place_name(dag.device_sets[devices], dag.mesh, dag.context->symbols);
}

/// `.dp`: the axes that shard a value.
void append_axes(std::string& text, const Dag& dag, LayoutId layout) {
  for (const Layout::Axis& axis : dag.context->layouts[layout].axes)
    text += "." + std::string(dag.context->text(axis.name));
}

/// `.dp`: the squares of buckets sharded over different axes are added up separately.
void append_axes(std::string& text, const Dag& dag, CommId comm) {
  for (std::size_t i = 0; comm.valid() && i < dag.mesh.axes.size(); ++i) {
    if ((dag.comms[comm.index()].axes >> i & 1) != 0)
      text += "." + std::string(dag.context->text(dag.mesh.axes[i].name));
  }
}

}  // namespace

std::string Dag::name(NodeId node) const {
  return name(node, instance_text(*this, end_of(*this, nodes[node.index()], 0).instance));
}

std::string Dag::name(NodeId id, std::string_view instance) const {
  const Node& node = nodes[id.index()];
  std::string text;
  switch (node.kind) {
    case NodeKind::chunk:
      text = pass_name(node.pass);
      text += '.';
      text += context->text(chunks[node.chunk.index()].name);
      text += instance;
      break;
    case NodeKind::load:
      text = "load.";
      text += subject_name(node.subject);
      text += instance;
      append_devices(text, *this, node.devices);
      if (derived_->loads_differ(node)) append_axes(text, *this, node.layout);
      break;
    case NodeKind::count:
      text = "count.";
      text += subject_name(node.subject);
      append_devices(text, *this, node.devices);
      break;
    case NodeKind::norm:
      text = "norm";
      append_devices(text, *this, node.devices);
      break;
    case NodeKind::accumulate:
    case NodeKind::sum_squares:
    case NodeKind::update:
    case NodeKind::reduce_scatter:
    case NodeKind::all_gather:
      text = kind_name(node.kind);
      text += '.';
      text += subject_name(node.subject);
      if (node.chunk.valid()) {
        text += '.';
        text += pass_name(node.pass);
        text += '.';
        text += context->text(chunks[node.chunk.index()].name);
        text += instance;
      }
      if (buckets[node.subject.bucket().index()].owners.size() > 1)
        append_devices(text, *this, node.devices);
      break;
    case NodeKind::offload:
    case NodeKind::fetch:
      text = kind_name(node.kind);
      if (node.subject.bucket().valid()) {
        text += '.';
        text += subject_name(node.subject);
        if (buckets[node.subject.bucket().index()].owners.size() > 1)
          append_devices(text, *this, node.devices);
      } else if (node.chunk.valid()) {
        text += '.';
        text += pass_name(node.pass);
        text += '.';
        text += context->text(chunks[node.chunk.index()].name);
      }
      text += instance;
      break;
    case NodeKind::report:
      text = "report.";
      text += subject_name(node.subject);
      text += instance;
      break;
    case NodeKind::send:
    case NodeKind::recv: {
      // Both halves are named after the producer and the destination, which identify a message.
      const Node& sender = end_of(*this, node, 0);
      text = kind_name(node.kind);
      if (sender.chunk.valid()) {
        text += '.';
        text += pass_name(sender.pass);
        text += '.';
        text += context->text(chunks[sender.chunk.index()].name);
      }
      text += instance;
      append_devices(text, *this, end_of(*this, node, 1).devices);
      break;
    }
    case NodeKind::all_reduce:
    case NodeKind::all_gather_v:
      text = kind_name(node.kind);
      text += '.';
      if (node.subject.count().valid()) text += "count.";
      text += subject_name(node.subject);
      if (node.subject.is_norm() && reduces_members(node.kind)) append_axes(text, *this, node.comm);
      text += instance;
      // A bucket has one reduction; losses and norms may have one per device set.
      if (!node.subject.bucket().valid() ||
          (node.comm.valid() && comms[node.comm.index()].members.size() > 1))
        append_devices(text, *this, node.devices);
      break;
  }
  return text;
}

}  // namespace piper::dag
