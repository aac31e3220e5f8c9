#include "passes/plan/residence.h"

#include "ir/dag/local_type.h"
#include "llvm/ADT/DenseMap.h"

namespace piper::passes {

using namespace dag;

namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFFu;

std::pair<std::uint32_t, std::uint32_t> key(Port port) { return {port.node.value(), port.index}; }

/// It sums each value over devices, into a new buffer or in place.
bool adds_values(const Node& node) {
  return reduces_members(node.kind) && !node.subject.bucket().valid();
}

/// Its outputs are in the state of a bucket, or in the bytes of other values.
bool makes_no_value(const Node& node) {
  return adds_in_place(node.kind) || node.makes_parameters() || node.reduces_gradients();
}

}  // namespace

Residences::Residences(const Dag& dag)
    : dag_(dag),
      layouts_(bucket_layouts(dag)),
      params_(bucket_positions(dag)),
      first_term_(dag.nodes.size(), kNone) {
  find_terms();
  find_shared();
  measure();
}

void Residences::find_terms() {
  for (std::size_t n = 0; n < dag_.nodes.size(); ++n) {
    if (!adds_in_place(dag_.nodes[n].kind)) continue;
    std::uint32_t port = kNone;
    for (const Input& input : dag_.inputs_of(dag_.nodes[n])) {
      std::uint32_t& first = first_term_[input.source.node.index()];
      if (first == kNone) {
        first = static_cast<std::uint32_t>(terms_.size());
        terms_.resize(terms_.size() + dag_.node(input.source.node).num_outputs);
      }
      terms_[first + input.source.index] = {{NodeId::at(n), input.port}, input.port == port};
      port = input.port;
    }
  }
}

void Residences::find_shared() {
  llvm::DenseMap<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> readers;
  std::vector<bool> added(dag_.nodes.size(), false);
  for (const Node& node : dag_.nodes) {
    if (!adds_values(node)) continue;
    for (const Input& input : dag_.inputs_of(node)) {
      readers.try_emplace(key(input.source), 0);
      added[input.source.node.index()] = true;
    }
  }
  if (readers.empty()) return;
  for (const Node& node : dag_.nodes) {
    for (const Input& input : dag_.inputs_of(node)) {
      if (!input.source.node.valid() || !added[input.source.node.index()]) continue;
      if (const auto found = readers.find(key(input.source));
          found != readers.end() && ++found->second > 1)
        shared_.insert(found->first);
    }
  }
}

void Residences::measure() {
  for (const Body& body : dag_.bodies) {
    std::vector<std::int64_t>& bytes = body_bytes_.emplace_back();
    for (const BodyPort& port : body.outputs) {
      const tensor::Value& value = body.graph.value(port.value);
      bytes.push_back(largest_part(dag_, value.type, value.layout).bytes());
    }
  }
  const auto add = [&](Port port) {
    const Node& maker = dag_.node(port.node);
    bytes_.push_back(runs_body(maker.kind) ? body_bytes_[maker.body.index()][port.index]
                                           : planned_bytes(dag_, port));
  };
  first_bytes_.reserve(dag_.nodes.size() + 1);
  NodePolls polls(dag_.context->cancellation);
  for (std::size_t n = 0; n < dag_.nodes.size(); ++n) {
    polls.visit();
    const Node& node = dag_.nodes[n];
    first_bytes_.push_back(static_cast<std::uint32_t>(bytes_.size()));
    if (runs_body(node.kind) || makes_no_value(node)) continue;
    // Outputs from other members, in their order; computed at once, because a query per output
    // would search for its member.
    if (is_recv(node.kind) || gathers_lists(node.kind)) {
      for (const NodeId member : dag_.comms[node.comm.index()].members) {
        if (is_recv(dag_.node(member).kind)) continue;
        for (const Input& input : dag_.inputs_of(dag_.node(member))) add(input.source);
      }
      continue;
    }
    for (std::uint32_t port = 0; port < node.num_outputs; ++port) add({NodeId::at(n), port});
  }
  first_bytes_.push_back(static_cast<std::uint32_t>(bytes_.size()));
}

Residence Residences::of(Port port) const {
  const Node& node = dag_.node(port.node);
  if (const std::uint32_t first = first_term_[port.node.index()];
      first != kNone && terms_[first + port.index].sum.node.valid()) {
    Residence at = of_sum(terms_[first + port.index].sum);
    at.adds = terms_[first + port.index].adds;
    return at;
  }
  if (runs_body(node.kind))
    return {BufferClass::activations, port, {}, 0, body_bytes_[node.body.index()][port.index]};
  if (adds_in_place(node.kind)) return of_sum(port);
  const BucketId bucket = node.subject.bucket();
  // In place.
  if (writes_state(node.kind) && dag_.is_optimizer_state(node, port.index))
    return of(dag_.inputs_of(node).back().source);
  if (gathers_shards(node.kind) && dag_.shards_parameters(dag_.buckets[bucket.index()])) {
    const BucketLayout& whole = layout(bucket);
    return {BufferClass::gathered,
            {port.node, 0},
            {},
            whole.parameter_bytes(whole.offsets[port.index]),
            whole.parameter_bytes(whole.elements)};
  }
  if (node.makes_parameters()) return parameter(bucket, port.index);
  if (node.reduces_gradients())
    return state(BufferClass::gradients, BucketState::gradients, bucket, port.index);
  if (adds_values(node) && node.num_inputs > 0) {
    const Port operand = dag_.inputs_of(node)[port.index].source;
    if (!shared_.contains(key(operand))) return of(operand);
  }
  // Fetched values keep their class; optimizer state passes through.
  const bool returns = returns_to_device(node.kind) && !bucket.valid();
  const BufferClass cls = leaves_device(node.kind)                  ? BufferClass::offloaded
                          : is_communication(node.kind) && !returns ? BufferClass::communication
                                                                    : BufferClass::activations;
  return {cls, port, {}, 0, bytes_[first_bytes_[port.node.index()] + port.index]};
}

Residence Residences::state(BufferClass cls, BucketState state, BucketId bucket,
                            std::uint32_t position) const {
  return {cls, {}, bucket, layout(bucket).offset(state, position), layout(bucket).extent(state)};
}

/// Full gradients of a sharded bucket live until their reduction; other gradients, and shards, are
/// state.
Residence Residences::of_sum(Port port) const {
  const Node& sum = dag_.node(port.node);
  const BucketId bucket = sum.subject.bucket();
  if (dag_.adds_shards(sum) || !dag_.shards_gradients(dag_.buckets[bucket.index()]))
    return state(BufferClass::gradients, BucketState::gradients, bucket, port.index);
  const BucketLayout& whole = layout(bucket);
  return {BufferClass::unreduced,
          {port.node, 0},
          {},
          whole.sum_bytes(whole.offsets[port.index]),
          whole.sum_bytes(whole.elements)};
}

}  // namespace piper::passes
