#include "passes/build/wiring.h"

#include <algorithm>
#include <array>

#include "passes/selectors/select.h"

namespace piper::passes {

using namespace dag;

Producers::Producers(const Dag& dag) {
  const auto add = [&](ChunkId chunk, BodyId body, auto output_of) {
    if (!body.valid()) return;
    const std::vector<BodyPort>& outputs = dag.bodies[body.index()].outputs;
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      if (outputs[o].kind != PortKind::data && outputs[o].kind != PortKind::saved) continue;
      const auto [entry, fresh] = position_.try_emplace(
          outputs[o].global_value, static_cast<std::uint32_t>(producers_.size()));
      if (fresh) producers_.push_back({chunk, {}, {}});
      output_of(producers_[entry->second]) = static_cast<std::uint32_t>(o);
    }
  };
  for (std::size_t c = 0; c < dag.chunks.size(); ++c) {
    for (const Pass pass : kAllPasses) {
      add(ChunkId::at(c), dag.chunks[c].bodies[static_cast<std::size_t>(pass)],
          [&](Producer& producer) -> auto& {
            return producer.output[static_cast<std::size_t>(pass)];
          });
    }
    add(ChunkId::at(c), dag.chunks[c].recomputed_forward,
        [](Producer& producer) -> auto& { return producer.recomputed_forward; });
  }
}

const Producers::Producer* Producers::of(tensor::ValueId global_value) const {
  const auto entry = position_.find(global_value);
  return entry == position_.end() ? nullptr : &producers_[entry->second];
}

namespace {

/// Removes every node except those that run bodies. Their edges do not change.
void remove_nodes_around(Dag& dag) {
  std::erase_if(dag.nodes, [](const Node& node) { return !runs_body(node.kind); });
  dag.forget_loads();
  dag.comms.clear();
}

}  // namespace

void remove_surroundings(Dag& dag) {
  std::vector<NodeId> now(dag.nodes.size());
  std::uint32_t kept = 0;
  for (std::size_t n = 0; n < dag.nodes.size(); ++n) {
    if (runs_body(dag.nodes[n].kind)) now[n] = NodeId(kept++);
  }
  std::vector<Input> edges;
  edges.reserve(dag.edges.size());
  for (Node& node : dag.nodes) {
    if (!runs_body(node.kind)) continue;
    const auto first = static_cast<std::uint32_t>(edges.size());
    for (Input input : dag.inputs_of(node)) {
      if (input.source.node.valid()) input.source.node = now[input.source.node.index()];
      edges.push_back(input);
    }
    node.first_input = first;
  }
  dag.edges = std::move(edges);
  remove_nodes_around(dag);
}

namespace {

constexpr std::uint32_t kNoOutput = 0xFFFFFFFFu;

/// An input of a body: the possible producers of its value, the first choice first. An instance has
/// either `B` or both halves; `R` may have recomputed a value that its own backward reads.
struct Wire {
  Input input;
  struct Maker {
    const NodeId* of_instance = nullptr;
    std::uint32_t output = 0;
    std::uint32_t recomputed_output = 0;  // of a recomputed forward
  };
  std::uint32_t num_makers = 0;  // none: an input of the model or a parameter
  std::array<Maker, kPasses> makers = {};
};

/// `owner`: the chunk of the body.
std::vector<Wire> wires_of(const Body& body, ChunkId owner, const Producers& producers,
                           const WorkTable& work) {
  std::vector<Wire> wires;
  for (const BodyPort& port : body.inputs) {
    Wire& wire = wires.emplace_back();
    wire.input.port = static_cast<std::uint32_t>(wires.size() - 1);
    wire.input.cls = port.kind == PortKind::param ? EdgeClass::param : EdgeClass::data;
    const Producers::Producer* producer =
        port.param.valid() || port.input.valid() ? nullptr : producers.of(port.global_value);
    if (producer == nullptr) continue;
    const auto add = [&](Pass pass) {
      const std::optional<std::uint32_t>& output = producer->output[static_cast<std::size_t>(pass)];
      const bool recomputed_forward = pass == Pass::F && producer->recomputed_forward.has_value();
      if (!output && !recomputed_forward) return;
      wire.makers[wire.num_makers++] = {
          work.of(producer->chunk, pass).data(), output ? *output : kNoOutput,
          recomputed_forward ? *producer->recomputed_forward : kNoOutput};
    };
    if (producer->chunk == owner) add(Pass::R);
    for (const Pass pass : kAllPasses) {
      if (pass != Pass::R) add(pass);
    }
  }
  return wires;
}

/// Per body its chunk.
std::vector<ChunkId> owners(const Dag& dag) {
  std::vector<ChunkId> owners(dag.bodies.size());
  for (std::size_t c = 0; c < dag.chunks.size(); ++c) {
    for (const BodyId body : dag.chunks[c].bodies) {
      if (body.valid()) owners[body.index()] = ChunkId::at(c);
    }
    if (dag.chunks[c].recomputed_forward.valid())
      owners[dag.chunks[c].recomputed_forward.index()] = ChunkId::at(c);
  }
  return owners;
}

}  // namespace

void wire(Dag& dag) {
  remove_nodes_around(dag);
  dag.edges.clear();
  const Producers producers(dag);
  const Instances instances(dag);
  const WorkTable work(dag);
  std::vector<std::vector<Wire>> wires;  // per body
  const std::vector<ChunkId> owner = owners(dag);
  for (std::size_t b = 0; b < dag.bodies.size(); ++b)
    wires.push_back(wires_of(dag.bodies[b], owner[b], producers, work));
  std::size_t total = 0;
  for (const Node& node : dag.nodes) total += wires[node.body.index()].size();
  // Including edges of the nodes around: updates read each gradient, messages most values.
  dag.edges.reserve(2 * total);
  NodePolls polls(dag.context->cancellation);
  for (Node& node : dag.nodes) {
    polls.visit();
    const std::span<const Wire> own = wires[node.body.index()];
    const std::uint32_t instance = instances.position(node.instance);
    node.first_input = static_cast<std::uint32_t>(dag.edges.size());
    node.num_inputs = static_cast<std::uint32_t>(own.size());
    node.num_outputs = static_cast<std::uint32_t>(dag.bodies[node.body.index()].outputs.size());
    for (const Wire& wire : own) {
      Input input = wire.input;
      for (std::uint32_t m = 0; m < wire.num_makers; ++m) {
        const Wire::Maker& maker = wire.makers[m];
        input.source.node = maker.of_instance[instance];
        if (!input.source.node.valid()) continue;
        const Node& made = dag.node(input.source.node);
        input.source.index = made.body == dag.chunks[made.chunk.index()].recomputed_forward
                                 ? maker.recomputed_output
                                 : maker.output;
        break;
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
      return (port.kind == PortKind::data || port.kind == PortKind::saved) &&
             read.count(port.global_value) == 0;
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
    if (chunk.recomputed_forward.valid())
      chunk.recomputed_forward = moved[chunk.recomputed_forward.index()];
  }
  return moved;
}

}  // namespace piper::passes
