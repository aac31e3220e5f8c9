#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "ir/parallel.h"
#include "ir/tensor/graph_text.h"
#include "ir/verify/facts.h"

namespace piper::verify {

namespace {

using dag::EdgeClass;

/// Checks edges: the origin of each output's value, and the types.
class Values {
 public:
  explicit Values(Facts& facts) : facts_(facts), dag_(facts.dag) {}

  /// False after reporting that a value depends on itself.
  bool find() {
    facts_.tables->follows_order = follows_order();
    if (!facts_.tables->follows_order && !acyclic()) return false;
    origins();
    types_of_outputs();
    return true;
  }

  const tensor::Type& type(std::uint32_t output) const { return types_[output_type_[output]]; }
  bool same_type(std::uint32_t output, dag::BodyId body, std::uint32_t input) const {
    return output_type_[output] == input_types_[first_input_type_[body.index()] + input];
  }

 private:
  /// True if there is a global order in which every node is after its dependencies, which proves
  /// the DAG acyclic. False proves nothing.
  bool follows_order() {
    const std::vector<std::uint32_t>& position = facts_.position;
    if (position.empty()) return false;
    for (std::size_t i = 0; i < dag_.nodes.size(); ++i) {
      const Node& node = dag_.nodes[i];
      for (const Input& input : dag_.inputs_of(node)) {
        if (input.cls != EdgeClass::param && input.source.node.valid() &&
            position[input.source.node.index()] >= position[i])
          return false;
      }
      if (is_recv(node.kind)) {
        const NodeId send = dag_.comms[node.comm.index()].members.front();
        if (send.index() != i && position[send.index()] >= position[i]) return false;
      } else if (takes_from_members(node)) {
        for (const NodeId member : dag_.comms[node.comm.index()].members) {
          for (const Input& input : dag_.inputs_of(facts_.node(member))) {
            if (input.cls != EdgeClass::param && input.source.node.valid() &&
                position[input.source.node.index()] >= position[i])
              return false;
          }
        }
      }
    }
    return true;
  }

  /// Its outputs come from inputs of other members: an all_gather_v, or an all_reduce to which it
  /// contributes nothing.
  static bool takes_from_members(const Node& node) {
    return gathers_lists(node.kind) || (reduces_members(node.kind) && node.num_inputs == 0);
  }

  /// Kahn's algorithm over data and grad edges, and over communication: a recv depends on its send,
  /// a node that takes from members depends on the inputs of all of them. One such node per
  /// communication has these edges; the others depend on it.
  bool acyclic() {
    const std::size_t n = dag_.nodes.size();
    std::vector<std::uint32_t> first(n + 1, 0), pending(n, 0), taker(dag_.comms.size(), kNone);
    for (std::size_t i = 0; i < n; ++i) {
      const Node& node = dag_.nodes[i];
      if (takes_from_members(node) && taker[node.comm.index()] == kNone)
        taker[node.comm.index()] = static_cast<std::uint32_t>(i);
    }
    const auto for_each_source = [&](std::uint32_t i, auto visit) {
      const auto inputs = [&](const Node& of) {
        for (const Input& input : dag_.inputs_of(of)) {
          if (input.cls != EdgeClass::param && input.source.node.valid())
            visit(input.source.node.value());
        }
      };
      const Node& node = dag_.nodes[i];
      inputs(node);
      if (is_recv(node.kind)) {
        const NodeId send = dag_.comms[node.comm.index()].members.front();
        if (send.value() != i) visit(send.value());
      } else if (takes_from_members(node) && taker[node.comm.index()] != i) {
        visit(taker[node.comm.index()]);
      } else if (takes_from_members(node)) {
        for (const NodeId member : dag_.comms[node.comm.index()].members) {
          if (member.value() != i) inputs(facts_.node(member));
        }
      }
    };
    for (std::uint32_t i = 0; i < n; ++i) {
      for_each_source(i, [&](std::uint32_t source) {
        ++first[source + 1];
        ++pending[i];
      });
    }
    for (std::size_t i = 0; i < n; ++i) first[i + 1] += first[i];
    std::vector<std::uint32_t> readers(first[n]), fill(first.begin(), first.end() - 1);
    for (std::uint32_t i = 0; i < n; ++i) {
      for_each_source(i, [&](std::uint32_t source) { readers[fill[source]++] = i; });
    }
    std::vector<std::uint32_t> ready;
    ready.reserve(n);
    for (std::size_t i = 0; i < n; ++i) {
      if (pending[i] == 0) ready.push_back(static_cast<std::uint32_t>(i));
    }
    for (std::size_t k = 0; k < ready.size(); ++k) {
      const std::uint32_t i = ready[k];
      for (std::uint32_t r = first[i]; r < first[i + 1]; ++r) {
        if (--pending[readers[r]] == 0) ready.push_back(readers[r]);
      }
    }
    if (ready.size() == n) return true;
    // Walk backwards among the nodes that never became ready until one repeats.
    std::vector<std::uint32_t> seen(n, kNone), path;
    std::uint32_t at = 0;
    while (pending[at] == 0) ++at;
    while (seen[at] == kNone) {
      seen[at] = static_cast<std::uint32_t>(path.size());
      path.push_back(at);
      std::uint32_t next = kNone;
      for_each_source(at, [&](std::uint32_t source) {
        if (pending[source] > 0) next = source;
      });
      at = next;
    }
    auto report =
        facts_.sink.report(Code::cyclic_dag, dag_.nodes[at].loc,
                           "the value of `{}` depends on itself", facts_.name(NodeId(at)));
    for (std::size_t k = seen[at]; k < path.size(); ++k) {
      const NodeId node(path[k]), source(k + 1 < path.size() ? path[k + 1] : at);
      report.related(facts_.loc(node), "`{}` reads `{}`", facts_.name(node), facts_.name(source));
    }
    return false;
  }

  void origins() {
    std::vector<std::uint32_t>& origin = facts_.origin;
    origin.resize(facts_.owner.size());
    std::iota(origin.begin(), origin.end(), 0u);
    std::vector<std::uint32_t> passed_on;
    for (std::uint32_t i = 0; i < dag_.nodes.size(); ++i) {
      if (!is_recv(facts_.kind[i]) && !gathers_lists(facts_.kind[i]) &&
          !copies_to_or_from_host(facts_.kind[i]))
        continue;
      std::uint32_t next = facts_.output_base[i];
      for (const NodeId member : dag_.comms[dag_.nodes[i].comm.index()].members) {
        const Node& other = facts_.node(member);
        if (is_recv(facts_.kind[i]) && !is_send(other.kind)) break;  // the send comes first
        for_each_port(dag_, other, [&](std::span<const Input> sources) {
          if (next < facts_.output_base[i + 1] && sources[0].source.node.valid()) {
            origin[next] = facts_.output(sources[0].source);
            passed_on.push_back(next);
          }
          ++next;
        });
        if (is_recv(facts_.kind[i])) break;
      }
    }
    // A value may be passed on several times. The DAG is acyclic, so each chain ends, and no part
    // of it is walked twice.
    std::vector<std::uint32_t> way;
    for (std::uint32_t output : passed_on) {
      way.clear();
      for (; origin[output] != output; output = origin[output]) way.push_back(output);
      for (const std::uint32_t passed : way) origin[passed] = output;
    }
  }

  /// Numbers of the types that occur, equal for equal types.
  std::uint32_t number_of(const tensor::Type& type) {
    if (&type == last_) return last_number_;  // many loads of one input
    last_ = &type;
    return last_number_ = find_number(type);
  }

  std::uint32_t find_number(const tensor::Type& type) {
    std::vector<std::uint32_t>& alike =
        alike_[type.bytes() * 31 + static_cast<std::int64_t>(type.dims.size())];
    for (const std::uint32_t number : alike) {
      if (types_[number] == type) return number;
    }
    alike.push_back(static_cast<std::uint32_t>(types_.size()));
    types_.push_back(type);
    return alike.back();
  }

  /// A value that a recv, an all_gather_v or a copy passes on has the type of its origin.
  void types_of_outputs() {
    first_input_type_.reserve(dag_.bodies.size());
    std::vector<std::uint32_t> first_output_type, output_types;
    for (const dag::Body& body : dag_.bodies) {
      first_input_type_.push_back(static_cast<std::uint32_t>(input_types_.size()));
      first_output_type.push_back(static_cast<std::uint32_t>(output_types.size()));
      for (const dag::BodyPort& port : body.inputs)
        input_types_.push_back(number_of(body.graph.type(port.value)));
      for (const dag::BodyPort& port : body.outputs)
        output_types.push_back(number_of(body.graph.type(port.value)));
    }
    const std::size_t outputs = facts_.owner.size();
    output_type_.resize(outputs);
    for (std::uint32_t i = 0; i < dag_.nodes.size(); ++i) {
      const std::uint32_t first = facts_.output_base[i], count = facts_.output_base[i + 1] - first;
      if (runs_body(facts_.kind[i])) {
        const std::uint32_t* const types =
            output_types.data() + first_output_type[dag_.nodes[i].body.index()];
        std::copy(types, types + count, output_type_.begin() + first);
        continue;
      }
      for (std::uint32_t k = 0; k < count; ++k) {
        if (facts_.origin[first + k] == first + k)
          output_type_[first + k] = number_of(dag_.output_type({NodeId(i), k}));
      }
    }
    std::vector<std::int64_t> bytes;
    for (const tensor::Type& type : types_) bytes.push_back(type.bytes());
    facts_.output_bytes.resize(outputs);
    for (std::size_t k = 0; k < outputs; ++k) {
      output_type_[k] = output_type_[facts_.origin[k]];
      facts_.output_bytes[k] = bytes[output_type_[k]];
    }
  }

  Facts& facts_;
  const Dag& dag_;
  std::vector<tensor::Type> types_;     // the types that occur
  const tensor::Type* last_ = nullptr;  // the last one requested
  std::uint32_t last_number_ = 0;
  std::unordered_map<std::int64_t, std::vector<std::uint32_t>> alike_;  // by size: their numbers
  // Per body, and per input port of each: the type.
  std::vector<std::uint32_t> first_input_type_, input_types_;
  std::vector<std::uint32_t> output_type_;  // per output
};

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
                 (dag_.settings.optimizer && dag_.settings.optimizer->clip &&
                          dag_.level >= Level::communicating
                      ? 1
                      : 0);
        // Below level communicating the builder of the DAG may leave out clipping.
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

  /// All devices and microbatches have the same number of samples.
  void samples(NodeId id, const Node& node) {
    const std::int64_t parts = dag_.samples_divisor(node);
    for (const tensor::Dim& dim : dag_.input_types[node.subject.input().index()].dims) {
      if (!dim.sampled || dim.extent % parts == 0) continue;
      wrong(id, "`{}` takes one of `{}` equal parts of `{}` samples, which do not divide so",
            facts_.name(id), parts, dim.extent);
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
      return layout.replicated() ? std::string("whole")
                                 : tensor::layout_text(*dag_.context, layout);
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
