#include <algorithm>

#include "ir/parallel.h"
#include "ir/text/print_text.h"
#include "ir/verify/boxes.h"
#include "ir/verify/facts.h"
#include "ir/verify/values.h"

namespace piper::verify {

namespace {

using dag::EdgeClass;

/// Checks the edges into one node at a time.
class Edges {
 public:
  Edges(Facts& facts, const Values& values) : facts_(facts), dag_(facts.dag), values_(values) {}

  void node(NodeId id) {
    const Node& node = facts_.node(id);
    std::uint32_t expected = 0;
    bool whole = true;
    for_each_port(dag_, node, [&](std::span<const Input> sources) {
      if (sources[0].port != expected && whole) {
        whole = false;
        wrong(id, "nothing feeds input `{}` of `{}`", expected, facts_.name(id));
      }
      expected = sources[0].port + 1;
      port(id, node, sources);
    });
    std::uint32_t needed = expected;
    switch (node.kind) {
      case NodeKind::chunk: needed = static_cast<std::uint32_t>(body_of(node).inputs.size()); break;
      case NodeKind::load:
        samples(id, node);
        needed = 0;
        break;
      case NodeKind::recv: needed = 0; break;
      case NodeKind::accumulate: needed = dag_.adds_shards(node) ? 1 : params_of(node); break;
      case NodeKind::sum_squares: needed = dag_.gradient_values(bucket_of(node)); break;
      case NodeKind::update:
        needed = dag_.gradient_values(bucket_of(node)) + (bucket_of(node).state_on_host ? 1 : 0) +
                 (dag_.settings.updates_read_norm() && dag_.level >= Level::communicating ? 1 : 0);
        // Below level communicating the builder of the DAG may leave out the norm.
        if (dag_.level < Level::communicating && expected == needed + 1) needed = expected;
        break;
      case NodeKind::norm: needed = static_cast<std::uint32_t>(dag_.trained_buckets()); break;
      case NodeKind::reduce_scatter: needed = params_of(node); break;
      case NodeKind::all_gather: needed = keeps_shard(node) ? 1 : params_of(node); break;
      case NodeKind::all_reduce:
        // An owner that makes no gradients of its own contributes nothing to the sum.
        if (node.subject.bucket().valid())
          needed = expected == 0 ? 0 : dag_.gradient_values(bucket_of(node));
        break;
      case NodeKind::count:
      case NodeKind::report:
      case NodeKind::send:
        if (expected == 0 || (node.kind == NodeKind::report && node.subject.is_norm())) needed = 1;
        break;
      case NodeKind::offload:
        if (expected == 0 || node.subject.bucket().valid()) needed = 1;
        break;
      case NodeKind::fetch:
        // Offloaded optimizer state at rest is no value, so its fetch has no input.
        needed = node.subject.bucket().valid() ? 0 : std::max(expected, 1u);
        break;
      case NodeKind::all_gather_v: break;
    }
    if (whole && expected != needed)
      wrong(id, "`{}` has `{}` inputs where it needs `{}`", facts_.name(id), expected, needed);
  }

 private:
  const dag::Body& body_of(const Node& node) const { return dag_.bodies[node.body.index()]; }

  template <typename... Args>
  DiagnosticBuilder wrong(NodeId id, MessagePattern<std::type_identity_t<Args>...> pattern,
                          const Args&... args) {
    return facts_.sink.report(Code::wrong_edge, facts_.loc(id), pattern, args...);
  }

  /// All microbatches have the same number of samples, and every device has some of each.
  void samples(NodeId id, const Node& node) {
    const std::int64_t parts = dag_.samples_divisor(node);
    for (const tensor::Dim& dim : dag_.input_types[node.subject.input().index()].dims) {
      if (!dim.sampled) continue;
      if (dim.extent % parts != 0) {
        wrong(id, "`{}` takes one of `{}` equal parts of `{}` samples, which do not divide so",
              facts_.name(id), parts, dim.extent);
      } else if (dim.extent / parts < shards_of(dag_, node.layout)) {
        wrong(id, "`{}` divides `{}` samples over `{}` devices", facts_.name(id),
              dim.extent / parts, shards_of(dag_, node.layout));
      }
    }
  }

  /// Its bucket is sharded, and the level is one at which shards exist.
  bool cut(const Node& node) const {
    return dag_.level >= Level::communicating &&
           dag_.buckets[node.subject.bucket().index()].sharded();
  }

  const dag::Bucket& bucket_of(const Node& node) const {
    return dag_.buckets[node.subject.bucket().index()];
  }
  /// Gradients summed over devices are a shard, as one value.
  bool sums_shard(const Node& node) const { return dag_.shards_gradients(bucket_of(node)); }
  /// Devices keep a shard of the parameters; all-gathers of the same step give the full ones.
  bool keeps_shard(const Node& node) const { return dag_.shards_parameters(bucket_of(node)); }

  std::uint32_t params_of(const Node& node) const {
    return static_cast<std::uint32_t>(dag_.buckets[node.subject.bucket().index()].params.size());
  }

  /// Only fetches read values in the memory of the host, and they read nothing else.
  bool on_device(NodeId id, const Node& node, std::span<const Input> sources) {
    for (const Input& source : sources) {
      if (!source.source.node.valid()) continue;
      const bool host = leaves_device(facts_.node(source.source.node).kind);
      if (host == returns_to_device(node.kind)) continue;
      wrong(id, "`{}` reads `{}`, which is in the memory of the {}", facts_.name(id),
            facts_.text(source.source), host ? "host" : "device");
      return false;
    }
    return true;
  }

  /// Only values of the step are copied to the host.
  bool copied(NodeId id, const Node& node, const Input& input) {
    if (node.subject.bucket().valid()) {
      const Node& maker = facts_.node(input.source.node);
      if (writes_state(maker.kind) && maker.subject == node.subject &&
          input.cls == EdgeClass::data && dag_.is_optimizer_state(maker, input.source.index))
        return true;
      wrong(id, "input `{}` of `{}` is not the optimizer state that the update of its bucket left",
            input.port, facts_.name(id));
      return false;
    }
    const bool value =
        input.cls == EdgeClass::data &&
        (returns_to_device(node.kind) || is_activation(facts_.origin_of(input.source)));
    if (value) return true;
    wrong(id, "input `{}` of `{}` is no value that a backward reads", input.port, facts_.name(id));
    return false;
  }

  bool is_activation(Port origin) const {
    const Node& maker = facts_.node(origin.node);
    if (!runs_body(maker.kind)) return false;
    const PortKind kind = body_of(maker).outputs[origin.index].kind;
    return kind != PortKind::grad && kind != PortKind::loss_sum;
  }

  void port(NodeId id, const Node& node, std::span<const Input> sources) {
    if (!on_device(id, node, sources)) return;
    if (adds_in_place(node.kind)) return terms(id, node, sources);
    if (!one_source(id, sources)) return;
    if (copies_to_or_from_host(node.kind) && !copied(id, node, sources[0])) return;
    if (runs_body(node.kind)) {
      // Counted as a wrong number of inputs.
      if (sources[0].port >= body_of(node).inputs.size()) return;
      return chunk_port(id, node, sources[0]);
    }
    const Input& source = sources[0];
    if (source.cls == EdgeClass::param && !(gathers_shards(node.kind) && keeps_shard(node))) {
      wrong(id, "`{}` reads a parameter, which only chunks do", facts_.name(id));
      return;
    }
    if (gathers_shards(node.kind)) return gathered(id, node, source);
    const bool sums = node.subject.bucket().valid() &&
                      (writes_state(node.kind) || node.kind == NodeKind::sum_squares ||
                       reduces_members(node.kind));
    if (!sums) return;
    const bool whole = reduces_to_shards(node.kind) || !sums_shard(node);
    if (source.port < (whole ? params_of(node) : 1)) return (void)gradient(id, node, source, whole);
    if (!writes_state(node.kind)) return;  // counted as a wrong number of inputs
    const Node& maker = facts_.node(source.source.node);
    if (bucket_of(node).state_on_host && source.port == dag_.inputs_of(node).back().port) {
      if (returns_to_device(maker.kind) && maker.subject == node.subject) return;
      wrong(id, "the last input of `{}` is the optimizer state of its bucket, not `{}`",
            facts_.name(id), facts_.text(source.source));
    } else if (maker.kind != NodeKind::norm) {
      wrong(id, "the last input of `{}` is the gradient norm, not `{}`", facts_.name(id),
            facts_.text(source.source));
    }
  }

  /// Only an in-place sum adds.
  bool one_source(NodeId id, std::span<const Input> sources) {
    if (sources.size() > 1) {
      wrong(id, "input `{}` of `{}` has `{}` sources; only an `accumulate` adds", sources[0].port,
            facts_.name(id), sources.size());
      return false;
    }
    if (sources[0].cls != EdgeClass::grad) return true;
    wrong(id, "input `{}` of `{}` is a term of a sum, and only an `accumulate` adds",
          sources[0].port, facts_.name(id));
    return false;
  }

  /// All are gradients of one parameter, or shards.
  void terms(NodeId id, const Node& node, std::span<const Input> sources) {
    const bool whole = !dag_.adds_shards(node);
    // Counted as a wrong number of inputs.
    if (sources[0].port >= (whole ? params_of(node) : 1)) return;
    const tensor::Type* fits = nullptr;  // most are of one type
    for (const Input& source : sources) {
      if (source.cls != EdgeClass::grad) {
        wrong(id, "input `{}` of `{}` adds `{}`, which this class of edge does not bring",
              source.port, facts_.name(id), facts_.text(source.source));
        return;
      }
      const tensor::Type* const type = &values_.type(facts_.output(source.source));
      if (type != fits && !gradient(id, node, source, whole)) return;
      fits = type;
    }
  }

  /// The type of a gradient of the bucket, or of one device's shard of all of them.
  bool gradient(NodeId id, const Node& node, const Input& source, bool whole) {
    const tensor::Type& type = values_.type(facts_.output(source.source));
    if (!whole) {
      const std::int64_t elements =
          bucket_elements(dag_, bucket_of(node)) / shares_of(dag_, bucket_of(node));
      if (type.elements() == elements &&
          type.dtype == tensor::wide(parameter_dtype(dag_, bucket_of(node))))
        return true;
      wrong(id, "`{}` takes a shard of bucket `{}`, and `{}` is none", facts_.name(id),
            facts_.text(bucket_of(node).name), facts_.text(source.source));
      return false;
    }
    const tensor::Type wanted =
        tensor::gradient_type(dag_.param_types[bucket_of(node).params[source.port].index()]);
    if (type.dtype == wanted.dtype && type.elements() == wanted.elements()) return true;
    types(id, source.port, source.source, wanted);
    return false;
  }

  /// An all-gather takes the parameters that the update of its bucket wrote: in this step, or in
  /// the previous one if the parameters are sharded at rest.
  void gathered(NodeId id, const Node& node, const Input& input) {
    if (keeps_shard(node)) {
      const bool update =
          !input.source.node.valid() ||
          (writes_state(facts_.node(input.source.node).kind) &&
           facts_.node(input.source.node).subject.bucket() == node.subject.bucket());
      if (update && input.cls == EdgeClass::param && input.source.index == 0) return;
      wrong(id,
            "the input of `{}` is not the shard of parameters that the update of its bucket left",
            facts_.name(id));
      return;
    }
    const Node& maker = facts_.node(input.source.node);
    if (writes_state(maker.kind) && maker.subject.bucket() == node.subject.bucket() &&
        input.source.index == input.port && input.cls == EdgeClass::data)
      return;
    wrong(id, "input `{}` of `{}` is no parameter that the update of its bucket leaves, but `{}`",
          input.port, facts_.name(id), facts_.text(input.source));
  }

  void types(NodeId id, std::uint32_t port, Port source, const tensor::Type& wanted) {
    const SymbolTable& symbols = dag_.context->symbols;
    facts_.sink
        .report(Code::port_types_differ, facts_.loc(id),
                "input `{}` of `{}` takes `{}`, `{}` is `{}`", port, facts_.name(id),
                print(wanted, symbols), facts_.text(source),
                print(dag_.output_type(source), symbols))
        .related(facts_.loc(source.node), "`{}` is made here", facts_.name(source.node));
  }

  void chunk_port(NodeId id, const Node& node, const Input& edge) {
    const dag::BodyPort& port = body_of(node).inputs[edge.port];
    if (port.kind == PortKind::param && edge.cls == EdgeClass::data && edge.source.node.valid() &&
        gathers_shards(facts_.node(edge.source.node).kind))
      return gathered_param(id, node, edge, port);
    if ((edge.cls == EdgeClass::param) != (port.kind == PortKind::param)) {
      wrong(id, "input `{}` of `{}` is a `{}` port, which this class of edge does not feed",
            edge.port, facts_.name(id), port_kind_name(port.kind));
      return;
    }
    if (!edge.source.node.valid()) return forward_param(id, edge, port);
    if (!values_.same_type(facts_.output(edge.source), node.body, edge.port)) {
      return types(id, edge.port, edge.source, body_of(node).graph.type(port.value));
    }
    if (edge.cls == EdgeClass::param) {
      // If shards are updated separately, only the all-gather has the full parameter.
      const Port origin = edge.source;
      const Node& maker = facts_.node(origin.node);
      const bool leaves = maker.makes_parameters() && gathers_shards(maker.kind) == cut(maker) &&
                          !keeps_shard(maker);
      if (!leaves) {
        wrong(id, "input `{}` of `{}` reads parameter `{}` from `{}`, which does not update it",
              edge.port, facts_.name(id), facts_.text(dag_.params[port.param.index()].name),
              facts_.name(origin.node));
        return;
      }
      const tensor::ParamId given =
          dag_.buckets[maker.subject.bucket().index()].params[origin.index];
      if (!facts_.shared_body[node.body.index()] && given != port.param) {
        wrong(id, "input `{}` of `{}` is parameter `{}`, the edge brings `{}`", edge.port,
              facts_.name(id), facts_.text(dag_.params[port.param.index()].name),
              facts_.text(dag_.params[given.index()].name));
      }
      return;
    }
    const Port origin = facts_.origin_of(edge.source);
    const Node& maker = facts_.node(origin.node);
    if (port.input.valid()) {
      if (maker.kind != NodeKind::load ||
          (maker.subject.input() != port.input && !facts_.shared_body[node.body.index()])) {
        wrong(id, "input `{}` of `{}` is the model's input `{}`, the edge brings `{}`", edge.port,
              facts_.name(id), facts_.text(dag_.inputs[port.input.index()].name),
              facts_.text(edge.source));
        return;
      }
    } else if (port.kind == PortKind::count) {
      const tensor::LossId loss = maker.subject.count();
      if (!loss.valid() || (loss != port.loss && !facts_.shared_body[node.body.index()])) {
        wrong(id, "input `{}` of `{}` is the count of loss `{}`, the edge brings `{}`", edge.port,
              facts_.name(id), facts_.text(dag_.losses[port.loss.index()].name),
              facts_.text(edge.source));
      }
      return;
    } else if (!runs_body(maker.kind)) {
      wrong(id, "input `{}` of `{}` comes from `{}`, which is no chunk", edge.port, facts_.name(id),
            facts_.text(origin));
      return;
    } else {
      const dag::BodyPort& made = body_of(maker).outputs[origin.index];
      const bool known =
          !facts_.shared_body[node.body.index()] && !facts_.shared_body[maker.body.index()];
      if (made.kind == PortKind::grad || made.kind == PortKind::loss_sum ||
          (known && made.global_value != port.global_value)) {
        wrong(id, "input `{}` of `{}` is another value than output `{}` of `{}`", edge.port,
              facts_.name(id), origin.index, facts_.name(origin.node))
            .related(maker.loc, "`{}` is made here", facts_.name(origin.node));
        return;
      }
    }
    for (std::size_t i = 0; i < dag_.dims.size(); ++i) {
      const std::int32_t a = maker.instance.at[i], b = node.instance.at[i];
      if (a != dag::Instance::kNone && b != dag::Instance::kNone && a != b) {
        wrong(id, "`{}` reads `{}`, which belongs to another `{}`", facts_.name(id),
              facts_.text(origin), facts_.text(dag_.dims[i].name))
            .related(maker.loc, "`{}` is made here", facts_.name(origin.node));
        return;
      }
    }
    same_layout(id, edge, body_of(node).graph.value(port.value).layout, origin);
  }

  /// There is no conversion between layouts. Below level placed two chunks may request different
  /// ones, on axes that their devices may not have.
  void same_layout(NodeId id, const Input& edge, LayoutId read, Port origin) {
    const Node& maker = facts_.node(origin.node);
    if (dag_.level < Level::placed &&
        (!runs_body(maker.kind) || maker.chunk != facts_.node(id).chunk))
      return;
    const LayoutId made =
        runs_body(maker.kind)
            ? body_of(maker).graph.value(body_of(maker).outputs[origin.index].value).layout
            : maker.layout;
    if (made == read) return;
    const auto text = [&](LayoutId layout) {
      return layout.replicated() ? std::string("whole") : layout_text(layout, *dag_.context);
    };
    facts_.sink
        .report(Code::wrong_layout, facts_.loc(id),
                "input `{}` of `{}` is read as `{}`, and `{}` leaves it as `{}`", edge.port,
                facts_.name(id), text(read), facts_.text(origin), text(made))
        .related(maker.loc, "`{}` is made here", facts_.name(origin.node));
  }

  /// Checks a read of parameters from an all-gather of this step.
  void gathered_param(NodeId id, const Node& node, const Input& edge, const dag::BodyPort& port) {
    const Node& maker = facts_.node(edge.source.node);
    const tensor::ParamId given = bucket_of(maker).params[edge.source.index];
    if (!values_.same_type(facts_.output(edge.source), node.body, edge.port))
      return types(id, edge.port, edge.source, body_of(node).graph.type(port.value));
    if (keeps_shard(maker) && (given == port.param || facts_.shared_body[node.body.index()]))
      return;
    wrong(id, "input `{}` of `{}` is parameter `{}`, and `{}` does not gather it for this step",
          edge.port, facts_.name(id), facts_.text(dag_.params[port.param.index()].name),
          facts_.name(edge.source.node));
  }

  /// In a forward-only program the edge says the parameter's position in its bucket.
  void forward_param(NodeId id, const Input& edge, const dag::BodyPort& port) {
    for (const dag::Bucket& bucket : dag_.buckets) {
      if (!dag_.shards_parameters(bucket) && edge.source.index < bucket.params.size() &&
          bucket.params[edge.source.index] == port.param)
        return;
    }
    wrong(
        id,
        "input `{}` of `{}` reads position `{}` of its bucket, where parameter `{}` does not stand",
        edge.port, facts_.name(id), edge.source.index,
        facts_.text(dag_.params[port.param.index()].name));
  }

  Facts& facts_;
  const Dag& dag_;
  const Values& values_;
};

}  // namespace

void check_flow(Facts& facts) {
  Values values(facts);
  if (!values.find()) return;
  const std::size_t n = facts.dag.nodes.size();
  // Several threads find out whether there are errors; errors are reported in the order of the
  // nodes.
  const bool good =
      all_hold(facts.dag.context->cancellation, n, [&](std::size_t begin, std::size_t end) {
        DiagnosticSink scratch(facts.dag.context->locations);
        Facts part(facts, scratch);
        Edges edges(part, values);
        for (std::size_t i = begin; i < end && part.ok(); ++i) edges.node(NodeId::at(i));
        return part.ok();
      });
  Edges edges(facts, values);
  for (std::size_t i = 0; !good && i < n && !facts.enough(); ++i) edges.node(NodeId::at(i));
}

}  // namespace piper::verify
