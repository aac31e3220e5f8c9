#include "tests/support/run_dag.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "ir/dag/bucket_layout.h"
#include "ir/dag/local_body.h"
#include "ir/dag/value_layout.h"

namespace piper::test {

using namespace dag;

namespace {

[[noreturn]] void stop(const Dag& dag, NodeId node, const char* what) {
  std::fprintf(stderr, "%s: %s\n", dag.name(node).c_str(), what);
  std::abort();
}

void add_to(Array& sum, const Array& term) {
  for (std::size_t i = 0; i < sum.data.size(); ++i) sum.data[i] += term.data[i];
}

}  // namespace

DagRun::DagRun(const Dag& dag, std::vector<Array> inputs, std::vector<Array> params)
    : dag_(dag), inputs_(std::move(inputs)), params_(std::move(params)) {}

std::uint64_t DagRun::partner(DeviceSetId id, std::uint64_t rank) const {
  const DeviceSet& set = dag_.device_sets[id];
  std::vector<std::uint32_t> at = coordinates_of(dag_.mesh, rank);
  for (std::size_t a = 0; a < at.size(); ++a) {
    if (set.at[a] != DeviceSet::kWhole) at[a] = static_cast<std::uint32_t>(set.at[a]);
  }
  return rank_of(dag_.mesh, at);
}

const std::vector<Array>& DagRun::outputs(NodeId node, std::uint64_t rank) {
  const auto known = values_.find({node, rank});
  if (known != values_.end()) return known->second;
  if (!dag_.device_sets[dag_.node(node).devices].contains_device(coordinates_of(dag_.mesh, rank)))
    stop(dag_, node, "is read on a device that does not run it");
  if (running_[{node, rank}]) stop(dag_, node, "waits for itself");
  running_[{node, rank}] = true;
  std::vector<Array> result = evaluate(node, rank);
  return values_[{node, rank}] = std::move(result);
}

const Array& DagRun::input(const Node& node, std::uint32_t port, std::uint64_t rank) {
  const NodeId self = NodeId::at(static_cast<std::size_t>(&node - dag_.nodes.data()));
  const std::span<const Input> sources = dag_.inputs_of(node, port);
  if (sources.empty()) stop(dag_, self, "lacks an input");
  if (sources.size() > 1 || sources.front().cls == EdgeClass::grad)
    stop(dag_, self, "reads what an accumulate adds");
  const Port source = sources.front().source;
  if (!source.node.valid()) stop(dag_, self, "has an input without a source");
  return outputs(source.node, rank)[source.index];
}

/// The sum of an accumulate, in its order.
Array DagRun::sum(const Node& node, std::uint32_t port, std::uint64_t rank) {
  Array sum;
  for (const Input& term : dag_.inputs_of(node, port)) {
    const Array& value = outputs(term.source.node, rank)[term.source.index];
    if (sum.data.empty()) {
      sum = value;
    } else {
      add_to(sum, value);
    }
  }
  return sum;
}

Array DagRun::all_reduce(const Node& node, std::uint32_t port, std::uint64_t rank) {
  const Comm& comm = dag_.comms[node.comm.index()];
  Array sum;
  bool any = false;
  for (const NodeId member : comm.members) {
    const Node& other = dag_.node(member);
    if (dag_.inputs_of(other).empty()) continue;  // it takes the sum alone
    // The devices of the member set that agree with this one on all whole axes except those that
    // join.
    for (std::uint64_t device = 0; device < dag_.mesh.devices(); ++device) {
      const std::vector<std::uint32_t> there = coordinates_of(dag_.mesh, device),
                                       here =
                                           coordinates_of(dag_.mesh, partner(other.devices, rank));
      if (!dag_.device_sets[other.devices].contains_device(there)) continue;
      bool joins = true;
      for (std::size_t a = 0; a < there.size(); ++a)
        joins = joins && ((comm.axes >> a & 1) != 0 || there[a] == here[a]);
      if (!joins) continue;
      const Array& term = input(other, port, device);
      if (any) {
        add_to(sum, term);
      } else {
        sum = term;
      }
      any = true;
    }
  }
  if (!any)
    stop(dag_, NodeId::at(static_cast<std::size_t>(&node - dag_.nodes.data())), "adds nothing up");
  return sum;
}

/// The elements of a parameter's gradient that this device keeps: all, or where the state of its
/// bucket is cut those of its block.
std::vector<double> DagRun::own_shard(const Bucket& bucket, std::size_t param,
                                      const std::vector<double>& gradient,
                                      std::uint64_t rank) const {
  if (!bucket.sharded()) return gradient;
  const BucketLayout layout = bucket_layout(dag_, bucket);
  const Interval block =
      shard_interval(bucket_sharding(dag_, bucket), dag_.mesh, coordinates_of(dag_.mesh, rank));
  std::vector<double> own;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const std::int64_t at = layout.offsets[param] + static_cast<std::int64_t>(i);
    if (at >= block.first && at < block.first + block.extent) own.push_back(gradient[i]);
  }
  return own;
}

/// The inputs of a sum of squares or an update, parameter by parameter.
std::vector<Array> DagRun::gradients_of(const Node& node, std::uint64_t rank) {
  const Bucket& bucket = dag_.buckets[node.subject.bucket().index()];
  std::vector<Array> gradients;
  if (!dag_.shards_gradients(bucket)) {
    for (std::uint32_t i = 0; i < bucket.params.size(); ++i)
      gradients.push_back(input(node, i, rank));
    return gradients;
  }
  const Array& all = input(node, 0, rank);
  auto from = all.data.begin();
  for (const tensor::ParamId param : bucket.params) {
    Array& gradient = gradients.emplace_back();
    gradient.type = tensor::gradient_type(dag_.param_types[param.index()]);
    gradient.data.assign(from, from + gradient.type.elements());
    from += gradient.type.elements();
  }
  return gradients;
}

std::vector<Array> DagRun::evaluate(NodeId id, std::uint64_t rank) {
  const Node& node = dag_.node(id);
  const Context& context = *dag_.context;
  std::vector<Array> result;
  switch (node.kind) {
    case NodeKind::chunk: {
      const Body body =
          local_body(dag_.bodies[node.body.index()], dag_.mesh, coordinates_of(dag_.mesh, rank));
      Evaluator evaluator(body.graph);
      for (std::uint32_t i = 0; i < body.inputs.size(); ++i) {
        Array value = body.inputs[i].kind == PortKind::param ? params_[body.inputs[i].param.index()]
                                                             : input(node, i, rank);
        if (!(value.type == body.graph.type(body.inputs[i].value)))
          stop(dag_, id, "reads a value of another type than its port");
        evaluator.set(body.inputs[i].value, std::move(value));
      }
      evaluator.run();
      for (const BodyPort& port : body.outputs) result.push_back(evaluator.get(port.value));
      break;
    }
    case NodeKind::load: {
      const Array& whole = inputs_[node.subject.input().index()];
      const Interval samples = samples_of(dag_, node, coordinates_of(dag_.mesh, rank));
      const auto batch = std::find_if(whole.type.dims.begin(), whole.type.dims.end(),
                                      [](const tensor::Dim& dim) { return dim.sampled; });
      result.push_back(slice(whole, batch->name, samples.first, samples.extent));
      break;
    }
    case NodeKind::recv: {
      const Node& send = dag_.node(dag_.comms[node.comm.index()].members[0]);
      const std::uint64_t from = partner(send.devices, rank);
      if (partner(node.devices, from) != rank) stop(dag_, id, "has no partner that sends to it");
      for (std::uint32_t i = 0; i < node.num_outputs; ++i) result.push_back(input(send, i, from));
      break;
    }
    case NodeKind::accumulate:
      for (std::uint32_t i = 0; i < node.num_outputs; ++i) result.push_back(sum(node, i, rank));
      break;
    // Every member has the whole sum here; of cut gradients as one value, end to end.
    case NodeKind::reduce_scatter: {
      const Bucket& bucket = dag_.buckets[node.subject.bucket().index()];
      for (std::uint32_t i = 0; i < bucket.params.size(); ++i) {
        Array sum = all_reduce(node, i, rank);
        if (i == 0 || !dag_.shards_gradients(bucket)) {
          result.push_back(std::move(sum));
        } else {
          result.back().data.insert(result.back().data.end(), sum.data.begin(), sum.data.end());
        }
      }
      break;
    }
    case NodeKind::offload:
    case NodeKind::fetch:
      if (node.subject.bucket().valid()) {  // nothing here has optimizer state
        result.resize(node.num_outputs);
        break;
      }
      for (std::uint32_t i = 0; i < node.num_outputs; ++i) result.push_back(input(node, i, rank));
      break;
    case NodeKind::all_reduce:
      for (std::uint32_t i = 0; i < node.num_outputs; ++i)
        result.push_back(all_reduce(node, i, rank));
      break;
    case NodeKind::all_gather: {
      const Bucket& bucket = dag_.buckets[node.subject.bucket().index()];
      for (std::uint32_t i = 0; i < node.num_outputs; ++i)
        result.push_back(dag_.shards_parameters(bucket) ? params_[bucket.params[i].index()]
                                                        : input(node, i, rank));
      break;
    }
    case NodeKind::all_gather_v:
      for (const NodeId member : dag_.comms[node.comm.index()].members) {
        const Node& other = dag_.node(member);
        std::uint32_t ports = 0;
        for (const Input& edge : dag_.inputs_of(other)) ports = std::max(ports, edge.port + 1);
        for (std::uint32_t i = 0; i < ports; ++i)
          result.push_back(input(other, i, partner(other.devices, rank)));
      }
      if (result.size() != node.num_outputs)
        stop(dag_, id, "gathers another number of values than it gives");
      break;
    case NodeKind::sum_squares: {
      const Bucket& bucket = dag_.buckets[node.subject.bucket().index()];
      Array sums;
      const std::vector<Array> gradients = gradients_of(node, rank);
      for (std::uint32_t i = 0; i < bucket.params.size(); ++i) {
        double sum = 0;
        for (const double g : own_shard(bucket, i, gradients[i].data, rank)) sum += g * g;
        if (!bucket.sharded() || i == 0) sums.data.push_back(0);
        sums.data.back() += sum;
      }
      result.push_back(std::move(sums));
      break;
    }
    case NodeKind::norm: {
      double sum = 0;
      for (std::uint32_t b = 0; b < dag_.trained_buckets(); ++b) {
        for (const double s : input(node, b, rank).data) sum += s;
      }
      const double norm = std::sqrt(sum), clip = dag_.settings.optimizer->clip.value_or(0);
      result.push_back({{}, {norm, clip > 0 && norm > clip ? clip / norm : 1}});
      break;
    }
    case NodeKind::count: {
      double counted = 0;
      for (std::uint32_t i = 0; i < dag_.inputs_of(node).size(); ++i) {
        for (const double target : input(node, i, rank).data)
          counted += target != dag_.losses[node.subject.count().index()].mask->ignore;
      }
      result.push_back({{tensor::DType::f64, {}}, {counted}});
      break;
    }
    case NodeKind::report: {
      std::uint32_t ports = 0;
      for (const Input& edge : dag_.inputs_of(node)) ports = std::max(ports, edge.port + 1);
      const bool norm = node.subject.is_norm(),
                 masked = !norm && dag_.losses[node.subject.loss().index()].mask;
      double sum = 0;
      for (std::uint32_t i = 0; i + (masked ? 1 : 0) < ports; ++i)
        sum += input(node, i, rank).data[0];
      if (masked) {
        sum /= std::max(1.0, input(node, ports - 1, rank).data[0]);
      } else if (!norm) {
        sum /= static_cast<double>(dag_.losses[node.subject.loss().index()].count);
      }
      result.push_back({{}, {sum}});
      break;
    }
    case NodeKind::update: {
      result = gradients_of(node, rank);  // more of them than outputs where parameters are cut
      break;
    }
    case NodeKind::send: break;
  }
  (void)context;
  return result;
}

std::map<tensor::ParamId, Array> DagRun::gradients(std::uint64_t rank) {
  std::map<tensor::ParamId, Array> gradients;
  for (std::size_t n = 0; n < dag_.nodes.size(); ++n) {
    const Node& node = dag_.nodes[n];
    if (!writes_state(node.kind) ||
        !dag_.device_sets[node.devices].contains_device(coordinates_of(dag_.mesh, rank)))
      continue;
    const std::vector<Array>& values = outputs(NodeId::at(n), rank);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!gradients.emplace(dag_.buckets[node.subject.bucket().index()].params[i], values[i])
               .second)
        stop(dag_, NodeId::at(n), "updates a parameter a second time on one device");
    }
  }
  return gradients;
}

double DagRun::loss(tensor::LossId loss) {
  for (std::size_t n = 0; n < dag_.nodes.size(); ++n) {
    const Node& node = dag_.nodes[n];
    if (node.kind == NodeKind::report && node.subject.loss() == loss)
      return outputs(NodeId::at(n), partner(node.devices, 0))[0].data[0];
  }
  return NAN;
}

double DagRun::norm() {
  for (std::size_t n = 0; n < dag_.nodes.size(); ++n) {
    const Node& node = dag_.nodes[n];
    if (node.kind == NodeKind::report && node.subject.is_norm())
      return input(node, 0, partner(node.devices, 0)).data[0];
  }
  return NAN;
}

void DagRun::run_all() {
  for (std::size_t n = 0; n < dag_.nodes.size(); ++n) {
    for (std::uint64_t rank = 0; rank < dag_.mesh.devices(); ++rank) {
      if (dag_.device_sets[dag_.nodes[n].devices].contains_device(coordinates_of(dag_.mesh, rank)))
        outputs(NodeId::at(n), rank);
    }
  }
}

}  // namespace piper::test
