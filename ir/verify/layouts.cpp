#include <algorithm>

#include "ir/tensor/graph_text.h"
#include "ir/tensor/op_rules.h"
#include "ir/verify/facts.h"

namespace piper::verify {

namespace {

/// The dimension that counts samples.
const tensor::Dim* samples(const tensor::Type& type) {
  const auto found = std::find_if(type.dims.begin(), type.dims.end(),
                                  [](const tensor::Dim& dim) { return dim.sampled; });
  return found == type.dims.end() ? nullptr : &*found;
}

/// The axes of a layout that satisfy `wanted`.
template <typename Wanted>
AxisMask axes_where(const Dag& dag, LayoutId layout, Wanted wanted) {
  AxisMask mask = 0;
  for (const Layout::Axis& axis : dag.context->layouts[layout].axes) {
    if (wanted(axis.how)) mask |= AxisMask{1} << dag.mesh.find(axis.name);
  }
  return mask;
}

/// Gradients are partial before reduction. The state alone is sharded, or state and gradients, or
/// all three with the parameters; all into the same shards, in mesh order.
void check_held(Facts& facts, const dag::Bucket& bucket) {
  const auto all = [&](LayoutId layout, AxisLayout how) {
    const auto& axes = facts.dag.context->layouts[layout].axes;
    return std::all_of(axes.begin(), axes.end(),
                       [&](const Layout::Axis& axis) { return axis.how == how; });
  };
  const auto no = [&](std::string_view why) {
    facts.sink.report(Code::wrong_layout, bucket.loc, "bucket `{}` {}", facts.text(bucket.name),
                      why);
  };
  if (!all(bucket.unreduced, AxisLayout::partial()))
    return no("has gradients that are not partial before their reduction");
  const LayoutId cut = bucket.state.replicated() ? bucket.parameters : bucket.state;
  for (const LayoutId each : {bucket.state, bucket.gradients, bucket.parameters}) {
    if (!each.replicated() && each != cut)
      return no("is sharded over axes that differ between its state, gradients and parameters");
  }
  if (!all(cut, AxisLayout::flat_sharded())) return no("is sharded, but not flat");
  if (bucket.prefetch > 0 && bucket.parameters.replicated())
    return no("is gathered ahead, but its parameters are not sharded");
  const auto& axes = facts.dag.context->layouts[cut].axes;
  if (!std::is_sorted(axes.begin(), axes.end(), [&](const auto& a, const auto& b) {
        return facts.dag.mesh.find(a.name) < facts.dag.mesh.find(b.name);
      })) {
    return no("is sharded over axes in another order than that of the mesh");
  }
  if (facts.dag.frozen(bucket)) return;
  if ((!bucket.gradients.replicated() && bucket.state.replicated()) ||
      (!bucket.parameters.replicated() && bucket.gradients.replicated()))
    no("is sharded, but its updates read or write all of it");
}

/// Each layout follows from those of the operands by a row of the op, and devices have its axes.
class Layouts {
 public:
  explicit Layouts(Facts& facts) : facts_(facts), dag_(facts.dag) {
    for (std::size_t s = 0; s < dag_.device_sets.size(); ++s)
      whole_.push_back(dag_.device_sets[DeviceSetId::at(s)].whole_axes());
  }

  void check() {
    for (const dag::Body& body : dag_.bodies) {
      AxisMask axes = 0;
      for (const tensor::Value& value : body.graph.values()) axes |= one_value(body, value);
      axes_.push_back(axes);
    }
    for (const dag::Body& body : dag_.bodies) ports(body);
    for (std::size_t i = 0; i < dag_.nodes.size() && !facts_.enough(); ++i) {
      if (!dag_.nodes[i].layout.replicated()) loaded(NodeId::at(i));
    }
    if (!facts_.ok()) return;
    for (std::size_t b = 0; b < dag_.bodies.size() && !facts_.enough(); ++b) {
      if (axes_[b] != 0) operations(dag_.bodies[b]);
    }
    if (dag_.level < Level::placed) return;  // whether devices have the axes is not known yet
    for (std::size_t i = 0; i < dag_.nodes.size() && !facts_.enough(); ++i) {
      if (runs_body(facts_.kind[i])) devices(NodeId::at(i), axes_[dag_.nodes[i].body.index()]);
    }
  }

 private:
  template <typename... Args>
  void wrong(LocId loc, MessagePattern<std::type_identity_t<Args>...> pattern,
             const Args&... args) {
    facts_.sink.report(Code::wrong_layout, loc, pattern, args...);
  }

  AxisMask one_value(const dag::Body& body, const tensor::Value& value) {
    if (value.layout.replicated()) return 0;
    const auto no = [&](const Layout::Axis& axis, std::string_view why) {
      wrong({}, "`%{}` of body `{}` is laid out over `{}`, {}", facts_.text(value.name),
            facts_.text(body.name), facts_.text(axis.name), why);
    };
    AxisMask axes = 0;
    const tensor::Dim* const dim = samples(value.type);
    std::size_t innermost = 0;  // of the axes that shard the samples
    for (const Layout::Axis& axis : dag_.context->layouts[value.layout].axes) {
      const std::size_t at = dag_.mesh.find(axis.name);
      if (at == dag_.mesh.axes.size()) {
        no(axis, "which the mesh does not have");
        continue;
      }
      axes |= AxisMask{1} << at;
      if (dim != nullptr && axis.how == AxisLayout::sharded(dim->name)) {
        if (at < innermost)
          no(axis, "which shards the samples inside an axis that the mesh has after it");
        innermost = at;
      }
      if (axis.how.kind == LayoutKind::flat_sharded)
        no(axis, "as a shard of a bucket, and it is no bucket");
      if (axis.how.kind == LayoutKind::sharded && !value.type.find(axis.how.dim))
        no(axis, "which shards a dimension that it does not have");
    }
    return axes;
  }

  /// Inputs have full parameters and counts; outputs that are sums over samples are partial.
  void ports(const dag::Body& body) {
    const auto name = [&](const dag::BodyPort& port) {
      return facts_.text(body.graph.value(port.value).name);
    };
    const auto layout = [&](const dag::BodyPort& port) {
      return body.graph.value(port.value).layout;
    };
    for (const dag::BodyPort& port : body.inputs) {
      const bool whole = port.kind == PortKind::param || port.kind == PortKind::count;
      if (!whole || layout(port).replicated()) continue;
      wrong({}, "input `%{}` of body `{}` is a `{}` port, which all devices have whole", name(port),
            facts_.text(body.name), dag::port_kind_name(port.kind));
    }
    for (const dag::BodyPort& port : body.outputs) {
      const bool sum = port.kind == PortKind::grad || port.kind == PortKind::loss_sum;
      if (!sum || axes_where(dag_, layout(port), [](const AxisLayout& how) {
                    return how.kind == LayoutKind::sharded;
                  }) == 0)
        continue;
      wrong({}, "output `%{}` of body `{}` is a `{}` port, of which no device has a part alone",
            name(port), facts_.text(body.name), dag::port_kind_name(port.kind));
    }
  }

  /// A load reads a shard of the samples.
  void loaded(NodeId id) {
    const Node& node = facts_.node(id);
    if (!node.subject.input().valid())
      return wrong(node.loc, "`{}` has a layout, which only loads have", facts_.name(id));
    const tensor::Dim* const dim = samples(dag_.input_types[node.subject.input().index()]);
    std::size_t innermost = 0;
    for (const Layout::Axis& axis : dag_.context->layouts[node.layout].axes) {
      const std::size_t at = dag_.mesh.find(axis.name);
      if (at == dag_.mesh.axes.size() || dim == nullptr ||
          axis.how != AxisLayout::sharded(dim->name)) {
        return wrong(node.loc, "`{}` divides something else than the samples of its input",
                     facts_.name(id));
      }
      if (at < innermost)
        return wrong(node.loc,
                     "`{}` divides samples over axes in another order than that of the mesh",
                     facts_.name(id));
      innermost = at;
    }
    devices(id, axes_where(dag_, node.layout, [](const AxisLayout&) { return true; }));
  }

  void devices(NodeId id, AxisMask axes) {
    const Node& node = facts_.node(id);
    if (!node.devices.valid() || (axes & ~whole_[node.devices.index()]) == 0) return;
    wrong(node.loc, "values of `{}` are laid out over an axis along which it has one device, `{}`",
          facts_.name(id), facts_.text(node.devices));
  }

  void operations(const dag::Body& body) {
    for (const tensor::Node& op : body.graph.nodes()) {
      AxisMask axes = 0;
      const auto add = [&](tensor::ValueId value) {
        axes |= axes_where(dag_, body.graph.value(value).layout,
                           [](const AxisLayout&) { return true; });
      };
      for (const tensor::ValueId operand : body.graph.operands(op)) add(operand);
      for (std::size_t i = 0; i < op.num_results; ++i) add(body.graph.result(op, i));
      if (axes != 0 && !facts_.enough()) operation(body, op, axes);
    }
  }

  void operation(const dag::Body& body, const tensor::Node& op, AxisMask axes) {
    std::vector<tensor::Type> operands, results;
    for (const tensor::ValueId operand : body.graph.operands(op))
      operands.push_back(body.graph.type(operand));
    for (std::size_t i = 0; i < op.num_results; ++i)
      results.push_back(body.graph.type(body.graph.result(op, i)));
    const std::vector<tensor::Row> rows = tensor::rows(op.op, operands, results, op.attrs);
    const std::string_view made = facts_.text(body.graph.value(body.graph.result(op)).name);
    for (std::size_t a = 0; a < dag_.mesh.axes.size(); ++a) {
      if ((axes >> a & 1) == 0) continue;
      const auto on_axis = [&](tensor::ValueId value) {
        return dag_.context->layouts[body.graph.value(value).layout].on(dag_.mesh.axes[a].name);
      };
      // There is a row with these operands; and one with these results.
      bool known = false, follows = false;
      for (const tensor::Row& row : rows) {
        bool same = true;
        std::size_t i = 0;
        for (const tensor::ValueId operand : body.graph.operands(op))
          same = same && on_axis(operand) == row.operands[i++];
        known = known || same;
        for (i = 0; i < op.num_results; ++i)
          same = same && on_axis(body.graph.result(op, i)) == row.results[i];
        follows = follows || same;
      }
      // Below level placed a program may request a layout without a row, on an axis that its
      // devices may not have.
      if (follows || (!known && dag_.level < Level::placed)) continue;
      return wrong(
          op.loc,
          "the layout of `%{}` in body `{}` does not follow from those of its operands: no row of `{}` has them on axis `{}`",
          made, facts_.text(body.name), tensor::info(op.op).name,
          facts_.text(dag_.mesh.axes[a].name));
    }
    if (!same_order(body, op))
      wrong(
          op.loc,
          "`%{}` in body `{}` is sharded along one dimension by axes in another order than its operands",
          made, facts_.text(body.name));
  }

  /// Axes that shard one dimension have the same order, outermost first, in all values of an
  /// operation.
  bool same_order(const dag::Body& body, const tensor::Node& op) const {
    std::vector<std::pair<Symbol, Symbol>> outer;  // outer and inner axis
    const auto fits = [&](tensor::ValueId value) {
      const auto& axes = dag_.context->layouts[body.graph.value(value).layout].axes;
      for (std::size_t j = 0; j < axes.size(); ++j) {
        for (std::size_t i = 0; i < j; ++i) {
          if (axes[i].how.kind != LayoutKind::sharded || axes[i].how != axes[j].how) continue;
          if (std::find(outer.begin(), outer.end(), std::pair(axes[j].name, axes[i].name)) !=
              outer.end())
            return false;
          outer.emplace_back(axes[i].name, axes[j].name);
        }
      }
      return true;
    };
    bool good = true;
    for (const tensor::ValueId operand : body.graph.operands(op)) good = good && fits(operand);
    for (std::size_t i = 0; i < op.num_results; ++i) good = good && fits(body.graph.result(op, i));
    return good;
  }

  Facts& facts_;
  const Dag& dag_;
  std::vector<AxisMask> axes_;   // per body: all axes of its layouts
  std::vector<AxisMask> whole_;  // per device set
};

}  // namespace

std::optional<AxisMask> divided_over(const Dag& dag, const Node& node) {
  if (dag.level < Level::placed) return 0;
  const auto of = [&](const tensor::Type& type, LayoutId layout) -> std::optional<AxisMask> {
    const tensor::Dim* const dim = samples(type);
    if (dim == nullptr) return std::nullopt;
    return axes_where(dag, layout,
                      [&](const AxisLayout& how) { return how == AxisLayout::sharded(dim->name); });
  };
  if (!runs_body(node.kind)) return of(dag.input_types[node.subject.input().index()], node.layout);
  for (const tensor::Value& value : dag.bodies[node.body.index()].graph.values()) {
    if (const std::optional<AxisMask> axes = of(value.type, value.layout)) return axes;
  }
  return std::nullopt;
}

AxisMask summed_over(const Dag& dag, const Node& node, std::uint32_t output) {
  if (dag.level < Level::placed) return 0;
  const dag::Body& body = dag.bodies[node.body.index()];
  return axes_where(dag, body.graph.value(body.outputs[output].value).layout,
                    [](const AxisLayout& how) { return how == AxisLayout::partial(); });
}

AxisMask reduced_over(const Dag& dag, const dag::Bucket& bucket) {
  return axes_where(dag, bucket.unreduced,
                    [](const AxisLayout& how) { return how == AxisLayout::partial(); });
}

AxisMask sharded_over(const Dag& dag, const dag::Bucket& bucket) {
  return axes_where(dag, bucket.state.replicated() ? bucket.parameters : bucket.state,
                    [](const AxisLayout& how) { return how == AxisLayout::flat_sharded(); });
}

void check_bucket_layouts(Facts& facts) {
  for (const dag::Bucket& bucket : facts.dag.buckets) check_held(facts, bucket);
}

void check_layouts(Facts& facts) { Layouts(facts).check(); }

}  // namespace piper::verify
