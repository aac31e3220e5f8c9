#include <algorithm>

#include "ir/verify/plan_facts.h"

namespace piper::verify {

namespace {

/// Full gradients or parameters of a sharded bucket, named by their sum or by the all-gather that
/// begins their live range.
bool check_whole(const Facts& facts, const dag::Buffer& buffer, std::string_view role,
                 Reports reports) {
  const bool gradients = buffer.cls == dag::BufferClass::unreduced;
  const Node* const node = buffer.value.node.valid() && buffer.value.index == 0
                               ? &facts.node(buffer.value.node)
                               : nullptr;
  const dag::BucketId bucket = node != nullptr ? node->subject.bucket() : dag::BucketId();
  const auto bytes = [&](const dag::Bucket& whole) {
    const std::int64_t elements = bucket_elements(facts.dag, whole);
    return gradients ? gradient_bytes(facts.dag, whole, elements)
                     : parameter_bytes(facts.dag, whole, elements);
  };
  const bool fits = bucket.valid() && !buffer.bucket.valid() &&
                    (gradients ? adds_in_place(node->kind) && !facts.dag.adds_shards(*node)
                               : gathers_shards(node->kind)) &&
                    !(gradients ? facts.dag.buckets[bucket.index()].gradients
                                : facts.dag.buckets[bucket.index()].parameters)
                         .replicated() &&
                    buffer.bytes == bytes(facts.dag.buckets[bucket.index()]);
  if (!fits) {
    reports.sink.report(
        Code::wrong_operand, LocId(),
        "a buffer of role `{}` at `{}` with `{}` bytes is of class `{}`, which no such bucket of its node is",
        role, buffer.offset, buffer.bytes, buffer_class_name(buffer.cls));
  }
  return fits;
}

/// The class of values that a node makes. Fetched values keep their class; optimizer state passes
/// through.
dag::BufferClass class_of(const Node& node) {
  if (leaves_device(node.kind)) return dag::BufferClass::offloaded;
  const bool values = returns_to_device(node.kind) && !node.subject.bucket().valid();
  return is_communication(node.kind) && !values ? dag::BufferClass::communication
                                                : dag::BufferClass::activations;
}

/// A buffer of values has the size of the value that names it; other buffers have no value.
bool check_label(const Facts& facts, const dag::Buffer& buffer, std::string_view role,
                 Reports reports) {
  if (buffer.cls == dag::BufferClass::unreduced || buffer.cls == dag::BufferClass::gathered)
    return check_whole(facts, buffer, role, reports);
  if (buffer.bucket.valid() && (!is_state(buffer.cls) || buffer.cls == dag::BufferClass::scalars)) {
    reports.sink.report(Code::wrong_operand, LocId(),
                        "a buffer of role `{}` at `{}` is of class `{}`, which is of no bucket",
                        role, buffer.offset, buffer_class_name(buffer.cls));
    return false;
  }
  const bool labelled = buffer.value.node.valid();
  const bool values = buffer.cls == dag::BufferClass::activations ||
                      buffer.cls == dag::BufferClass::communication ||
                      buffer.cls == dag::BufferClass::offloaded;
  if (values != labelled || (values && class_of(facts.node(buffer.value.node)) != buffer.cls)) {
    reports.sink.report(Code::wrong_operand, LocId(),
                        "a buffer of role `{}` at `{}` is of class `{}`, which {} does not have",
                        role, buffer.offset, buffer_class_name(buffer.cls),
                        labelled ? "`" + facts.text(buffer.value) + "`" : "what is no value");
    return false;
  }
  const std::int64_t bytes =
      values ? std::max<std::int64_t>(facts.output_bytes[facts.output(buffer.value)], 1)
             : buffer.bytes;
  if (buffer.bytes == bytes) return true;
  reports.sink.report(Code::wrong_operand, facts.loc(buffer.value.node),
                      "the buffer of `{}` on role `{}` has `{}` bytes, and the value takes `{}`",
                      facts.text(buffer.value), role, buffer.bytes, bytes);
  return false;
}

/// Whether an input of the action is in that buffer.
bool names(const dag::Role& role, const Action& action, std::uint32_t inputs,
           dag::BufferId buffer) {
  const std::span<const dag::Operand> operands =
      std::span(role.operands).subspan(action.first_operand, inputs);
  return std::any_of(operands.begin(), operands.end(),
                     [&](const dag::Operand& operand) { return operand.buffer == buffer; });
}

}  // namespace

void check_operands(const PlanFacts& plan, const RoleView& view, Reports reports) {
  const Facts& facts = plan.facts;
  const Dag& dag = facts.dag;
  const dag::Role& role = view.role();
  const std::string_view role_name = facts.text(role.name);
  for (const dag::Buffer& buffer : role.buffers) {
    const std::int64_t arena = is_on_host(buffer.cls) ? role.host_bytes : role.arena_bytes;
    if (buffer.offset < 0 || buffer.bytes < 0 || buffer.offset % 64 != 0 || buffer.offset > arena ||
        buffer.bytes > arena - buffer.offset) {
      reports.sink.report(
          Code::wrong_operand, LocId(),
          "a buffer of role `{}` at `{}` with `{}` bytes is not a part of its arena of `{}`, in steps of 64",
          role_name, buffer.offset, buffer.bytes, arena);
      return;
    }
    if (!check_label(facts, buffer, role_name, reports)) return;
  }
  for (std::size_t a = 0; a < view.size(); ++a) {
    if (reports.enough()) return;
    const Action& action = role.actions[a];
    const RoleView::Entry& entry = view.entry(a);
    const std::span<const RoleView::Port> ports = view.ports(a);
    const auto inputs = static_cast<std::uint32_t>(ports.size());
    const std::uint32_t values = inputs + entry.num_outputs;
    const bool collective = is_collective(entry.kind);
    if (action.num_operands < values || action.num_operands > values + 1) {
      reports.sink.report(Code::wrong_operand, facts.loc(action.node),
                          "`{}` has `{}` operands where it needs `{}`", facts.name(action.node),
                          action.num_operands, values);
      continue;
    }
    if (action.num_operands > values &&
        role.buffers[role.operands[action.first_operand + values].buffer.index()].cls !=
            dag::BufferClass::workspace) {
      reports.sink.report(Code::wrong_operand, facts.loc(action.node),
                          "the workspace of `{}` is in a buffer of another class",
                          facts.name(action.node));
    }
    for (std::uint32_t i = 0; i < action.num_operands; ++i) {
      const dag::Operand& operand = role.operands[action.first_operand + i];
      const dag::Buffer& buffer = role.buffers[operand.buffer.index()];
      const std::int64_t bytes =
          i < inputs   ? (ports[i].output == kNone ? 0 : facts.output_bytes[ports[i].output])
          : i < values ? facts.output_bytes[entry.first_output + i - inputs]
                       : 0;
      if (operand.offset < 0 || operand.offset > buffer.bytes ||
          bytes > buffer.bytes - operand.offset) {
        reports.sink.report(
            Code::wrong_operand, facts.loc(action.node),
            "operand `{}` of `{}` takes `{}` bytes at `{}` of a buffer that has `{}`", i,
            facts.name(action.node), bytes, operand.offset, buffer.bytes);
      }
      const bool output = i >= inputs && i < values;
      const bool gradient = output && runs_body(entry.kind) &&
                            dag.bodies[entry.body].outputs[i - inputs].kind == PortKind::grad;
      const bool round = output && reduces_to_shards(entry.kind) &&
                         !dag.buckets[entry.bucket].gradients.replicated();
      if (operand.accumulate && !gradient && !round) {
        reports.sink.report(Code::wrong_accumulation, facts.loc(action.node),
                            "operand `{}` of `{}` is added to its buffer, but it is no gradient", i,
                            facts.name(action.node));
      }
      if (!output) continue;
      const bool in_place = (collective && !copies_to_or_from_host(entry.kind)) ||
                            dag.is_optimizer_state(facts.node(action.node), i - inputs);
      bool belongs = false;
      switch (buffer.cls) {
        case dag::BufferClass::parameters:
          belongs = (writes_state(entry.kind) || gathers_shards(entry.kind)) &&
                    buffer.bucket.value() == entry.bucket;
          break;
        case dag::BufferClass::gradients:
          belongs =
              gradient || (reduces_members(entry.kind) && buffer.bucket.value() == entry.bucket);
          break;
        case dag::BufferClass::unreduced: belongs = gradient; break;
        case dag::BufferClass::gathered: belongs = buffer.value == Port{action.node, 0}; break;
        case dag::BufferClass::activations:
        case dag::BufferClass::communication:
        case dag::BufferClass::offloaded:
          belongs = buffer.value == Port{action.node, i - inputs} ||
                    (in_place && names(role, action, inputs, operand.buffer));
          break;
        default: break;
      }
      if (!belongs) {
        reports.sink.report(Code::wrong_operand, facts.loc(action.node),
                            "output `{}` of `{}` is written where something else belongs",
                            i - inputs, facts.name(action.node));
      }
    }
  }
}

}  // namespace piper::verify
