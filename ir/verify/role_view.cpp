#include "ir/verify/boxes.h"
#include "ir/verify/plan_facts.h"

namespace piper::verify {

void RoleView::set_role(std::uint32_t number) {
  const Facts& facts = plan_.facts;
  const Dag& dag = facts.dag;
  number_ = number;
  const std::uint32_t first = plan_.first_action[number],
                      count = plan_.first_action[number + 1] - first;
  const Step* const steps = plan_.steps.data() + first;
  entries_.assign(count + 1, {});
  ports_.clear();
  for (std::uint32_t i = 0; i < count; ++i) {
    const Node& node = dag.nodes[steps[i].node];
    local_[steps[i].node] = i;
    Entry& entry = entries_[i];
    entry.node = steps[i].node;
    entry.kind = node.kind;
    entry.body = node.body.value();
    entry.bucket = node.subject.bucket().value();
    entry.first_output = facts.output_base[entry.node];
    entry.num_outputs = node.num_outputs;
    entry.first_port = static_cast<std::uint32_t>(ports_.size());
    for_each_port(dag, node, [&](std::span<const Input> sources) {
      const auto edge = static_cast<std::uint32_t>(sources.data() - dag.edges.data());
      ports_.push_back({edge, kNone, sources[0].cls});
    });
  }
  entries_[count].first_port = static_cast<std::uint32_t>(ports_.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    for (std::uint32_t p = entries_[i].first_port; p < entries_[i + 1].first_port; ++p) {
      Port& port = ports_[p];
      const dag::Port source = dag.edges[port.edge].source;
      if (!source.node.valid()) continue;
      port.output = facts.output(source);
      if (!is_recv(facts.kind[source.node.index()])) continue;
      const std::uint32_t local = local_[source.node.index()];
      if (local >= count || entries_[local].node != source.node.value()) continue;
      if (entries_[local].first_reader == kNone) entries_[local].first_reader = i;
    }
  }
}

std::int64_t RoleView::bytes(const Entry& entry, std::size_t port, const Port& read) const {
  if (read.output != kNone) return plan_.facts.output_bytes[read.output];
  if (entry.body == kNone) {  // an all-gather of parameters sharded at rest
    const dag::Bucket& bucket = plan_.facts.dag.buckets[entry.bucket];
    return parameter_bytes(
        plan_.facts.dag, bucket,
        bucket_elements(plan_.facts.dag, bucket) / shares_of(plan_.facts.dag, bucket));
  }
  const dag::Body& body = plan_.facts.dag.bodies[entry.body];
  const tensor::Value& value = body.graph.value(body.inputs[port].value);
  return largest_bytes(plan_.facts.dag, value.type, value.layout);
}

}  // namespace piper::verify
