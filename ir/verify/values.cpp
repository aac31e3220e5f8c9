#include "ir/verify/values.h"

#include <algorithm>
#include <numeric>

#include "ir/verify/boxes.h"

namespace piper::verify {

namespace {

using dag::EdgeClass;

/// Its outputs come from inputs of other members: an all_gather_v, or an all_reduce to which it
/// contributes nothing.
bool takes_from_members(const Node& node) {
  return gathers_lists(node.kind) || (reduces_members(node.kind) && node.num_inputs == 0);
}

}  // namespace

bool Values::find() {
  facts_.tables->follows_order = follows_order();
  if (!facts_.tables->follows_order && !acyclic()) return false;
  origins();
  types_of_outputs();
  return true;
}

bool Values::follows_order() {
  const std::vector<std::uint32_t>& position = facts_.position;
  if (position.empty()) return false;
  for (std::size_t i = 0; i < dag_.nodes.size(); ++i) {
    const Node& node = dag_.nodes[i];
    for (const Input& input : dag_.inputs_of(node)) {
      if (input.cls != EdgeClass::param && input.source.node.valid() &&
          position[input.source.node.index()] >= position[i])
        return false;
    }
    if (is_recv(node.kind)) {
      const NodeId send = dag_.comms[node.comm.index()].members.front();
      if (send.index() != i && position[send.index()] >= position[i]) return false;
    } else if (takes_from_members(node)) {
      for (const NodeId member : dag_.comms[node.comm.index()].members) {
        for (const Input& input : dag_.inputs_of(facts_.node(member))) {
          if (input.cls != EdgeClass::param && input.source.node.valid() &&
              position[input.source.node.index()] >= position[i])
            return false;
        }
      }
    }
  }
  return true;
}

bool Values::acyclic() {
  const std::size_t n = dag_.nodes.size();
  std::vector<std::uint32_t> first(n + 1, 0), pending(n, 0), taker(dag_.comms.size(), kNone);
  for (std::size_t i = 0; i < n; ++i) {
    const Node& node = dag_.nodes[i];
    if (takes_from_members(node) && taker[node.comm.index()] == kNone)
      taker[node.comm.index()] = static_cast<std::uint32_t>(i);
  }
  const auto for_each_source = [&](std::uint32_t i, auto visit) {
    const auto inputs = [&](const Node& of) {
      for (const Input& input : dag_.inputs_of(of)) {
        if (input.cls != EdgeClass::param && input.source.node.valid())
          visit(input.source.node.value());
      }
    };
    const Node& node = dag_.nodes[i];
    inputs(node);
    if (is_recv(node.kind)) {
      const NodeId send = dag_.comms[node.comm.index()].members.front();
      if (send.value() != i) visit(send.value());
    } else if (takes_from_members(node) && taker[node.comm.index()] != i) {
      visit(taker[node.comm.index()]);
    } else if (takes_from_members(node)) {
      for (const NodeId member : dag_.comms[node.comm.index()].members) {
        if (member.value() != i) inputs(facts_.node(member));
      }
    }
  };
  for (std::uint32_t i = 0; i < n; ++i) {
    for_each_source(i, [&](std::uint32_t source) {
      ++first[source + 1];
      ++pending[i];
    });
  }
  for (std::size_t i = 0; i < n; ++i) first[i + 1] += first[i];
  std::vector<std::uint32_t> readers(first[n]), fill(first.begin(), first.end() - 1);
  for (std::uint32_t i = 0; i < n; ++i) {
    for_each_source(i, [&](std::uint32_t source) { readers[fill[source]++] = i; });
  }
  std::vector<std::uint32_t> ready;
  ready.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    if (pending[i] == 0) ready.push_back(static_cast<std::uint32_t>(i));
  }
  for (std::size_t k = 0; k < ready.size(); ++k) {
    const std::uint32_t i = ready[k];
    for (std::uint32_t r = first[i]; r < first[i + 1]; ++r) {
      if (--pending[readers[r]] == 0) ready.push_back(readers[r]);
    }
  }
  if (ready.size() == n) return true;
  // Walk backwards among the nodes that never became ready until one repeats.
  std::vector<std::uint32_t> seen(n, kNone), path;
  std::uint32_t at = 0;
  while (pending[at] == 0) ++at;
  while (seen[at] == kNone) {
    seen[at] = static_cast<std::uint32_t>(path.size());
    path.push_back(at);
    std::uint32_t next = kNone;
    for_each_source(at, [&](std::uint32_t source) {
      if (pending[source] > 0) next = source;
    });
    at = next;
  }
  auto report = facts_.sink.report(Code::cyclic_dag, dag_.nodes[at].loc,
                                   "the value of `{}` depends on itself", facts_.name(NodeId(at)));
  for (std::size_t k = seen[at]; k < path.size(); ++k) {
    const NodeId node(path[k]), source(k + 1 < path.size() ? path[k + 1] : at);
    report.related(facts_.loc(node), "`{}` reads `{}`", facts_.name(node), facts_.name(source));
  }
  return false;
}

void Values::origins() {
  std::vector<std::uint32_t>& origin = facts_.origin;
  origin.resize(facts_.owner.size());
  std::iota(origin.begin(), origin.end(), 0u);
  std::vector<std::uint32_t> passed_on;
  for (std::uint32_t i = 0; i < dag_.nodes.size(); ++i) {
    if (!is_recv(facts_.kind[i]) && !gathers_lists(facts_.kind[i]) &&
        !copies_to_or_from_host(facts_.kind[i]))
      continue;
    std::uint32_t next = facts_.output_base[i];
    for (const NodeId member : dag_.comms[dag_.nodes[i].comm.index()].members) {
      const Node& other = facts_.node(member);
      if (is_recv(facts_.kind[i]) && !is_send(other.kind)) break;  // the send comes first
      for_each_port(dag_, other, [&](std::span<const Input> sources) {
        if (next < facts_.output_base[i + 1] && sources[0].source.node.valid()) {
          origin[next] = facts_.output(sources[0].source);
          passed_on.push_back(next);
        }
        ++next;
      });
      if (is_recv(facts_.kind[i])) break;
    }
  }
  // A value may be passed on several times. The DAG is acyclic, so each chain ends, and no part
  // of it is walked twice.
  std::vector<std::uint32_t> way;
  for (std::uint32_t output : passed_on) {
    way.clear();
    for (; origin[output] != output; output = origin[output]) way.push_back(output);
    for (const std::uint32_t passed : way) origin[passed] = output;
  }
}

std::uint32_t Values::number_of(const tensor::Type& type) {
  if (&type == last_) return last_number_;  // many loads of one input
  last_ = &type;
  return last_number_ = find_number(type);
}

std::uint32_t Values::find_number(const tensor::Type& type) {
  std::vector<std::uint32_t>& alike =
      alike_[type.bytes() * 31 + static_cast<std::int64_t>(type.dims.size())];
  for (const std::uint32_t number : alike) {
    if (types_[number] == type) return number;
  }
  alike.push_back(static_cast<std::uint32_t>(types_.size()));
  types_.push_back(type);
  return alike.back();
}

void Values::types_of_outputs() {
  first_input_type_.reserve(dag_.bodies.size());
  std::vector<std::uint32_t> first_output_type, output_types;
  std::vector<std::int64_t> output_bytes;
  for (const dag::Body& body : dag_.bodies) {
    first_input_type_.push_back(static_cast<std::uint32_t>(input_types_.size()));
    first_output_type.push_back(static_cast<std::uint32_t>(output_types.size()));
    for (const dag::BodyPort& port : body.inputs)
      input_types_.push_back(number_of(body.graph.type(port.value)));
    for (const dag::BodyPort& port : body.outputs) {
      const tensor::Value& value = body.graph.value(port.value);
      output_types.push_back(number_of(value.type));
      output_bytes.push_back(largest_bytes(dag_, value.type, value.layout));
    }
  }
  const std::size_t outputs = facts_.owner.size();
  output_type_.resize(outputs);
  facts_.output_bytes.resize(outputs);
  for (std::uint32_t i = 0; i < dag_.nodes.size(); ++i) {
    const std::uint32_t first = facts_.output_base[i], count = facts_.output_base[i + 1] - first;
    if (runs_body(facts_.kind[i])) {
      const std::uint32_t of_body = first_output_type[dag_.nodes[i].body.index()];
      std::copy_n(output_types.begin() + of_body, count, output_type_.begin() + first);
      std::copy_n(output_bytes.begin() + of_body, count, facts_.output_bytes.begin() + first);
      continue;
    }
    for (std::uint32_t k = 0; k < count; ++k) {
      if (facts_.origin[first + k] != first + k) continue;
      const tensor::Type& type = dag_.output_type({NodeId(i), k});
      output_type_[first + k] = number_of(type);
      facts_.output_bytes[first + k] = largest_bytes(dag_, type, dag_.nodes[i].layout);
    }
  }
  for (std::size_t k = 0; k < outputs; ++k) {
    output_type_[k] = output_type_[facts_.origin[k]];
    facts_.output_bytes[k] = facts_.output_bytes[facts_.origin[k]];
  }
}

}  // namespace piper::verify
