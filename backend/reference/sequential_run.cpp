#include "backend/reference/sequential_run.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

#include "backend/dtypes.h"
#include "backend/kernel/evaluate.h"
#include "backend/kernel/update_body.h"
#include "backend/reference/rank_memory.h"
#include "ir/dag/bucket_layout.h"
#include "ir/dag/local_body.h"
#include "ir/dag/local_type.h"
#include "ir/dag/value_layout.h"

namespace piper::backend {

using dag::Dag;
using dag::Node;
using dag::NodeKind;

namespace {

template <typename T>
void add_to(unsigned char* to, const unsigned char* from, std::int64_t elements) {
  T* a = reinterpret_cast<T*>(to);
  const T* b = reinterpret_cast<const T*>(from);
  for (std::int64_t i = 0; i < elements; ++i) a[i] = a[i] + b[i];
}

}  // namespace

struct SequentialRun::State : RankMemory {
  SequentialHost host;
  std::uint64_t seed;
  std::uint64_t steps = 0;

  /// The kernels of a body of the DAG, by the extents of its uneven boxes.
  struct Kernels {
    std::vector<Sharding> shardings;
    std::map<std::vector<std::int64_t>, KernelBody> by_extents;
  };
  std::vector<Kernels> bodies;
  std::vector<PiperCallShape> shapes;  // of their library calls, distinct
  // By elements and the factors of rate and decay.
  std::map<std::tuple<std::int64_t, double, double>, KernelBody> updates;
  std::vector<KernelBody> squares;  // per bucket
  KernelBody norm;
  std::vector<dag::SquaredPart> norm_order;
  std::vector<std::uint8_t> matched;        // per comm: done in this step
  std::vector<dag::BucketPosition> places;  // per parameter
  // Per parameter and rank: contributions since the last reduction, for sharded gradients.
  std::vector<std::vector<Memory>> rounds;

  /// The in-place sum of which an output is a term.
  struct Term {
    tensor::ParamId param;  // for a contribution
    bool adds = false;      // it is not the first term
  };
  std::vector<Term> terms;  // per port of the DAG

  std::vector<std::vector<double>> losses;
  double gradient_norm = 0;
  PiperRank rank{};

  State(const Dag& dag_in, SequentialHost host_in, std::uint64_t seed_in)
      : RankMemory(dag_in), host(std::move(host_in)), seed(seed_in) {
    for (const dag::Body& body : dag.bodies)
      bodies.push_back({dag::uneven_shardings(body, dag.mesh), {}});
    losses.resize(dag.losses.size());
    matched.resize(dag.comms.size());
    places = dag::bucket_positions(dag);
    rounds.resize(dag.params.size());
    for (auto& each : rounds) each.resize(world);
    find_terms();
    for (const dag::Bucket& bucket : dag.buckets) {
      squares.push_back(build_kernels(sum_squares_body(
          *dag.context, tensor::wide(bucket_dtype(bucket)), squared_elements(dag, bucket))));
    }
    norm_order = dag::norm_order(dag);
    norm = build_kernels(norm_body(*dag.context, norm_order.size(), dag.settings));
  }

  void find_terms() {
    terms.resize(values.size());
    for (const Node& node : dag.nodes) {
      if (!adds_in_place(node.kind)) continue;
      const dag::Input* before = nullptr;
      for (const dag::Input& input : dag.inputs_of(node)) {
        const bool adds = before != nullptr && before->port == input.port;
        terms[first_port[input.source.node.index()] + input.source.index] = {
            dag.buckets[node.subject.bucket().index()].params[input.port], adds};
        before = &input;
      }
    }
  }

  tensor::DType bucket_dtype(const dag::Bucket& bucket) const {
    return dag.param_types[bucket.params.front().index()].dtype;
  }

  void samples_of(const Node& node, std::uint64_t r, std::uint64_t& first,
                  std::uint64_t& count) const {
    const Interval samples = dag::samples_of(dag, node, coordinates[r]);
    first = static_cast<std::uint64_t>(samples.first);
    count = static_cast<std::uint64_t>(samples.extent);
  }

  bool run(const KernelBody& body, std::vector<void*> operands,
           std::span<const std::uint8_t> accumulate, std::uint64_t first_sample = 0) {
    Memory workspace;
    if (body.scratch_bytes > 0) {
      workspace = allocate(body.scratch_bytes);
      operands.push_back(workspace.get());
    }
    const std::uint64_t firsts[] = {first_sample};
    const BodyCall call{host.api, &rank, 0, operands, accumulate, firsts};
    return evaluate(body, call) == 0;
  }

  const KernelBody& kernels(dag::BodyId id, std::uint64_t r) {
    Kernels& known = bodies[id.index()];
    const auto [entry, fresh] = known.by_extents.try_emplace(
        dag::local_extents(known.shardings, dag.mesh, coordinates[r]), KernelBody{});
    if (fresh) {
      entry->second = build_kernels(local_body(dag.bodies[id.index()], dag.mesh, coordinates[r]));
      number_shapes(entry->second, shapes);
    }
    return entry->second;
  }

  bool chunk(dag::NodeId id, const Node& node, std::uint64_t r) {
    const dag::Body& body = dag.bodies[node.body.index()];
    std::vector<void*> operands(body.inputs.size());
    for (const dag::Input& input : dag.inputs_of(node)) {
      if (body.inputs[input.port].kind != dag::PortKind::param)
        operands[input.port] = value(input.source, r);
    }
    for (std::size_t i = 0; i < body.inputs.size(); ++i) {
      if (body.inputs[i].kind == dag::PortKind::param)
        operands[i] = state.get() + copy_at(input_param(node, body, i), r).offset;
    }
    std::vector<std::uint8_t> accumulate(body.outputs.size(), 0);
    for (std::uint32_t o = 0; o < body.outputs.size(); ++o) {
      if (body.outputs[o].kind != dag::PortKind::grad) {
        operands.push_back(output(id, o, r));
        continue;
      }
      const Term& term = terms[first_port[id.index()] + o];
      operands.push_back(contribution_at(term.param, r));
      accumulate[o] = term.adds ? 1 : 0;
    }
    std::uint64_t first = 0, count = 0;
    samples_of(node, r, first, count);
    return run(kernels(node.body, r), std::move(operands), accumulate, first);
  }

  /// Bodies are shared between chunks with equal work, so the parameter is the one that this node's
  /// edge leads to.
  tensor::ParamId input_param(const Node& node, const dag::Body& body, std::size_t port) const {
    if (body.inputs[port].kind != dag::PortKind::param) return {};
    for (const dag::Input& input : dag.inputs_of(node)) {
      if (input.port != port || !input.source.node.valid()) continue;
      return dag.buckets[dag.node(input.source.node).subject.bucket().index()]
          .params[input.source.index];
    }
    return body.inputs[port].param;
  }

  /// The ranks that take part in a collective with `r`, in set order, then coordinate order, with
  /// the member node of each.
  std::vector<std::pair<std::uint64_t, dag::NodeId>> group_of(const dag::Comm& comm,
                                                              std::uint64_t r) const {
    std::vector<std::pair<std::uint64_t, dag::NodeId>> group;
    for (const dag::NodeId member : comm.members) {
      const DeviceSet& set = dag.device_sets[dag.node(member).devices];
      for (std::uint64_t other = 0; other < world; ++other) {
        bool joins = set.contains_device(coordinates[other]);
        for (std::size_t a = 0; joins && a < dag.mesh.axes.size(); ++a) {
          const bool whole = set.at[a] == DeviceSet::kWhole && !(comm.axes >> a & 1u);
          joins = !whole || coordinates[other][a] == coordinates[r][a];
        }
        if (joins) group.emplace_back(other, member);
      }
    }
    return group;
  }

  unsigned char* collective_input(dag::NodeId member, const dag::Input& input, std::uint64_t r) {
    const Node& node = dag.node(member);
    if (node.subject.bucket().valid()) {
      const tensor::ParamId param = dag.buckets[node.subject.bucket().index()].params[input.port];
      return reduces_to_shards(node.kind) ? contribution_at(param, r) : gradient_at(param, r);
    }
    return value(input.source, r);
  }

  /// The memory to which work adds a gradient; for a sharded one that of the gathered interval.
  unsigned char* contribution_at(tensor::ParamId param, std::uint64_t r) {
    const dag::BucketPosition place = places[param.index()];
    if (!place.bucket.valid() || !dag.shards_gradients(dag.buckets[place.bucket.index()]))
      return gradient_at(param, r);
    Memory& memory = rounds[param.index()][r];
    if (!memory) memory = allocate(gradient_bytes(param));
    return memory.get();
  }

  void all_reduce(const dag::Comm& comm) {
    std::vector<std::uint8_t> done(world, 0);
    for (std::uint64_t r = 0; r < world; ++r) {
      bool member = false;
      for (const dag::NodeId id : comm.members) member = member || on(dag.node(id).devices, r);
      if (!member || done[r]) continue;
      const auto group = group_of(comm, r);
      const Node& front = dag.node(group.front().second);
      // Here a gradient has memory of its own even if its sum is a shard of a bucket.
      const dag::BucketId bucket = front.subject.bucket();
      const std::uint32_t values =
          bucket.valid() ? static_cast<std::uint32_t>(dag.buckets[bucket.index()].params.size())
                         : front.num_outputs;
      for (std::uint32_t p = 0; p < values; ++p) add_up(group, p);
      for (const auto& [other, id] : group) done[other] = 1;
    }
  }

  /// One value of an all_reduce. A member without inputs only receives the sum.
  void add_up(const std::vector<std::pair<std::uint64_t, dag::NodeId>>& group, std::uint32_t p) {
    const dag::BucketId bucket = dag.node(group.front().second).subject.bucket();
    const tensor::Type type =
        bucket.valid()
            ? tensor::gradient_type(dag.param_types[dag.buckets[bucket.index()].params[p].index()])
            : dag.output_type({group.front().second, p});
    Memory sum = allocate(type.bytes());
    bool any = false;
    for (const auto& [other, id] : group) {
      const std::span<const dag::Input> ports = dag.inputs_of(dag.node(id));
      if (ports.empty()) continue;
      dag::Input input = ports[p < ports.size() ? p : 0];
      input.port = p;
      const unsigned char* part = collective_input(id, input, other);
      if (!std::exchange(any, true)) {
        std::memcpy(sum.get(), part, static_cast<std::size_t>(type.bytes()));
      } else {
        with_element(type.dtype,
                     [&](auto zero) { add_to<decltype(zero)>(sum.get(), part, type.elements()); });
      }
    }
    for (const auto& [other, id] : group) {
      if (!bucket.valid()) {
        std::memcpy(output(id, p, other), sum.get(), static_cast<std::size_t>(type.bytes()));
        continue;
      }
      const tensor::ParamId param = dag.buckets[bucket.index()].params[p];
      unsigned char* const to = gradient_at(param, other);
      if (terms[first_port[id.index()]].adds) {
        with_element(type.dtype,
                     [&](auto zero) { add_to<decltype(zero)>(to, sum.get(), type.elements()); });
      } else {
        std::memcpy(to, sum.get(), static_cast<std::size_t>(type.bytes()));
      }
    }
  }

  void all_gather_v(const dag::Comm& comm) {
    for (const dag::NodeId receiver : comm.members) {
      for (std::uint64_t r = 0; r < world; ++r) {
        if (!on(dag.node(receiver).devices, r)) continue;
        std::uint32_t port = 0;
        for (const auto& [other, id] : group_of(comm, r)) {
          for (const dag::Input& input : dag.inputs_of(dag.node(id))) {
            const auto bytes = static_cast<std::size_t>(dag::planned_bytes(dag, {receiver, port}));
            std::memcpy(output(receiver, port, r), collective_input(id, input, other), bytes);
            ++port;
          }
        }
      }
    }
  }

  /// Here host and device share one memory.
  void copy(dag::NodeId id) {
    // Optimizer state stays in place for updates.
    if (dag.node(id).subject.bucket().valid()) return;
    for (std::uint64_t r = 0; r < world; ++r) {
      if (!on(dag.node(id).devices, r)) continue;
      for (const dag::Input& input : dag.inputs_of(dag.node(id))) {
        std::memcpy(output(id, input.port, r), value(input.source, r),
                    static_cast<std::size_t>(dag::planned_bytes(dag, {id, input.port})));
      }
    }
  }

  void transfer(const dag::Comm& comm) {
    const dag::NodeId send = comm.members[0], recv = comm.members[1];
    const DeviceSet& source = dag.device_sets[dag.node(send).devices];
    const DeviceSet& target = dag.device_sets[dag.node(recv).devices];
    for (std::uint64_t r = 0; r < world; ++r) {
      if (!target.contains_device(coordinates[r])) continue;
      std::vector<std::uint32_t> at = coordinates[r];
      for (std::size_t a = 0; a < at.size(); ++a) {
        if (source.at[a] != DeviceSet::kWhole) at[a] = static_cast<std::uint32_t>(source.at[a]);
      }
      const std::uint64_t from = rank_of(dag.mesh, at);
      for (const dag::Input& input : dag.inputs_of(dag.node(send))) {
        std::memcpy(output(recv, input.port, r), value(input.source, from),
                    static_cast<std::size_t>(dag::planned_bytes(dag, {recv, input.port})));
      }
    }
  }

  bool sum_squares(dag::NodeId id, const Node& node, std::uint64_t r) {
    const dag::Bucket& bucket = dag.buckets[node.subject.bucket().index()];
    std::vector<void*> operands;
    const dag::BucketLayout layout = bucket_layout(dag, bucket);
    Memory flat;
    if (bucket.sharded()) {
      flat = allocate(layout.sum_bytes(layout.elements));
      for (std::size_t i = 0; i < bucket.params.size(); ++i) {
        std::memcpy(flat.get() + layout.sum_bytes(layout.offsets[i]),
                    gradient_at(bucket.params[i], r),
                    static_cast<std::size_t>(gradient_bytes(bucket.params[i])));
      }
      operands.push_back(
          flat.get() +
          layout.sum_bytes(
              shard_interval(dag::bucket_sharding(dag, bucket), dag.mesh, coordinates[r]).first));
    } else {
      for (const tensor::ParamId param : bucket.params) operands.push_back(gradient_at(param, r));
    }
    const std::size_t count = operands.size();
    // Kernel operands are aligned to 64 bytes, but the sums are contiguous, so each is copied
    // through a buffer.
    std::vector<Memory> places;
    for (std::size_t i = 0; i < count; ++i) {
      places.push_back(allocate(8));
      operands.push_back(places.back().get());
    }
    const std::vector<std::uint8_t> writes(count, 0);
    if (!run(squares[node.subject.bucket().index()], operands, writes)) return false;
    unsigned char* sums = output(id, 0, r);
    for (std::size_t i = 0; i < places.size(); ++i) std::memcpy(sums + i * 8, places[i].get(), 8);
    return true;
  }

  bool norm_of(dag::NodeId id, const Node& node, std::uint64_t r) {
    std::vector<unsigned char*> sums(dag.buckets.size(), nullptr);
    for (const dag::Input& input : dag.inputs_of(node)) sums[input.port] = value(input.source, r);
    std::vector<Memory> places;
    std::vector<void*> operands;
    for (const dag::SquaredPart& part : norm_order) {
      places.push_back(allocate(8));
      std::memcpy(places.back().get(), sums[part.bucket.index()] + part.index * 8, 8);
      operands.push_back(places.back().get());
    }
    Memory total = allocate(8), factor = allocate(8);
    operands.push_back(total.get());
    operands.push_back(factor.get());
    const std::uint8_t writes[2] = {0, 0};
    if (!run(norm, operands, writes)) return false;
    std::memcpy(output(id, 0, r), total.get(), 8);
    std::memcpy(output(id, 0, r) + 8, factor.get(), 8);
    return true;
  }

  bool update(const Node& node, std::uint64_t r, PiperScalars& scalars) {
    const dag::Bucket& bucket = dag.buckets[node.subject.bucket().index()];
    double one = 1;
    double* factor = &one;
    for (const dag::Input& input : dag.inputs_of(node)) {
      if (input.port == dag.gradient_values(bucket) &&
          !returns_to_device(dag.node(input.source.node).kind))
        factor = reinterpret_cast<double*>(value(input.source, r) + 8);
    }
    for (std::size_t i = 0; i < bucket.params.size(); ++i) {
      const tensor::ParamId id = bucket.params[i];
      const PiperParam& param = copy_at(id, r);
      const std::int64_t elements = dag.param_types[id.index()].elements();
      const tensor::Param& tuned = dag.params[id.index()];
      const std::tuple shape(elements, tuned.rate, tuned.decay);
      auto found = updates.find(shape);
      if (found == updates.end()) {
        const UpdateBody made =
            update_body(*dag.context, update_rule(dag, id), bucket_dtype(bucket), elements);
        found = updates.emplace(shape, update_kernels(made)).first;
      }
      unsigned char* gradient = gradient_at(id, r);
      std::vector<void*> operands = {state.get() + param.offset, gradient, &scalars.learning_rate,
                                     factor};
      for (std::uint32_t s = 0; s < slots(id); ++s)
        operands.push_back(state.get() + param.slot_offsets[s]);
      if (optimizer().corrects_bias()) {
        operands.push_back(&scalars.bias1);
        operands.push_back(&scalars.bias2);
      }
      operands.push_back(state.get() + param.offset);
      for (std::uint32_t s = 0; s < slots(id); ++s)
        operands.push_back(state.get() + param.slot_offsets[s]);
      const std::vector<std::uint8_t> writes(1 + slots(id), 0);
      if (!run(found->second, operands, writes)) return false;
      std::memcpy(state.get() + param.grad_offset, gradient,
                  static_cast<std::size_t>(gradient_bytes(id)));
    }
    return true;
  }

  /// The number of targets that count among those that rank r reads.
  void count(dag::NodeId id, const Node& node, std::uint64_t r) {
    std::int64_t counted = 0;
    for (const dag::Input& input : dag.inputs_of(node)) {
      const auto* targets = reinterpret_cast<const std::int64_t*>(value(input.source, r));
      const std::int64_t elements = local_type(dag, input.source, coordinates[r]).elements();
      for (std::int64_t i = 0; i < elements; ++i)
        counted += targets[i] != dag.losses[node.subject.count().index()].mask->ignore;
    }
    const auto number = static_cast<double>(counted);
    std::memcpy(output(id, 0, r), &number, 8);
  }

  void report(const Node& node, std::uint64_t r) {
    std::vector<double> sums;
    for (const dag::Input& input : dag.inputs_of(node)) {
      sums.push_back(
          element_as_double(value(input.source, r), dag.output_type(input.source).dtype));
    }
    if (node.subject.is_norm()) {
      gradient_norm = sums.empty() ? 0 : sums[0];
    } else {
      if (dag.losses[node.subject.loss().index()].mask) sums.pop_back();  // the count
      losses[node.subject.loss().index()] = std::move(sums);
    }
  }

  bool run_node(dag::NodeId id, PiperScalars& scalars) {
    const Node& node = dag.node(id);
    if (node.comm.valid()) {
      if (std::exchange(matched[node.comm.index()], std::uint8_t{1})) return true;
      const dag::Comm& comm = dag.comms[node.comm.index()];
      switch (traits(node.kind).comm_op) {
        case dag::CommOp::none: break;
        case dag::CommOp::send:
        case dag::CommOp::recv: transfer(comm); break;
        case dag::CommOp::offload:
        case dag::CommOp::fetch: copy(comm.members.front()); break;
        // Here each member of a reduce_scatter has the full sum, and an owner has one copy of its
        // parameters.
        case dag::CommOp::all_reduce:
        case dag::CommOp::reduce_scatter: all_reduce(comm); break;
        case dag::CommOp::all_gather: break;
        case dag::CommOp::all_gather_v: all_gather_v(comm); break;
      }
      return true;
    }
    bool updated = false;
    for (std::uint64_t r = 0; r < world; ++r) {
      if (!on(node.devices, r)) continue;
      switch (node.kind) {
        case NodeKind::chunk:
          if (!chunk(id, node, r)) return false;
          break;
        case NodeKind::load: {
          std::uint64_t first = 0, count = 0;
          samples_of(node, r, first, count);
          if (!host.load(node.subject.input().value(), steps, first, count, output(id, 0, r)))
            return false;
          break;
        }
        case NodeKind::count: count(id, node, r); break;
        case NodeKind::accumulate: break;  // producers added its terms
        case NodeKind::sum_squares:
          if (!sum_squares(id, node, r)) return false;
          break;
        case NodeKind::norm:
          if (!norm_of(id, node, r)) return false;
          break;
        case NodeKind::update:
          // The devices of an owner have equal copies, so one is enough.
          if (!std::exchange(updated, true) && !update(node, r, scalars)) return false;
          break;
        case NodeKind::report: report(node, r); break;
        case NodeKind::send:
        case NodeKind::recv:
        case NodeKind::offload:
        case NodeKind::fetch:
        case NodeKind::all_reduce:
        // Operations of a communicator, above.
        case NodeKind::reduce_scatter:
        case NodeKind::all_gather:
        case NodeKind::all_gather_v: break;
      }
    }
    return true;
  }
};

SequentialRun::SequentialRun(const Dag& dag, SequentialHost host, std::uint64_t seed)
    : state_(std::make_unique<State>(dag, std::move(host), seed)) {}
SequentialRun::~SequentialRun() = default;

std::span<const PiperParam> SequentialRun::params() const { return state_->params; }
unsigned char* SequentialRun::state() { return state_->state.get(); }
const std::vector<std::vector<double>>& SequentialRun::loss_sums() const { return state_->losses; }
double SequentialRun::gradient_norm() const { return state_->gradient_norm; }

bool SequentialRun::step(const PiperScalars& scalars) {
  State& s = *state_;
  std::fill(s.matched.begin(), s.matched.end(), 0);
  s.rank.runtime = s.host.runtime;
  s.rank.seed = s.seed;
  s.rank.global_step = s.steps;
  PiperScalars aligned_scalars = scalars;
  for (const dag::NodeId id : s.dag.order) {
    if (!s.run_node(id, aligned_scalars)) return false;
  }
  ++s.steps;
  return true;
}

namespace {

std::vector<double> read(const unsigned char* from, const PiperParam& param, std::uint32_t dtype) {
  std::vector<double> out(param.elements);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = element_as_double(from, row_of(dtype).dtype, static_cast<std::int64_t>(i));
  return out;
}

}  // namespace

std::vector<double> SequentialRun::values(std::string_view name) const {
  for (const PiperParam& param : state_->params) {
    if (param.counted && name == param.name)
      return read(state_->state.get() + param.offset, param, param.dtype);
  }
  return {};
}

std::vector<double> SequentialRun::gradient(std::string_view name) const {
  for (const PiperParam& param : state_->params) {
    if (param.counted && name == param.name)
      return read(state_->state.get() + param.grad_offset, param, param.sum_dtype);
  }
  return {};
}

std::vector<double> SequentialRun::average(std::string_view name) const {
  for (const PiperParam& param : state_->params) {
    if (param.counted && name == param.name && param.average_slot != 0)
      return read(state_->state.get() + param.slot_offsets[param.average_slot - 1], param,
                  param.sum_dtype);
  }
  return {};
}

}  // namespace piper::backend
