#include "passes/surround.h"

#include <algorithm>

#include "passes/select.h"
#include "passes/wiring.h"

namespace piper::passes {

using namespace dag;  // NOLINT: this file speaks of nothing else

namespace {

/// Bucket and position of every parameter.
struct ParamPlace {
  BucketId bucket;
  std::uint32_t position = 0;
};

std::vector<ParamPlace> param_places(const Dag& dag) {
  std::vector<ParamPlace> places(dag.params.size());
  for (std::size_t b = 0; b < dag.buckets.size(); ++b) {
    for (std::size_t i = 0; i < dag.buckets[b].params.size(); ++i) {
      places[dag.buckets[b].params[i].index()] = {BucketId::at(b), static_cast<std::uint32_t>(i)};
    }
  }
  return places;
}

std::size_t home_of(const Bucket& bucket, DeviceSetId devices) {
  if (bucket.homes.size() <= 1) return 0;
  return static_cast<std::size_t>(std::find(bucket.homes.begin(), bucket.homes.end(), devices) - bucket.homes.begin());
}

/// A loss that is computed in several instances adds up; its report reads them in order of instance.
void add_loss_reports(Dag& dag) {
  for (std::size_t l = 0; l < dag.losses.size(); ++l) {
    const std::vector<Port> sums = loss_sums(dag, tensor::LossId::at(l));
    std::vector<Input> inputs;
    for (std::size_t i = 0; i < sums.size(); ++i) inputs.push_back({sums[i], static_cast<std::uint32_t>(i), EdgeClass::data});
    Node report;
    report.kind = NodeKind::report;
    report.subject = static_cast<std::uint32_t>(l);
    report.loc = dag.losses[l].loc;
    if (!sums.empty()) {
      report.devices = dag.node(sums[0].node).devices;
      report.cut = dag.node(sums[0].node).cut;
    }
    dag.add(report, inputs);
  }
}

}  // namespace

Contributions::Contributions(const Dag& dag) {
  const std::vector<ParamPlace> places = param_places(dag);
  std::size_t slots = 0;
  for (const Bucket& bucket : dag.buckets) {
    first_slot_.push_back(slots);
    homes_.push_back(std::max<std::size_t>(bucket.homes.size(), 1));
    slots += bucket.params.size() * homes_.back();
  }
  const std::size_t work = num_work_nodes(dag);
  // Per body its gradient outputs, so that a node costs what it contributes.
  std::vector<std::vector<std::pair<std::uint32_t, ParamPlace>>> grads(dag.bodies.size());
  for (std::size_t b = 0; b < dag.bodies.size(); ++b) {
    for (std::uint32_t o = 0; o < dag.bodies[b].outputs.size(); ++o) {
      const BodyPort& port = dag.bodies[b].outputs[o];
      if (port.kind == PortKind::grad) grads[b].push_back({o, places[port.param.index()]});
    }
  }
  const auto slot_of = [&](const Node& node, const ParamPlace& place) {
    return first_slot_[place.bucket.index()] + place.position * homes_[place.bucket.index()] + home_of(dag.buckets[place.bucket.index()], node.devices);
  };
  first_.assign(slots + 1, 0);
  for (std::size_t n = 0; n < work; ++n) {
    for (const auto& [output, place] : grads[dag.nodes[n].body.index()]) ++first_[slot_of(dag.nodes[n], place) + 1];
  }
  for (std::size_t s = 0; s < slots; ++s) first_[s + 1] += first_[s];
  ports_.resize(first_[slots]);
  std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
  for (std::size_t n = 0; n < work; ++n) {
    for (const auto& [output, place] : grads[dag.nodes[n].body.index()]) ports_[next[slot_of(dag.nodes[n], place)]++] = {NodeId::at(n), output};
  }
}

std::vector<Port> loss_sums(const Dag& dag, tensor::LossId loss) {
  std::vector<std::pair<Instance, Port>> found;
  std::vector<std::int32_t> output(dag.bodies.size(), -1);
  for (std::size_t b = 0; b < dag.bodies.size(); ++b) {
    for (std::size_t o = 0; o < dag.bodies[b].outputs.size(); ++o) {
      const BodyPort& port = dag.bodies[b].outputs[o];
      if (port.kind == PortKind::loss_sum && port.loss == loss) output[b] = static_cast<std::int32_t>(o);
    }
  }
  for (std::size_t n = 0; n < dag.nodes.size() && dag.nodes[n].kind == NodeKind::chunk; ++n) {
    const std::int32_t o = output[dag.nodes[n].body.index()];
    if (o >= 0) found.push_back({dag.nodes[n].instance, {NodeId::at(n), static_cast<std::uint32_t>(o)}});
  }
  std::sort(found.begin(), found.end());
  std::vector<Port> sums;
  for (const auto& [instance, port] : found) sums.push_back(port);
  return sums;
}

void add_loads(Dag& dag) {
  const Selection selection(dag);
  const std::size_t work = num_work_nodes(dag);
  // Loads of one input and instance form a list: one per device set that reads it.
  const std::uint32_t kEnd = 0xFFFFFFFFu;
  std::vector<std::uint32_t> first(dag.inputs.size() * selection.num_instances(), kEnd);
  std::vector<std::uint32_t> next;
  std::vector<std::vector<std::uint32_t>> input_ports(dag.bodies.size());
  for (std::size_t b = 0; b < dag.bodies.size(); ++b) {
    for (std::uint32_t i = 0; i < dag.bodies[b].inputs.size(); ++i) {
      if (dag.bodies[b].inputs[i].input.valid()) input_ports[b].push_back(i);
    }
  }
  const std::size_t base = dag.nodes.size();
  for (std::size_t n = 0; n < work; ++n) {
    const Node reader = dag.nodes[n];
    for (const std::uint32_t port : input_ports[reader.body.index()]) {
      const tensor::InputId input = dag.bodies[reader.body.index()].inputs[port].input;
      std::uint32_t& head = first[input.index() * selection.num_instances() + selection.position(reader.instance)];
      std::uint32_t load = head;
      while (load != kEnd && (dag.nodes[base + load].devices != reader.devices || dag.nodes[base + load].cut != reader.cut)) load = next[load];
      if (load == kEnd) {
        Node node;
        node.kind = NodeKind::load;
        node.instance = reader.instance;
        node.devices = reader.devices;
        node.cut = reader.cut;
        node.subject = input.value();
        node.num_outputs = 1;
        node.loc = dag.inputs[input.index()].loc;
        load = static_cast<std::uint32_t>(next.size());
        next.push_back(head);
        head = load;
        dag.nodes.push_back(node);
      }
      dag.edges[reader.first_input + port].source = {NodeId::at(base + load), 0};
    }
  }
}

void connect_params(Dag& dag, std::span<const std::vector<NodeId>> updates) {
  const std::vector<ParamPlace> places = param_places(dag);
  const std::size_t work = num_work_nodes(dag);
  for (std::size_t n = 0; n < work; ++n) {
    const Node& node = dag.nodes[n];
    const std::vector<BodyPort>& inputs = dag.bodies[node.body.index()].inputs;
    for (std::uint32_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].kind != PortKind::param) continue;
      const ParamPlace place = places[inputs[i].param.index()];
      Port source{{}, place.position};
      if (!updates.empty()) source.node = updates[place.bucket.index()][home_of(dag.buckets[place.bucket.index()], node.devices)];
      dag.edges[node.first_input + i].source = source;
    }
  }
}

void surround(Dag& dag) {
  const std::size_t work = num_work_nodes(dag);
  dag.nodes.resize(work);
  dag.edges.resize(work == 0 ? 0 : dag.nodes.back().first_input + dag.nodes.back().num_inputs);
  dag.comms.clear();
  add_loads(dag);
  if (dag.forward_only) {
    connect_params(dag, {});
    add_loss_reports(dag);
    return;
  }
  const Contributions contributions(dag);
  std::vector<std::vector<NodeId>> updates(dag.buckets.size());
  std::vector<Input> inputs;
  for (std::size_t b = 0; b < dag.buckets.size(); ++b) {
    const Bucket& bucket = dag.buckets[b];
    const std::size_t homes = std::max<std::size_t>(bucket.homes.size(), 1);
    inputs.clear();
    for (std::uint32_t i = 0; i < bucket.params.size(); ++i) {
      for (std::size_t h = 0; h < homes; ++h) {
        for (const Port port : contributions.of(BucketId::at(b), i, h)) inputs.push_back({port, i, EdgeClass::grad});
      }
    }
    for (std::size_t h = 0; h < homes; ++h) {
      Node update;
      update.kind = NodeKind::update;
      update.bucket = BucketId::at(b);
      if (!bucket.homes.empty()) update.devices = bucket.homes[h];
      update.num_outputs = static_cast<std::uint32_t>(bucket.params.size());
      update.loc = bucket.loc;
      updates[b].push_back(dag.add(update, inputs));
    }
  }
  connect_params(dag, updates);
  add_loss_reports(dag);
}

}  // namespace piper::passes
