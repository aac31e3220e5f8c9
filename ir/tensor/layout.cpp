// Which cuts of the operands need no communication, and in which ops samples stay independent.

#include <algorithm>

#include "ir/tensor/op_rules.h"

namespace piper::tensor {

namespace {

bool contains(const std::vector<Symbol>& dims, Symbol name) { return std::find(dims.begin(), dims.end(), name) != dims.end(); }

/// Operands that have dimension `dim` are all cut along it, the others are whole.
bool cut_where_present(std::span<const Type> operands, std::span<const Symbol> cut, Symbol dim) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const bool has = operands[i].find(dim).has_value();
    if (cut[i] != (has ? dim : Symbol())) return false;
  }
  return true;
}

using Layout = std::optional<ResultLayout>;

Layout cut_along(Symbol dim) { return ResultLayout{dim, false}; }
Layout partial() { return ResultLayout{{}, true}; }

Layout lookup_layout(const Type& table, std::span<const Symbol> cut) {
  if (cut[0].valid() && cut[1].valid()) return std::nullopt;
  if (cut[1].valid()) return cut_along(cut[1]);
  if (table.dims[0].name == cut[0]) return std::nullopt;  // rows that other parts hold
  return cut_along(cut[0]);
}

Layout lookup_grad_layout(const Type& indices, std::span<const Symbol> cut) {
  if (!cut[1].valid()) return std::nullopt;
  if (indices.find(cut[1])) return cut[0] == cut[1] ? partial() : std::nullopt;
  return cut[0].valid() ? std::nullopt : cut_along(cut[1]);
}

Layout attend_layout(std::span<const Type> operands, std::span<const Symbol> cut, const Attrs& attrs, bool gradient) {
  const Type& q = operands[0];
  const Type& k = operands[1];
  const std::size_t rank = q.dims.size();
  const Symbol position = q.dims[rank - 3].name, head = q.dims[rank - 2].name;
  const Symbol key_head = k.dims[rank - 2].name;
  const auto follows_query = [&](Symbol dim) {  // out, lse and dout are cut with q
    for (std::size_t i = 3; i < operands.size(); ++i) {
      if (cut[i] != dim) return false;
    }
    return true;
  };
  // A leading dimension: every head of every position stays whole.
  if (cut[0].valid() && *q.find(cut[0]) + 3 < rank) {
    if (cut[1] == cut[0] && cut[2] == cut[0] && follows_query(cut[0])) return cut_along(cut[0]);
    return std::nullopt;
  }
  // Heads, where each part keeps its query heads together with the key heads that they use.
  if (cut[0] == head && cut[1] == key_head && cut[2] == key_head && follows_query(head)) return cut_along(head);
  // Values of width u are mixed by the same weights; their adjoint alone would not need the others'.
  if (!gradient && !cut[0].valid() && !cut[1].valid() && cut[2].valid() && cut[2] == operands[2].dims.back().name) {
    return std::nullopt;  // out is cut, lse is not: no common layout
  }
  // Queries attend independently when no mask knows their position; dk and dv would then be sums.
  if (!gradient && !attrs.causal && cut[0] == position && !cut[1].valid() && !cut[2].valid()) return cut_along(position);
  return std::nullopt;
}

}  // namespace

std::optional<ResultLayout> layout(Op op, std::span<const Type> operands, std::span<const Symbol> cut, const Attrs& attrs) {
  const auto first = std::find_if(cut.begin(), cut.end(), [](Symbol dim) { return dim.valid(); });
  if (first == cut.end()) return ResultLayout{};
  const Symbol dim = *first;
  switch (op) {
    case Op::contract:
      if (contains(attrs.dims, dim)) return cut[0] == dim && cut[1] == dim ? partial() : std::nullopt;
      break;
    case Op::contract_add:
      if (contains(attrs.dims, dim)) return std::nullopt;  // each part would add all of c
      break;
    case Op::sum:
      if (contains(attrs.dims, dim)) return partial();
      break;
    case Op::rename: {
      const auto at = std::find(attrs.dims.begin(), attrs.dims.end(), dim);
      return cut_along(at == attrs.dims.end() ? dim : attrs.dims2[static_cast<std::size_t>(at - attrs.dims.begin())]);
    }
    case Op::max: case Op::max_grad: case Op::softmax: case Op::softmax_grad: case Op::log_softmax: case Op::log_softmax_grad:
    case Op::rms_norm: case Op::rms_norm_grad: case Op::layer_norm: case Op::layer_norm_grad:
    case Op::cross_entropy: case Op::cross_entropy_grad: case Op::slice: case Op::pad: case Op::shift: case Op::concat: case Op::rotary:
      if (contains(attrs.dims, dim)) return std::nullopt;
      break;
    case Op::lookup: return lookup_layout(operands[0], cut);
    case Op::lookup_grad: return lookup_grad_layout(operands[0], cut);
    case Op::attend: return attend_layout(operands, cut, attrs, false);
    case Op::attend_grad: return attend_layout(operands, cut, attrs, true);
    case Op::add: case Op::sub: case Op::mul: case Op::div: case Op::maximum: case Op::minimum: case Op::neg: case Op::scale: case Op::offset:
    case Op::exp: case Op::log: case Op::sqrt: case Op::rsqrt: case Op::square: case Op::sin: case Op::cos: case Op::tanh: case Op::sigmoid:
    case Op::softplus: case Op::relu: case Op::gelu: case Op::silu: case Op::relu_grad: case Op::gelu_grad: case Op::silu_grad:
    case Op::select_ge: case Op::select_lt: case Op::dropout: case Op::cast: case Op::fill: case Op::iota: case Op::broadcast: case Op::permute: break;
  }
  // Element by element along `dim`.
  return cut_where_present(operands, cut, dim) ? cut_along(dim) : std::nullopt;
}

bool is_samplewise(Op op, std::span<const Type> operands, const Attrs& attrs) {
  const auto sampled = [](const Type& type, Symbol name) {
    const auto at = type.find(name);
    return at && type.dims[*at].sampled;
  };
  switch (info(op).sampling) {
    case Sampling::coupled: return false;
    case Sampling::sums: return true;
    case Sampling::by_dims:
      return std::none_of(attrs.dims.begin(), attrs.dims.end(), [&](Symbol name) { return sampled(operands[0], name); });
    case Sampling::samplewise: break;
  }
  if (op == Op::lookup) return !operands[0].dims[0].sampled;  // a table whose rows are samples mixes them
  if (op == Op::attend || op == Op::attend_grad) {
    for (const Type& type : operands.first(3)) {
      for (std::size_t i = type.dims.size() - 3; i < type.dims.size(); ++i) {
        if (type.dims[i].sampled) return false;
      }
    }
  }
  return true;
}

bool sums_samples(Op op, std::span<const Type> operands, const Attrs& attrs) {
  if (op == Op::lookup_grad) return std::any_of(operands[0].dims.begin(), operands[0].dims.end(), [](const Dim& dim) { return dim.sampled; });
  if (op != Op::sum && op != Op::contract && op != Op::contract_add) return false;
  return std::any_of(operands[0].dims.begin(), operands[0].dims.end(), [&](const Dim& dim) { return dim.sampled && contains(attrs.dims, dim.name); });
}

std::vector<NodeId> coupling_ops(const Graph& graph) {
  std::vector<bool> read(graph.values().size(), false);
  for (const Node& node : graph.nodes()) {
    if (node.pass != Pass::F) continue;
    for (const ValueId operand : graph.operands(node)) read[operand.index()] = true;
  }
  std::vector<NodeId> coupling;
  std::vector<Type> types;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    if (node.pass != Pass::F) continue;
    types.clear();
    for (const ValueId operand : graph.operands(node)) types.push_back(graph.type(operand));
    const bool summed = sums_samples(node.op, types, node.attrs) && read[graph.result(node).index()];
    if (summed || !is_samplewise(node.op, types, node.attrs)) coupling.push_back(NodeId::at(n));
  }
  return coupling;
}

}  // namespace piper::tensor
