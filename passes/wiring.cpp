#include "passes/wiring.h"

#include <algorithm>

#include "passes/select.h"

namespace piper::passes {

using namespace dag;

Producers::Producers(const Dag& dag) {
  for (std::size_t c = 0; c < dag.chunks.size(); ++c) {
    for (const Pass pass : {Pass::F, Pass::B, Pass::BI, Pass::BW}) {
      const BodyId body = dag.chunks[c].bodies[static_cast<std::size_t>(pass)];
      if (!body.valid()) continue;
      const std::vector<BodyPort>& outputs = dag.bodies[body.index()].outputs;
      for (std::size_t o = 0; o < outputs.size(); ++o) {
        if (outputs[o].kind != PortKind::data && outputs[o].kind != PortKind::saved) continue;
        const auto [entry, fresh] = position_.try_emplace(outputs[o].global_value, static_cast<std::uint32_t>(producers_.size()));
        if (fresh) producers_.push_back({ChunkId::at(c), {-1, -1, -1, -1}});
        producers_[entry->second].output[static_cast<std::size_t>(pass)] = static_cast<std::int32_t>(o);
      }
    }
  }
}

const Producers::Producer* Producers::of(tensor::ValueId global_value) const {
  const auto entry = position_.find(global_value);
  return entry == position_.end() ? nullptr : &producers_[entry->second];
}

std::size_t num_work_nodes(const Dag& dag) {
  const auto end = std::partition_point(dag.nodes.begin(), dag.nodes.end(), [](const Node& node) { return node.kind == NodeKind::chunk; });
  return static_cast<std::size_t>(end - dag.nodes.begin());
}

void wire(Dag& dag) {
  dag.nodes.resize(num_work_nodes(dag));
  dag.comms.clear();
  dag.edges.clear();
  const Producers producers(dag);
  const Instances instances(dag);
  const WorkTable work(dag);
  // Per body the producer of each input; null: an input of the model or a parameter.
  std::vector<std::vector<const Producers::Producer*>> sources(dag.bodies.size());
  for (std::size_t b = 0; b < dag.bodies.size(); ++b) {
    for (const BodyPort& port : dag.bodies[b].inputs) {
      sources[b].push_back(port.param.valid() || port.input.valid() ? nullptr : producers.of(port.global_value));
    }
  }
  std::size_t total = 0;
  for (const Node& node : dag.nodes) total += dag.bodies[node.body.index()].inputs.size();
  dag.edges.reserve(2 * total);  // those of the nodes around included: updates read each gradient, messages most values
  for (Node& node : dag.nodes) {
    const Body& body = dag.bodies[node.body.index()];
    const std::uint32_t instance = instances.position(node.instance);
    node.first_input = static_cast<std::uint32_t>(dag.edges.size());
    node.num_inputs = static_cast<std::uint32_t>(body.inputs.size());
    node.num_outputs = static_cast<std::uint32_t>(body.outputs.size());
    for (std::uint32_t i = 0; i < body.inputs.size(); ++i) {
      Input input;
      input.port = i;
      input.cls = body.inputs[i].kind == PortKind::param ? EdgeClass::param : EdgeClass::data;
      if (const Producers::Producer* producer = sources[node.body.index()][i]) {
        for (const Pass pass : {Pass::F, Pass::B, Pass::BI, Pass::BW}) {
          const std::int32_t output = producer->output[static_cast<std::size_t>(pass)];
          if (output < 0) continue;
          input.source = {work.at(producer->chunk, pass, instance), static_cast<std::uint32_t>(output)};
          if (input.source.node.valid()) break;
        }
      }
      dag.edges.push_back(input);
    }
  }
}

void remove_unread_outputs(Dag& dag) {
  llvm::DenseMap<tensor::ValueId, bool> read;
  for (const Body& body : dag.bodies) {
    for (const BodyPort& port : body.inputs) {
      if (!port.param.valid()) read.try_emplace(port.global_value, true);
    }
  }
  for (Body& body : dag.bodies) {
    std::erase_if(body.outputs, [&](const BodyPort& port) {
      return (port.kind == PortKind::data || port.kind == PortKind::saved) && read.count(port.global_value) == 0;
    });
  }
}

std::vector<BodyId> keep_bodies(Dag& dag, const std::vector<bool>& used) {
  std::vector<BodyId> moved(dag.bodies.size());
  std::vector<Body> kept;
  kept.reserve(dag.bodies.size());
  for (std::size_t b = 0; b < dag.bodies.size(); ++b) {
    if (!used[b]) continue;
    moved[b] = BodyId::at(kept.size());
    kept.push_back(std::move(dag.bodies[b]));
  }
  dag.bodies = std::move(kept);
  for (Chunk& chunk : dag.chunks) {
    for (BodyId& body : chunk.bodies) {
      if (body.valid()) body = moved[body.index()];
    }
  }
  return moved;
}

}  // namespace piper::passes
