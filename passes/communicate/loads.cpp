#include "passes/communicate/loads.h"

#include <algorithm>

#include "ir/dag/value_layout.h"
#include "passes/build/wiring.h"

namespace piper::passes {

using namespace dag;

Loads::Loads(Dag& dag)
    : dag_(dag), instances_(dag), first_(dag.inputs.size() * instances_.size(), kEnd) {}

Port Loads::of(tensor::InputId input, const Node& reader, LayoutId layout) {
  std::uint32_t& head =
      first_[input.index() * instances_.size() + instances_.position(reader.instance)];
  for (std::uint32_t i = head; i != kEnd; i = loads_[i].next) {
    const Node& load = dag_.node(loads_[i].node);
    if (load.devices == reader.devices && load.layout == layout) return {loads_[i].node, 0};
  }
  Node node;
  node.kind = NodeKind::load;
  node.instance = reader.instance;
  node.devices = reader.devices;
  node.layout = layout;
  node.subject = Subject::of_input(input);
  node.num_outputs = 1;
  node.loc = dag_.inputs[input.index()].loc;
  const NodeId made = dag_.add(node, {});
  loads_.push_back({made, head});
  head = static_cast<std::uint32_t>(loads_.size() - 1);
  return {made, 0};
}

void load_inputs(Dag& dag, Loads& loads) {
  const std::size_t present = dag.nodes.size();  // loads are added after them
  std::vector<std::vector<std::uint32_t>> input_ports(dag.bodies.size());
  for (std::size_t b = 0; b < dag.bodies.size(); ++b) {
    for (std::uint32_t i = 0; i < dag.bodies[b].inputs.size(); ++i) {
      if (dag.bodies[b].inputs[i].input.valid()) input_ports[b].push_back(i);
    }
  }
  NodePolls polls(dag.context->cancellation);
  for (std::size_t n = 0; n < present; ++n) {
    polls.visit();
    const Node reader = dag.nodes[n];
    if (!runs_body(reader.kind)) continue;
    const Body& body = dag.bodies[reader.body.index()];
    for (const std::uint32_t port : input_ports[reader.body.index()]) {
      const LayoutId layout =
          dag.level < Level::placed ? LayoutId() : body.graph.value(body.inputs[port].value).layout;
      dag.edges[reader.first_input + port].source =
          loads.of(body.inputs[port].input, reader, layout);
    }
  }
}

std::vector<Port> loss_sums(const Dag& dag, tensor::LossId loss) {
  std::vector<std::pair<Instance, Port>> found;
  std::vector<std::int32_t> output(dag.bodies.size(), -1);
  for (std::size_t b = 0; b < dag.bodies.size(); ++b) {
    for (std::size_t o = 0; o < dag.bodies[b].outputs.size(); ++o) {
      const BodyPort& port = dag.bodies[b].outputs[o];
      if (port.kind == PortKind::loss_sum && port.loss == loss)
        output[b] = static_cast<std::int32_t>(o);
    }
  }
  for (std::size_t n = 0; n < dag.nodes.size(); ++n) {
    if (!runs_body(dag.nodes[n].kind)) continue;
    const std::int32_t o = output[dag.nodes[n].body.index()];
    if (o >= 0)
      found.push_back({dag.nodes[n].instance, {NodeId::at(n), static_cast<std::uint32_t>(o)}});
  }
  std::sort(found.begin(), found.end());
  std::vector<Port> sums;
  for (const auto& [instance, port] : found) sums.push_back(port);
  return sums;
}

Port add_count(Dag& dag, Loads& loads, tensor::LossId loss, std::span<const Port> sums) {
  std::vector<Input> inputs;
  for (std::uint32_t i = 0; i < sums.size(); ++i) {
    const Node reader = dag.node(sums[i].node);
    const tensor::InputId targets = dag.losses[loss.index()].mask->targets;
    inputs.push_back(
        {loads.of(targets, reader, shard_samples(dag, targets, summed_axes(dag, sums[i]))), i,
         EdgeClass::data});
  }
  Node count;
  count.kind = NodeKind::count;
  count.subject = Subject::of_count(loss);
  count.num_outputs = 1;
  count.loc = dag.losses[loss.index()].loc;
  if (!sums.empty()) count.devices = dag.node(sums[0].node).devices;
  return {dag.add(count, inputs), 0};
}

namespace {

/// Per body the input port that takes the count of a loss; -1: none.
std::vector<std::int32_t> count_ports(const Dag& dag, tensor::LossId loss) {
  std::vector<std::int32_t> port(dag.bodies.size(), -1);
  for (std::size_t b = 0; b < dag.bodies.size(); ++b) {
    const std::vector<BodyPort>& inputs = dag.bodies[b].inputs;
    const auto reads = [&](const BodyPort& each) {
      return each.kind == PortKind::count && each.loss == loss;
    };
    const auto found = std::find_if(inputs.begin(), inputs.end(), reads);
    if (found != inputs.end()) port[b] = static_cast<std::int32_t>(found - inputs.begin());
  }
  return port;
}

}  // namespace

std::vector<DeviceSetId> count_readers(const Dag& dag, tensor::LossId loss) {
  const std::vector<std::int32_t> port = count_ports(dag, loss);
  std::vector<DeviceSetId> sets;
  for (const Node& node : dag.nodes) {
    if (!runs_body(node.kind)) continue;
    if (port[node.body.index()] >= 0 &&
        std::find(sets.begin(), sets.end(), node.devices) == sets.end())
      sets.push_back(node.devices);
  }
  return sets;
}

void connect_counts(Dag& dag, tensor::LossId loss, std::span<const Port> counts) {
  const std::vector<std::int32_t> port = count_ports(dag, loss);
  for (const Node& node : dag.nodes) {
    if (!runs_body(node.kind)) continue;
    const std::int32_t p = port[node.body.index()];
    if (p < 0) continue;
    dag.edges[node.first_input + static_cast<std::uint32_t>(p)].source =
        counts.size() == 1 ? counts[0] : counts[node.devices.index()];
  }
}

}  // namespace piper::passes
