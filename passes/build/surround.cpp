#include "passes/build/surround.h"

#include <algorithm>

#include "ir/dag/bucket_layout.h"
#include "passes/build/wiring.h"
#include "passes/communicate/loads.h"

namespace piper::passes {

using namespace dag;

namespace {

std::size_t owner_of(const Bucket& bucket, DeviceSetId devices) {
  if (bucket.owners.size() <= 1) return 0;
  return static_cast<std::size_t>(std::find(bucket.owners.begin(), bucket.owners.end(), devices) -
                                  bucket.owners.begin());
}

/// A report reads the loss sums of all instances in order, then the number of elements that count.
void add_loss_reports(Dag& dag, Loads& loads) {
  for (std::size_t l = 0; l < dag.losses.size(); ++l) {
    const tensor::LossId loss = tensor::LossId::at(l);
    std::vector<Port> sums = loss_sums(dag, loss);
    if (dag.losses[l].mask) {
      sums.push_back(add_count(dag, loads, loss, sums));
      connect_counts(dag, loss, {&sums.back(), 1});
    }
    std::vector<Input> inputs;
    for (std::size_t i = 0; i < sums.size(); ++i)
      inputs.push_back({sums[i], static_cast<std::uint32_t>(i), EdgeClass::data});
    Node report;
    report.kind = NodeKind::report;
    report.subject = Subject::of_loss(tensor::LossId::at(l));
    report.loc = dag.losses[l].loc;
    if (!sums.empty()) report.devices = dag.node(sums[0].node).devices;
    dag.add(report, inputs);
  }
}

}  // namespace

Contributions::Contributions(const Dag& dag) {
  const std::vector<BucketPosition> places = bucket_positions(dag);
  std::size_t slots = 0;
  for (const Bucket& bucket : dag.buckets) {
    first_slot_.push_back(slots);
    owners_.push_back(std::max<std::size_t>(bucket.owners.size(), 1));
    slots += bucket.params.size() * owners_.back();
  }
  // Per body its gradient outputs, so that a node costs time only for its contributions.
  std::vector<std::vector<std::pair<std::uint32_t, BucketPosition>>> grads(dag.bodies.size());
  for (std::size_t b = 0; b < dag.bodies.size(); ++b) {
    for (std::uint32_t o = 0; o < dag.bodies[b].outputs.size(); ++o) {
      const BodyPort& port = dag.bodies[b].outputs[o];
      if (port.kind == PortKind::grad) grads[b].push_back({o, places[port.param.index()]});
    }
  }
  const auto slot_of = [&](const Node& node, const BucketPosition& place) {
    return first_slot_[place.bucket.index()] + place.index * owners_[place.bucket.index()] +
           owner_of(dag.buckets[place.bucket.index()], node.devices);
  };
  first_.assign(slots + 1, 0);
  NodePolls polls(dag.context->cancellation);
  for (const Node& node : dag.nodes) {
    polls.visit();
    if (!runs_body(node.kind)) continue;
    for (const auto& [output, place] : grads[node.body.index()]) ++first_[slot_of(node, place) + 1];
  }
  for (std::size_t s = 0; s < slots; ++s) first_[s + 1] += first_[s];
  ports_.resize(first_[slots]);
  std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
  for (std::size_t n = 0; n < dag.nodes.size(); ++n) {
    if (!runs_body(dag.nodes[n].kind)) continue;
    for (const auto& [output, place] : grads[dag.nodes[n].body.index()])
      ports_[next[slot_of(dag.nodes[n], place)]++] = {NodeId::at(n), output};
  }
}

void connect_params(Dag& dag, std::span<const std::vector<NodeId>> left_by) {
  const std::vector<BucketPosition> places = bucket_positions(dag);
  NodePolls polls(dag.context->cancellation);
  for (const Node& node : dag.nodes) {
    polls.visit();
    if (!runs_body(node.kind)) continue;
    const std::vector<BodyPort>& inputs = dag.bodies[node.body.index()].inputs;
    for (std::uint32_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].kind != PortKind::param) continue;
      const BucketPosition place = places[inputs[i].param.index()];
      const Bucket& bucket = dag.buckets[place.bucket.index()];
      Input& edge = dag.edges[node.first_input + i];
      edge.source = {{}, place.index};
      edge.cls = dag.shards_parameters(bucket) ? EdgeClass::data : EdgeClass::param;
      if (left_by.empty() || left_by[place.bucket.index()].empty()) continue;
      edge.source.node = left_by[place.bucket.index()][owner_of(bucket, node.devices)];
    }
  }
}

std::vector<Input> reads_of(const Dag& dag, NodeId node) {
  std::vector<Input> reads;
  for (std::uint32_t i = 0; i < dag.node(node).num_outputs; ++i)
    reads.push_back({{node, i}, i, EdgeClass::data});
  return reads;
}

std::vector<Input> accumulate(Dag& dag, BucketId bucket, DeviceSetId devices,
                              std::span<const Input> contributions) {
  if (contributions.empty()) return {};
  Node sums;
  sums.kind = NodeKind::accumulate;
  sums.subject = Subject::of_bucket(bucket);
  sums.devices = devices;
  sums.num_outputs = static_cast<std::uint32_t>(dag.buckets[bucket.index()].params.size());
  sums.loc = dag.buckets[bucket.index()].loc;
  return reads_of(dag, dag.add(sums, contributions));
}

void surround(Dag& dag) {
  remove_surroundings(dag);
  Loads loads(dag);
  load_inputs(dag, loads);
  if (dag.forward_only) {
    connect_params(dag, {});
    add_loss_reports(dag, loads);
    return;
  }
  const Contributions contributions(dag);
  std::vector<std::vector<NodeId>> updates(dag.buckets.size());
  std::vector<Input> inputs;
  for (std::size_t b = 0; b < dag.trained_buckets(); ++b) {
    const Bucket& bucket = dag.buckets[b];
    const std::size_t owners = std::max<std::size_t>(bucket.owners.size(), 1);
    inputs.clear();
    for (std::uint32_t i = 0; i < bucket.params.size(); ++i) {
      for (std::size_t h = 0; h < owners; ++h) {
        for (const Port port : contributions.of(BucketId::at(b), i, h))
          inputs.push_back({port, i, EdgeClass::grad});
      }
    }
    for (std::size_t h = 0; h < owners; ++h) {
      Node update;
      update.kind = NodeKind::update;
      update.subject = Subject::of_bucket(BucketId::at(b));
      if (!bucket.owners.empty()) update.devices = bucket.owners[h];
      update.num_outputs = static_cast<std::uint32_t>(bucket.params.size());
      update.loc = bucket.loc;
      updates[b].push_back(
          dag.add(update, accumulate(dag, BucketId::at(b), update.devices, inputs)));
    }
  }
  connect_params(dag, updates);
  add_loss_reports(dag, loads);
}

}  // namespace piper::passes
