#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "ir/dag/text_names.h"
#include "ir/parallel.h"
#include "ir/verify/facts.h"

namespace piper::verify {

namespace {

class Tables {
 public:
  explicit Tables(Facts& facts) : facts_(facts), dag_(facts.dag) {}

  bool check() {
    if (dag_.param_types.size() != dag_.params.size() ||
        dag_.input_types.size() != dag_.inputs.size())
      return fail("the header's types are incomplete");
    if (dag_.dims.size() > dag::kMaxSplitDims)
      return fail("there are more split dimensions than a node has indices");
    if (dag_.mesh.axes.size() > kMaxAxes) return fail("the mesh has too many axes");
    for (std::size_t i = 0; i < dag_.device_sets.size(); ++i) {
      const DeviceSet& set = dag_.device_sets[DeviceSetId::at(i)];
      if (set.at.size() != dag_.mesh.axes.size())
        return fail("a device set has another number of axes than the mesh");
      for (std::size_t axis = 0; axis < set.at.size(); ++axis) {
        if (set.at[axis] < DeviceSet::kWhole ||
            set.at[axis] >= static_cast<std::int64_t>(dag_.mesh.axes[axis].size)) {
          return fail("a device set lies outside the mesh");
        }
      }
    }
    if (const auto& data = dag_.forward_only ? dag_.settings.held_out : dag_.settings.data) {
      for (std::size_t i = 0; i < dag_.inputs.size(); ++i) {
        for (const tensor::Dim& dim : dag_.input_types[i].dims) {
          if (dim.sampled && dim.extent != data->batch) {
            return fail("input `" + std::string(facts_.text(dag_.inputs[i].name)) + "` takes `" +
                            std::to_string(dim.extent) + "` samples, and the data has `" +
                            std::to_string(data->batch) + "`",
                        dag_.inputs[i].loc);
          }
        }
      }
    }
    for (const tensor::Loss& loss : dag_.losses) {
      if (loss.count < 1)
        return fail("loss `" + std::string(facts_.text(loss.name)) + "` is the mean of no element",
                    loss.loc);
      if (loss.mask && !inside(loss.mask->targets, dag_.inputs))
        return fail("the mask of a loss reads an input that does not exist", loss.loc);
    }
    for (const dag::Bucket& bucket : dag_.buckets) {
      for (const LayoutId layout :
           {bucket.unreduced, bucket.state, bucket.gradients, bucket.parameters}) {
        if (layout.value() >= dag_.context->layouts.size())
          return fail("bucket `" + std::string(facts_.text(bucket.name)) +
                          "` has a layout that does not exist",
                      bucket.loc);
      }
    }
    for (const dag::Body& body : dag_.bodies) {
      for (const tensor::Value& value : body.graph.values()) {
        if (value.layout.value() >= dag_.context->layouts.size())
          return fail("a value of body `" + std::string(facts_.text(body.name)) +
                          "` has a layout that does not exist",
                      loc_of(body));
      }
      for (const std::vector<dag::BodyPort>* ports : {&body.inputs, &body.outputs}) {
        for (const dag::BodyPort& port : *ports) {
          const bool in_graph =
              port.value.valid() && port.value.index() < body.graph.values().size();
          const bool param = port.kind != PortKind::param && port.kind != PortKind::grad;
          if (!in_graph || !(param || inside(port.param, dag_.params)) ||
              ((port.kind == PortKind::loss_sum || port.kind == PortKind::count) &&
               !inside(port.loss, dag_.losses)) ||
              (port.input.valid() && !inside(port.input, dag_.inputs))) {
            return fail(
                "a port of body `" + std::string(facts_.text(body.name)) + "` refers to nothing",
                loc_of(body));
          }
        }
      }
    }
    if (!ports_bound() || !ports_connect()) return false;
    std::map<std::pair<RegionId, std::uint32_t>, Symbol> parts;
    for (const dag::Chunk& chunk : dag_.chunks) {
      const auto [entry, fresh] = parts.try_emplace({chunk.region, chunk.segment}, chunk.name);
      if (!fresh) {
        return fail("chunks `" + std::string(facts_.text(entry->second)) + "` and `" +
                        std::string(facts_.text(chunk.name)) + "` are the same part of the model",
                    chunk.loc);
      }
      for (const dag::BodyId body : chunk.bodies) {
        if (body.valid() && !inside(body, dag_.bodies))
          return fail("a chunk refers to a body that does not exist", chunk.loc);
      }
      if (chunk.recomputed_forward.valid() && !inside(chunk.recomputed_forward, dag_.bodies))
        return fail("a chunk refers to a body that does not exist", chunk.loc);
    }
    for (const dag::Bucket& bucket : dag_.buckets) {
      for (const tensor::ParamId param : bucket.params) {
        if (!inside(param, dag_.params))
          return fail("a bucket refers to a parameter that does not exist", bucket.loc);
      }
      for (const DeviceSetId owner : bucket.owners) {
        if (!inside(owner, dag_.device_sets))
          return fail("a bucket refers to a device set that does not exist", bucket.loc);
      }
    }
    const auto exists = [&](NodeId node) { return inside(node, dag_.nodes); };
    const bool have_members = every(dag_.comms, [&](const dag::Comm& comm) {
      return !comm.members.empty() && std::all_of(comm.members.begin(), comm.members.end(), exists);
    });
    if (!have_members) return notify_comms();
    if (!nodes()) return false;
    const bool join_nodes = every(
        dag_.temporal, [&](const auto& edge) { return exists(edge.first) && exists(edge.second); });
    if (!join_nodes) return fail("a temporal edge refers to a node that does not exist");
    const auto all_exist = [&](const std::vector<NodeId>& nodes) {
      return std::all_of(nodes.begin(), nodes.end(), [&](NodeId id) { return exists(id); });
    };
    const bool gather_nodes = every(dag_.gather_intervals, [&](const auto& placed) {
      return exists(placed.whole) && all_exist(placed.uses) && all_exist(placed.after);
    });
    if (!gather_nodes)
      return fail("a gather that an order places refers to a node that does not exist");
    run_both(num_nodes_, [&] { outputs(); }, [&] { positions(); });
    return facts_.ok();
  }

 private:
  template <typename Id, typename Table>
  static bool inside(Id id, const Table& table) {
    return id.valid() && id.index() < table.size();
  }

  /// Whether it holds for every entry of a table.
  template <typename Table, typename Holds>
  bool every(const Table& table, const Holds& holds) const {
    return all_hold(request_, table.size(), [&](std::size_t begin, std::size_t end) {
      return std::all_of(table.data() + begin, table.data() + end, holds);
    });
  }

  bool fail(const std::string& what, LocId loc = {}) {
    facts_.sink.report(Code::broken_dag, loc, "{}", what);
    return false;
  }
  bool fail(NodeId id, const char* what) {
    return fail(std::string(kind_name(facts_.node(id).kind)) + " node " +
                    std::to_string(id.value()) + " " + what,
                facts_.loc(id));
  }

  /// The location of a body is that of the first chunk that names it.
  LocId loc_of(const dag::Body& body) const {
    const auto names = [&](dag::BodyId id) {
      return id.valid() && inside(id, dag_.bodies) && &dag_.bodies[id.index()] == &body;
    };
    const auto user =
        std::find_if(dag_.chunks.begin(), dag_.chunks.end(), [&](const dag::Chunk& chunk) {
          return names(chunk.recomputed_forward) ||
                 std::any_of(chunk.bodies.begin(), chunk.bodies.end(), names);
        });
    return user != dag_.chunks.end() ? user->loc : LocId();
  }

  /// The values that a body does not compute are its inputs, each once; each output occurs once. A
  /// body with a signature only has no values to check.
  bool ports_bound() {
    for (const dag::Body& body : dag_.bodies) {
      std::vector<bool> bound(body.graph.values().size());
      const auto no = [&](tensor::ValueId value, const char* why) {
        return fail("`%" + std::string(facts_.text(body.graph.value(value).name)) + "` of body `" +
                        std::string(facts_.text(body.name)) + "` " + why,
                    loc_of(body));
      };
      for (const dag::BodyPort& port : body.inputs) {
        if (bound[port.value.index()]) return no(port.value, "stands twice among its inputs");
        if (body.graph.value(port.value).def.valid())
          return no(port.value, "is an input and computed");
        bound[port.value.index()] = true;
      }
      for (std::size_t v = 0; v < bound.size() && !body.graph.nodes().empty(); ++v) {
        if (!bound[v] && !body.graph.values()[v].def.valid())
          return no(tensor::ValueId::at(v), "is a port that its signature lacks");
      }
      // One value may be the gradient of several parameters.
      std::set<std::tuple<PortKind, tensor::ValueId, tensor::LossId>> given;
      for (const dag::BodyPort& port : body.outputs) {
        const tensor::ValueId value =
            port.kind == PortKind::loss_sum ? port.value : port.global_value;
        if (!given.insert({port.kind, value, port.loss}).second)
          return no(port.value, "stands twice among its outputs");
      }
    }
    return true;
  }

  /// Ports of values between bodies name the value that they carry; a parameter and its gradient
  /// have the same one.
  bool ports_connect() {
    std::vector<tensor::ValueId> value_of(dag_.params.size());
    for (const dag::Body& body : dag_.bodies) {
      for (const std::vector<dag::BodyPort>* ports : {&body.inputs, &body.outputs}) {
        for (const dag::BodyPort& port : *ports) {
          if (port.kind == PortKind::loss_sum || port.kind == PortKind::count) continue;
          const auto where = [&] {
            return "port `" + std::string(facts_.text(body.graph.value(port.value).name)) +
                   "` of body `" + std::string(facts_.text(body.name)) + "`";
          };
          if (!port.global_value.valid())
            return fail(where() + " carries a value that connects to nothing", loc_of(body));
          if (port.kind != PortKind::param && port.kind != PortKind::grad) continue;
          tensor::ValueId& known = value_of[port.param.index()];
          if (!known.valid()) known = port.global_value;
          if (known != port.global_value) {
            return fail(where() + " carries another value than the other ports of parameter `" +
                            std::string(facts_.text(dag_.params[port.param.index()].name)) + "`",
                        loc_of(body));
          }
        }
      }
    }
    return true;
  }

  /// The first error.
  bool notify_comms() {
    for (const dag::Comm& comm : dag_.comms) {
      if (comm.members.empty()) return fail("a communication has no members");
      for (const NodeId member : comm.members) {
        if (!inside(member, dag_.nodes))
          return fail("a communication refers to a node that does not exist");
      }
    }
    return true;
  }

  /// Several threads find out whether there are errors; errors are reported in the order of the
  /// nodes.
  bool nodes() {
    std::atomic<bool> complete = true;
    const bool good =
        all_hold(request_, dag_.nodes.size(), [&](std::size_t begin, std::size_t end) {
          DiagnosticSink scratch(dag_.context->locations);
          Facts facts(facts_, scratch);
          Tables part(facts);
          for (std::size_t i = begin; i < end; ++i) {
            if (!part.node(NodeId::at(i))) return false;
          }
          if (!part.complete_) complete = false;
          return true;
        });
    facts_.tables->all_on_devices_and_streams = complete;
    for (std::size_t i = 0; !good && i < dag_.nodes.size(); ++i) {
      if (!node(NodeId::at(i))) return false;
    }
    return good;
  }

  bool node(NodeId id) {
    const Node& node = facts_.node(id);
    const auto optional = [](auto field, std::size_t size) {
      return !field.valid() || field.index() < size;
    };
    if (static_cast<std::size_t>(node.kind) >= dag::kNodeTraits.size())
      return fail("node " + std::to_string(id.value()) + " has no kind");
    if (!optional(node.chunk, num_chunks_) || !optional(node.body, num_bodies_) ||
        !optional(node.devices, num_device_sets_) || !optional(node.stream, num_streams_) ||
        !optional(node.comm, num_comms_) || !optional(node.subject.bucket(), num_buckets_) ||
        !optional(node.subject.input(), dag_.inputs.size()) ||
        !optional(node.subject.loss(), dag_.losses.size()) ||
        !optional(node.subject.count(), dag_.losses.size())) {
      return fail(id, "refers outside the DAG's tables");
    }
    if (std::size_t{node.first_input} + node.num_inputs > num_edges_)
      return fail(id, "has inputs outside the edge pool");
    if (runs_body(node.kind) && !(node.chunk.valid() && node.body.valid()))
      return fail(id, "has no chunk or no body");
    if (!may_speak_of(node.kind, node.subject.kind())) {
      return fail(id, node.subject == dag::Subject() ? "has no subject, unlike its kind"
                                                     : "has a subject that its kind does not have");
    }
    if (node.body.valid() && !runs_body(node.kind))
      return fail(id, "has a body, which only work of the model runs");
    if (node.chunk.valid() && !may_name_work(node.kind))
      return fail(id, "names work of the model, unlike its kind");
    if (node.instance != dag::Instance() && !node.chunk.valid() && node.kind != NodeKind::load &&
        !is_message(node.kind))
      return fail(id, "belongs to an instance, and names no work of it");
    if (!node.layout.replicated() && node.kind != NodeKind::load)
      return fail(id, "has a layout, which only loads have");
    const tensor::LossId counted = node.subject.count();
    if (counted.valid() && !dag_.losses[counted.index()].mask)
      return fail(id, "counts the elements of no masked loss");
    if (is_communication(node.kind) != node.comm.valid())
      return fail(id, is_communication(node.kind) ? "has no communication"
                                                  : "is no communication but names one");
    if (node.layout.value() >= dag_.context->layouts.size())
      return fail(id, "has a layout that does not exist");
    for (std::size_t i = 0; i < dag::kMaxSplitDims; ++i) {
      const std::int32_t at = node.instance.at[i];
      if (at == dag::Instance::kNone) continue;
      if (i >= num_dims_ || at < 0 || static_cast<std::uint32_t>(at) >= dag_.dims[i].extent)
        return fail(id, "has an index outside its split dimension");
    }
    if (!node.devices.valid() || (!node.stream.valid() && !adds_in_place(node.kind)))
      complete_ = false;
    std::uint32_t port = 0;
    for (const Input& input : dag_.inputs_of(node)) {
      if (input.port < port) return fail(id, "has inputs that are not ascending by port");
      port = input.port;
      if (!input.source.node.valid()) {
        if (!sourceless(node, input))
          return fail(
              named(id) + " has an input without a source, and only what is frozen needs none",
              node.loc);
        continue;
      }
      if (input.source.node.index() >= num_nodes_)
        return fail(id, "has an input from a node that does not exist");
      if (input.source.index >= facts_.node(input.source.node).num_outputs)
        return fail(id, "has an input from an output that does not exist");
    }
    if (node.num_inputs > 0 && port >= node.num_inputs)
      return fail(id, "has an input port that nothing feeds");
    return true;
  }

  /// Work itself, messages, and nodes that may occur once per gathered interval: sums and
  /// collectives.
  static bool may_name_work(NodeKind kind) {
    return runs_body(kind) || is_message(kind) || is_collective(kind) || adds_in_place(kind);
  }

  /// The name of a message depends on its other end, which may be broken.
  std::string named(NodeId id) const {
    const NodeKind kind = facts_.node(id).kind;
    return is_message(kind) ? std::string(kind_name(kind)) + " node " + std::to_string(id.value())
                            : "`" + facts_.name(id) + "`";
  }

  /// A parameter without an update in this program.
  bool sourceless(const Node& node, const Input& input) const {
    if (input.cls != dag::EdgeClass::param) return false;
    if (gathers_shards(node.kind))
      return dag_.forward_only || dag_.frozen(dag_.buckets[node.subject.bucket().index()]);
    if (!runs_body(node.kind)) return false;
    const std::vector<dag::BodyPort>& ports = dag_.bodies[node.body.index()].inputs;
    return dag_.forward_only ||
           (input.port < ports.size() && ports[input.port].kind == PortKind::param &&
            dag_.params[ports[input.port].param.index()].frozen);
  }

  void outputs() {
    const std::size_t n = dag_.nodes.size();
    facts_.output_base.resize(n + 1);
    facts_.kind.resize(n);
    const bool fit = all_hold(request_, n, [&](std::size_t begin, std::size_t end) {
      bool good = true;
      for (std::size_t i = begin; i < end; ++i) {
        const Node& node = dag_.nodes[i];
        facts_.kind[i] = node.kind;
        facts_.output_base[i + 1] = node.num_outputs;
        good = good && node.num_outputs == implied_outputs(dag_, node);
      }
      return good;
    });
    if (!fit) return notify_outputs();
    for (std::size_t i = 0; i < n; ++i) {
      facts_.output_base[i + 1] += facts_.output_base[i];
      const NodeKind kind = facts_.kind[i];
      if (!runs_body(kind) && kind != NodeKind::load && !is_message(kind))
        facts_.around.push_back(NodeId::at(i));
    }
    facts_.owner.resize(facts_.output_base.back());
    all_hold(request_, n, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        for (std::uint32_t k = facts_.output_base[i]; k < facts_.output_base[i + 1]; ++k)
          facts_.owner[k] = static_cast<std::uint32_t>(i);
      }
      return true;
    });
    std::vector<std::uint32_t> user(dag_.bodies.size(), kNone);
    facts_.shared_body.assign(dag_.bodies.size(), false);
    for (std::size_t c = 0; c < dag_.chunks.size(); ++c) {
      const auto use = [&](dag::BodyId body) {
        if (!body.valid()) return;
        if (user[body.index()] != kNone && user[body.index()] != c)
          facts_.shared_body[body.index()] = true;
        user[body.index()] = static_cast<std::uint32_t>(c);
      };
      std::for_each(dag_.chunks[c].bodies.begin(), dag_.chunks[c].bodies.end(), use);
      use(dag_.chunks[c].recomputed_forward);
    }
  }

  void notify_outputs() {
    for (std::size_t i = 0; i < dag_.nodes.size() && !facts_.enough(); ++i) {
      const Node& node = dag_.nodes[i];
      const std::uint32_t expected = implied_outputs(dag_, node);
      if (node.num_outputs == expected) continue;
      facts_.sink.report(Code::broken_dag, node.loc,
                         "`{}` has `{}` outputs where its kind makes `{}`",
                         facts_.name(NodeId::at(i)), node.num_outputs, expected);
    }
  }

  void positions() {
    const std::size_t n = dag_.nodes.size();
    if (dag_.level < Level::ordered || dag_.order.size() != n) return;
    facts_.position.assign(n, kNone);
    for (std::size_t i = 0; i < n; ++i) {
      const NodeId id = dag_.order[i];
      if (!inside(id, dag_.nodes) || facts_.position[id.index()] != kNone)
        return facts_.position.clear();
      facts_.position[id.index()] = static_cast<std::uint32_t>(i);
    }
  }

  Facts& facts_;
  const Dag& dag_;
  const Cancellation* const request_ = dag_.context->cancellation;
  const std::size_t num_nodes_ = dag_.nodes.size(), num_edges_ = dag_.edges.size(),
                    num_chunks_ = dag_.chunks.size(), num_bodies_ = dag_.bodies.size(),
                    num_device_sets_ = dag_.device_sets.size(), num_streams_ = dag_.streams.size(),
                    num_comms_ = dag_.comms.size(), num_buckets_ = dag_.buckets.size(),
                    num_dims_ = dag_.dims.size();
  bool complete_ = true;  // every node seen says its devices and stream
};

}  // namespace

bool check_tables(Facts& facts) {
  if (!Tables(facts).check()) return false;
  check_levels(facts);
  if (!facts.ok()) return false;
  check_bucket_layouts(facts);
  return facts.ok();
}

}  // namespace piper::verify
