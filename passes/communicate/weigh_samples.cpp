#include "passes/communicate/weigh_samples.h"

#include <algorithm>
#include <optional>

#include "ir/dag/sample_weight.h"
#include "ir/dag/value_layout.h"
#include "ir/tensor/sample_coupling.h"

namespace piper::passes {

using namespace dag;

namespace {

std::vector<tensor::ValueId> loss_sums_of(const Body& body) {
  std::vector<tensor::ValueId> sums;
  for (const BodyPort& port : body.outputs) {
    if (port.kind == PortKind::loss_sum) sums.push_back(port.value);
  }
  return sums;
}

/// The type of the weights of a whole batch; nothing if no input has samples.
std::optional<tensor::Type> weight_type(const Dag& dag) {
  for (const tensor::Type& type : dag.input_types) {
    if (const tensor::Dim* const samples = type.samples())
      return tensor::Type{tensor::wide(dag.settings.dtype), {*samples}};
  }
  return std::nullopt;
}

/// An unused id, because ports of one input carry one value.
tensor::ValueId free_value(const Dag& dag) {
  std::uint32_t next = 0;
  for (const Body& body : dag.bodies) {
    for (const std::vector<BodyPort>* ports : {&body.inputs, &body.outputs}) {
      for (const BodyPort& port : *ports) {
        if (port.global_value.valid()) next = std::max(next, port.global_value.value() + 1);
      }
    }
  }
  return tensor::ValueId(next);
}

/// Rebuilds a body with weighed losses.
class WeighedBody {
 public:
  WeighedBody(const Dag& dag, const Body& body, BodyPort weight)
      : dag_(dag),
        from_(body.graph),
        made_(body.graph.context()),
        body_(body),
        sums_(loss_sums_of(body)),
        weight_(weight) {
    made_.name = from_.name;
    made_.regions = from_.regions;
  }

  Body make() {
    now_.resize(from_.values().size());
    for (std::size_t v = 0; v < now_.size(); ++v) {
      const tensor::Value& value = from_.values()[v];
      if (!value.def.valid())
        now_[v] = laid_out(made_.add_leaf(value.type, value.name), value.layout);
    }
    for (const tensor::Node& node : from_.nodes()) {
      if (std::find(sums_.begin(), sums_.end(), from_.result(node)) != sums_.end()) {
        add_weighed(node);
      } else {
        add_copy(node);
      }
    }
    Body body = body_;
    body.graph = std::move(made_);
    for (std::vector<BodyPort>* ports : {&body.inputs, &body.outputs}) {
      for (BodyPort& port : *ports) port.value = now_[port.value.index()];
    }
    body.inputs.insert(body.inputs.begin(), weight_);
    return body;
  }

 private:
  tensor::ValueId laid_out(tensor::ValueId value, LayoutId layout) {
    made_.set_layout(value, layout);
    return value;
  }

  void add_copy(const tensor::Node& node) {
    std::vector<tensor::ValueId> operands;
    std::vector<tensor::Type> types;
    std::vector<Symbol> names;
    for (const tensor::ValueId operand : from_.operands(node))
      operands.push_back(now_[operand.index()]);
    for (std::size_t i = 0; i < node.num_results; ++i) {
      types.push_back(from_.type(from_.result(node, i)));
      names.push_back(from_.value(from_.result(node, i)).name);
    }
    const tensor::NodeId copy = made_.add_unchecked(node, operands, types, names);
    for (std::size_t i = 0; i < node.num_results; ++i) {
      const tensor::ValueId before = from_.result(node, i);
      now_[before.index()] =
          laid_out(made_.result(made_.node(copy), i), from_.value(before).layout);
    }
  }

  /// Appends an operation of the loss; its result has this layout.
  tensor::ValueId add(tensor::Op op, std::initializer_list<tensor::ValueId> operands,
                      tensor::Attrs attrs, const tensor::Node& sum, std::string_view name,
                      LayoutId layout) {
    const Symbol symbol = from_.context().symbol(std::string(name));
    const tensor::NodeId id =
        made_.add(op, std::span(operands.begin(), operands.size()), std::move(attrs), sum.pass,
                  sum.region, sum.loc, {}, symbol);
    return laid_out(made_.result(made_.node(id)), layout);
  }

  void add_weighed(const tensor::Node& sum) {
    const tensor::ValueId elements = from_.operands(sum)[0];
    const LayoutId per_sample = from_.value(elements).layout;
    const tensor::Type& type = from_.type(elements);
    const tensor::Value& total = from_.value(from_.result(sum));
    const Symbol samples = type.samples()->name;
    const std::string name(from_.context().text(total.name));
    tensor::ValueId rows = now_[elements.index()];
    tensor::Attrs attrs;
    for (const tensor::Dim& dim : type.dims) {
      if (dim.name != samples) attrs.dims.push_back(dim.name);
    }
    if (!attrs.dims.empty()) {
      rows = add(tensor::Op::sum, {rows}, std::move(attrs), sum, name + ".rows", per_sample);
    } else if (type.dtype != tensor::wide(type.dtype)) {
      attrs.dtype = tensor::wide(type.dtype);
      rows = add(tensor::Op::cast, {rows}, std::move(attrs), sum, name + ".rows", per_sample);
    }
    // Multiplication by 0 would not give 0 if a padding sample has an infinite or NaN loss.
    tensor::Attrs half;
    half.scalar = 0.5;
    half.shape = {tensor::wide(type.dtype), {}};
    const tensor::ValueId least =
        add(tensor::Op::fill, {}, std::move(half), sum, name + ".least", {});
    const tensor::ValueId weighed =
        add(tensor::Op::select_ge, {weight(type.samples()->extent), least, rows}, {}, sum,
            name + ".weighed", per_sample);
    tensor::Attrs over;
    over.dims.push_back(samples);
    now_[from_.result(sum).index()] =
        add(tensor::Op::sum, {weighed}, std::move(over), sum, name, total.layout);
  }

  /// The leaf with the weights of the body's samples.
  tensor::ValueId weight(std::int64_t extent) {
    if (weight_.value.valid()) return weight_.value;
    tensor::Type type = dag_.input_types[weight_.input.index()];
    type.dims[0].extent = extent;
    weight_.value = made_.add_leaf(type, from_.context().symbol(kSampleWeight));
    return laid_out(weight_.value,
                    shard_samples(dag_, weight_.input, sample_axes(dag_, body_).value_or(0)));
  }

  const Dag& dag_;
  const tensor::Graph& from_;
  tensor::Graph made_;
  const Body& body_;
  const std::vector<tensor::ValueId> sums_;
  BodyPort weight_;
  std::vector<tensor::ValueId> now_;  // per value of the old body
};

}  // namespace

void weigh_samples(Dag& dag) {
  const auto couples = [](const Body& body) {
    return tensor::coupled_operation(body.graph, loss_sums_of(body)) != nullptr;
  };
  const std::optional<tensor::Type> type = weight_type(dag);
  if (!type || std::any_of(dag.bodies.begin(), dag.bodies.end(), couples)) return;
  BodyPort port;
  port.input = tensor::InputId::at(dag.inputs.size());
  port.global_value = free_value(dag);
  dag.inputs.push_back({dag.context->symbol(kSampleWeight), port.global_value,
                        dag.settings.held_out ? dag.settings.held_out->loc : LocId()});
  dag.input_types.push_back(*type);
  for (Body& body : dag.bodies) {
    if (!loss_sums_of(body).empty()) body = WeighedBody(dag, body, port).make();
  }
}

}  // namespace piper::passes
