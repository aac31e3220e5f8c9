#include "passes/build/localise.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "ir/tensor/op_rules.h"

namespace piper::passes {

using namespace tensor;
using dag::Body;
using dag::BodyPort;
using dag::PortKind;

namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFFu;

std::size_t mix(std::size_t hash, std::size_t value) {
  return (hash ^ value) * 0x9E3779B97F4A7C15ull + (hash >> 29);
}

std::size_t hash_type(std::size_t hash, const Type& type) {
  hash = mix(hash, static_cast<std::size_t>(type.dtype));
  for (const Dim& dim : type.dims)
    hash = mix(mix(hash, dim.name.value()), static_cast<std::size_t>(dim.extent) * 2 + dim.sampled);
  return hash;
}

bool same_ports(const std::vector<BodyPort>& a, const std::vector<BodyPort>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const BodyPort& x, const BodyPort& y) { return x.kind == y.kind && x.value == y.value; });
}

}  // namespace

const Dim* divide_samples(Type& type, std::int64_t divide) {
  for (const Dim& dim : type.dims) {
    if (dim.sampled && dim.extent % divide != 0) return &dim;
  }
  for (Dim& dim : type.dims) {
    if (dim.sampled) dim.extent /= divide;
  }
  return nullptr;
}

BodyExtractor::BodyExtractor(const Graph& graph, std::span<const std::uint32_t> chunk_of,
                             const ModelLayouts* layouts)
    : graph_(graph),
      layouts_(layouts),
      chunk_of_(chunk_of.begin(), chunk_of.end()),
      stamp_(graph.nodes().size(), 0),
      again_(graph.nodes().size(), 0) {
  const std::size_t values = graph.values().size();
  first_use_.assign(values + 1, 0);
  for (const Node& node : graph.nodes()) {
    for (const ValueId operand : graph.operands(node)) ++first_use_[operand.index() + 1];
  }
  for (std::size_t v = 0; v < values; ++v) first_use_[v + 1] += first_use_[v];
  uses_.resize(first_use_[values]);
  std::vector<std::uint32_t> next(first_use_.begin(), first_use_.end() - 1);
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    for (const ValueId operand : graph.operands(graph.nodes()[n]))
      uses_[next[operand.index()]++] = static_cast<std::uint32_t>(n);
  }
  for (auto* table : {&param_of_, &input_of_, &count_of_, &grad_of_, &loss_of_})
    table->assign(values, kNone);
  for (std::size_t i = 0; i < graph.params.size(); ++i)
    param_of_[graph.params[i].value.index()] = static_cast<std::uint32_t>(i);
  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    input_of_[graph.inputs[i].value.index()] = static_cast<std::uint32_t>(i);
  for (std::size_t i = 0; i < graph.grads.size(); ++i)
    grad_of_[graph.grads[i].value.index()] = static_cast<std::uint32_t>(i);
  for (std::size_t i = 0; i < graph.losses.size(); ++i) {
    loss_of_[graph.losses[i].sum.index()] = static_cast<std::uint32_t>(i);
    if (graph.losses[i].mask)
      count_of_[graph.losses[i].mask->count.index()] = static_cast<std::uint32_t>(i);
  }
}

struct BodyExtractor::Cut {
  Cut(const Graph& graph, std::span<const NodeId> segment, std::int64_t divide, Use use)
      : graph(graph),
        segment(segment),
        divide(divide),
        use(use),
        result{Body{{}, Graph(graph.context()), {}, {}}, {}, {}} {
    for (const NodeId node : segment) first = std::min(first, graph.node(node).pass);
  }

  /// The local type; stores an error if an extent does not divide.
  Type divided(Type type, LocId loc) {
    if (const Dim* uneven = divide_samples(type, divide);
        uneven != nullptr && result.error.empty()) {
      result.error = "dimension `" + std::string(graph.context().text(uneven->name)) + "` of " +
                     std::to_string(uneven->extent) + " samples does not divide into " +
                     std::to_string(divide) + " equal parts";
      result.error_loc = loc;
    }
    return type;
  }

  /// Adds an output port; copies a leaf, a view or a value that is an output already.
  BodyPort& add_output(PortKind kind, ValueId value, ValueId global) {
    Graph& made = result.body.graph;
    const NodeId def = made.value(value).def;
    const bool alias = !def.valid() || info(made.node(def).op).code_class == CodeClass::view;
    if (alias || !outputs.insert(value).second) {
      Attrs copy;
      copy.shape = made.type(value);
      const ValueId operands[] = {value};
      const Pass pass = graph.node(segment.back()).pass;
      const LayoutId layout = made.value(value).layout;
      value = made.result(made.node(made.add(Op::broadcast, operands, std::move(copy), pass, {}, {},
                                             {}, made.value(value).name)));
      made.set_layout(value, layout);
    }
    BodyPort port;
    port.kind = kind;
    port.value = value;
    port.global_value = global;
    return result.body.outputs.emplace_back(port);
  }

  /// Sums contributions to a gradient in their order.
  ValueId sum_of(std::span<const ValueId> contributions) {
    Graph& made = result.body.graph;
    ValueId sum = contributions[0];
    for (const ValueId next : contributions.subspan(1)) {
      const ValueId operands[] = {sum, next};
      const LocId loc = made.node(made.value(next).def).loc;
      sum = made.result(made.node(made.add(Op::add, operands, {}, Pass::BW, {}, loc, {},
                                           made.value(contributions[0]).name)));
      made.set_layout(sum, made.value(contributions[0]).layout);
    }
    return sum;
  }

  const Graph& graph;
  const std::span<const NodeId> segment;
  const std::int64_t divide;
  const Use use;
  Extraction result;
  Pass first = Pass::BW;  // of the segment
  std::unordered_map<ValueId, ValueId> local;
  std::unordered_map<NodeId, NodeId> local_node;
  std::unordered_set<ValueId> outputs;
};

Extraction BodyExtractor::extract(std::span<const NodeId> segment, std::span<const NodeId> again,
                                  std::int64_t divide, Use use) {
  Cut cut(graph_, segment, divide, use);
  if (segment.empty()) return std::move(cut.result);
  ++epoch_;
  for (const NodeId node : again) again_[node.index()] = epoch_;
  for (const NodeId node : segment) stamp_[node.index()] = epoch_;
  for (const ValueId value : read_by(segment)) add_input(cut, value);
  for (const NodeId id : segment) {
    add_node(cut, id);
    if (!cut.result.error.empty()) return std::move(cut.result);
  }
  add_outputs(cut);
  return std::move(cut.result);
}

std::vector<NodeId> BodyExtractor::again(std::span<const NodeId> forward) {
  ++epoch_;
  for (const NodeId node : forward) stamp_[node.index()] = epoch_;
  const std::uint32_t chunk = forward.empty() ? kNone : chunk_of_[forward.front().index()];
  std::vector<NodeId> needed;
  for (std::size_t i = forward.size(); i-- > 0;) {
    const Node& node = graph_.node(forward[i]);
    bool read = again_[forward[i].index()] == epoch_;
    for (std::size_t r = 0; r < node.num_results && !read; ++r) {
      const ValueId value = graph_.result(node, r);
      for (std::uint32_t u = first_use_[value.index()]; u < first_use_[value.index() + 1]; ++u)
        read = read || (chunk_of_[uses_[u]] == chunk && stamp_[uses_[u]] != epoch_);
    }
    if (!read) continue;
    needed.push_back(forward[i]);
    for (const ValueId operand : graph_.operands(node)) {
      if (const NodeId def = graph_.value(operand).def; inside(def)) again_[def.index()] = epoch_;
    }
  }
  std::reverse(needed.begin(), needed.end());
  return needed;
}

std::vector<ValueId> BodyExtractor::read_by(std::span<const NodeId> segment) const {
  std::vector<ValueId> read;
  for (const NodeId node : segment) {
    for (const ValueId operand : graph_.operands(graph_.node(node))) {
      if (!inside(graph_.value(operand).def)) read.push_back(named_leaf(graph_, operand));
    }
  }
  const auto rank = [&](ValueId value) {
    const bool input = input_of_[value.index()] != kNone, param = param_of_[value.index()] != kNone;
    return std::pair(input ? 0 : param ? 2 : 1, param ? param_of_[value.index()] : value.value());
  };
  std::sort(read.begin(), read.end(), [&](ValueId a, ValueId b) { return rank(a) < rank(b); });
  read.erase(std::unique(read.begin(), read.end()), read.end());
  return read;
}

void BodyExtractor::add_input(Cut& cut, ValueId value) const {
  BodyPort port;
  port.global_value = value;
  LocId loc;
  if (const std::uint32_t param = param_of_[value.index()]; param != kNone) {
    port.kind = PortKind::param;
    port.param = ParamId(param);
  } else if (const std::uint32_t input = input_of_[value.index()]; input != kNone) {
    port.input = InputId(input);
    loc = graph_.inputs[input].loc;
  } else if (const std::uint32_t loss = count_of_[value.index()]; loss != kNone) {
    port.kind = PortKind::count;
    port.loss = LossId(loss);
  } else {
    const NodeId def = graph_.value(value).def;
    const std::uint32_t chunk = chunk_of_[cut.segment.front().index()];
    // An earlier pass of this chunk made or read the value, so it was saved then.
    bool kept = cut.use == Use::again || (def.valid() && chunk_of_[def.index()] == chunk);
    for (std::uint32_t u = first_use_[value.index()]; u < first_use_[value.index() + 1]; ++u) {
      kept = kept || (chunk_of_[uses_[u]] == chunk && graph_.nodes()[uses_[u]].pass < cut.first);
    }
    port.kind = kept ? PortKind::saved : PortKind::data;
    if (def.valid()) loc = graph_.node(def).loc;
  }
  Body& body = cut.result.body;
  port.value = body.graph.add_leaf(cut.divided(graph_.type(value), loc), graph_.value(value).name);
  if (layouts_ != nullptr)
    body.graph.set_layout(port.value,
                          layouts_->read_by(value, chunk_of_[cut.segment.front().index()]));
  cut.local.emplace(value, port.value);
  body.inputs.push_back(port);
}

ValueId BodyExtractor::local(Cut& cut, ValueId value) const {
  if (const auto found = cut.local.find(value); found != cut.local.end()) return found->second;
  const Node& naming = graph_.node(graph_.value(value).def);
  const ValueId operands[] = {local(cut, graph_.operands(naming)[0])};
  Graph& made = cut.result.body.graph;
  const ValueId named = made.result(made.node(made.add(
      naming.op, operands, naming.attrs, cut.first, {}, naming.loc, {}, graph_.value(value).name)));
  if (layouts_ != nullptr)
    made.set_layout(named, layouts_->read_by(value, chunk_of_[cut.segment.front().index()]));
  cut.local.emplace(value, named);
  return named;
}

void BodyExtractor::add_node(Cut& cut, NodeId id) const {
  const Node& node = graph_.node(id);
  Graph& made = cut.result.body.graph;
  Attrs attrs = node.attrs;
  if ((info(node.op).attributes & kShape) != 0)
    attrs.shape = cut.divided(std::move(attrs.shape), node.loc);
  if (!cut.result.error.empty()) return;
  std::vector<ValueId> operands;
  for (const ValueId operand : graph_.operands(node)) operands.push_back(local(cut, operand));
  const auto origin = node.origin.valid() ? cut.local_node.find(node.origin) : cut.local_node.end();
  const NodeId copy = made.add(node.op, operands, std::move(attrs), node.pass, {}, node.loc,
                               origin == cut.local_node.end() ? NodeId() : origin->second,
                               graph_.value(graph_.result(node)).name);
  cut.local_node.emplace(id, copy);
  for (std::size_t i = 0; i < node.num_results; ++i) {
    const ValueId result = made.result(made.node(copy), i);
    if (layouts_ != nullptr) made.set_layout(result, layouts_->of(graph_.result(node, i)));
    cut.local.emplace(graph_.result(node, i), result);
  }
}

BodyExtractor::Leaves BodyExtractor::leaves(const Cut& cut, NodeId node, ValueId value) const {
  const std::uint32_t chunk = chunk_of_[node.index()];
  const bool made_again = again_[node.index()] == epoch_;
  Leaves leaves;
  for (std::uint32_t u = first_use_[value.index()]; u < first_use_[value.index() + 1]; ++u) {
    const std::uint32_t user = uses_[u];
    const bool own = chunk_of_[user] == chunk;
    if (stamp_[user] == epoch_) {
      // Saved for the `R`.
      leaves.segment = leaves.segment || (cut.use == Use::recomputed_forward && !made_again &&
                                          again_[user] == epoch_);
    } else if (cut.use == Use::again) {
      leaves.segment = leaves.segment || (own && graph_.nodes()[user].pass != Pass::F);
    } else {
      leaves.segment = leaves.segment || !own || !made_again;
      leaves.chunk = leaves.chunk || !own;
    }
  }
  return leaves;
}

void BodyExtractor::add_outputs(Cut& cut) const {
  std::map<ParamId, std::vector<ValueId>> grads;  // by parameter, contributions in graph order
  std::map<LossId, ValueId> losses;
  for (const NodeId id : cut.segment) {
    const Node& node = graph_.node(id);
    for (std::size_t i = 0; i < node.num_results; ++i) {
      const ValueId value = graph_.result(node, i);
      const Leaves leaves = this->leaves(cut, id, value);
      if (leaves.segment)
        cut.add_output(leaves.chunk ? PortKind::data : PortKind::saved, cut.local.at(value), value);
      if (cut.use == Use::again) continue;
      if (const std::uint32_t grad = grad_of_[value.index()]; grad != kNone)
        grads[graph_.grads[grad].param].push_back(cut.local.at(value));
      if (const std::uint32_t loss = loss_of_[value.index()]; loss != kNone)
        losses.emplace(LossId(loss), value);
    }
  }
  for (const auto& [param, contributions] : grads) {
    cut.add_output(PortKind::grad, cut.sum_of(contributions), graph_.params[param.index()].value)
        .param = param;
  }
  for (const auto& [loss, value] : losses)
    cut.add_output(PortKind::loss_sum, cut.local.at(value), value).loss = loss;
}

bool same_body(const Body& a, const Body& b) {
  const Graph& x = a.graph;
  const Graph& y = b.graph;
  if (!same_ports(a.inputs, b.inputs) || !same_ports(a.outputs, b.outputs)) return false;
  if (x.nodes().size() != y.nodes().size() || x.values().size() != y.values().size()) return false;
  for (std::size_t v = 0; v < x.values().size(); ++v) {
    const Value& p = x.values()[v];
    const Value& q = y.values()[v];
    if (p.def != q.def || p.result != q.result || p.type != q.type || p.layout != q.layout)
      return false;
  }
  for (std::size_t n = 0; n < x.nodes().size(); ++n) {
    const Node& p = x.nodes()[n];
    const Node& q = y.nodes()[n];
    const auto left = x.operands(p), right = y.operands(q);
    if (p.op != q.op || p.pass != q.pass || p.attrs != q.attrs ||
        !std::equal(left.begin(), left.end(), right.begin(), right.end()))
      return false;
  }
  return true;
}

std::size_t hash_body(const Body& body) {
  std::size_t hash = body.graph.nodes().size();
  for (const auto* ports : {&body.inputs, &body.outputs}) {
    for (const BodyPort& port : *ports)
      hash = mix(mix(hash, static_cast<std::size_t>(port.kind)), port.value.value());
  }
  for (const Value& value : body.graph.values())
    hash = hash_type(mix(hash, value.def.value()), value.type);
  for (const Node& node : body.graph.nodes()) {
    hash =
        mix(mix(hash, static_cast<std::size_t>(node.op)), std::hash<double>()(node.attrs.scalar));
    for (const Symbol dim : node.attrs.dims) hash = mix(hash, dim.value());
    for (const ValueId operand : body.graph.operands(node)) hash = mix(hash, operand.value());
  }
  return hash;
}

}  // namespace piper::passes
