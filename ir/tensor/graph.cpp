#include "ir/tensor/graph.h"

#include <cassert>

#include "ir/tensor/op_rules.h"

namespace piper::tensor {

namespace {

/// The suffix of result `i` behind the op's name.
std::string_view result_suffix(Op op, std::size_t i) {
  if (op == Op::attend) return i == 0 ? "" : ".lse";
  if (op == Op::attend_grad) return i == 0 ? ".q" : i == 1 ? ".k" : ".v";
  assert(i == 0);
  return "";
}

/// `gpt.0.block.3.`; empty for the root.
std::string region_prefix(const Graph& graph, RegionId region) {
  if (!region.valid()) return {};
  const RegionTable& regions = graph.regions;
  return region_prefix(graph, regions.parent(region)) +
         std::string(graph.context().text(regions.name(region))) + "." +
         std::to_string(regions.index(region)) + ".";
}

}  // namespace

Symbol Graph::unique(Symbol name) {
  auto [entry, fresh] = taken_.try_emplace(name, 1);
  if (fresh) return name;
  for (;;) {
    const Symbol candidate =
        context_->symbol(std::string(context_->text(name)) + "." + std::to_string(taken_[name]++));
    if (taken_.try_emplace(candidate, 1).second) return candidate;
  }
}

ValueId Graph::add_leaf(Type type, Symbol name) {
  values_.push_back({std::move(type), {}, 0, unique(name)});
  return ValueId::at(values_.size() - 1);
}

NodeId Graph::add(Op op, std::span<const ValueId> operands, Attrs attrs, Pass pass, RegionId region,
                  LocId loc, NodeId origin, Symbol name) {
  std::vector<Type> types;
  types.reserve(operands.size());
  for (ValueId operand : operands) types.push_back(type(operand));
  Inferred inferred = infer(op, types, attrs, context_->symbols);
  assert(inferred.error.empty() && "operands do not fit the op");
  if (!name.valid())
    name = context_->symbol(region_prefix(*this, region) + std::string(info(op).name));
  std::vector<Symbol> names;
  for (std::size_t i = 0; i < inferred.types.size(); ++i) {
    const std::string_view suffix = result_suffix(op, i);
    names.push_back(unique(suffix.empty() ? name
                                          : context_->symbol(std::string(context_->text(name)) +
                                                             std::string(suffix))));
  }
  Node node;
  node.op = op;
  node.pass = pass;
  node.region = region;
  node.origin = origin;
  node.loc = loc;
  node.attrs = std::move(attrs);
  return add_unchecked(std::move(node), operands, inferred.types, names);
}

NodeId Graph::add_unchecked(Node node, std::span<const ValueId> operands,
                            std::span<const Type> types, std::span<const Symbol> names) {
  const NodeId id = NodeId::at(nodes_.size());
  node.first_operand = static_cast<std::uint32_t>(operands_.size());
  node.num_operands = static_cast<std::uint32_t>(operands.size());
  node.first_result = static_cast<std::uint32_t>(values_.size());
  node.num_results = static_cast<std::uint32_t>(types.size());
  operands_.insert(operands_.end(), operands.begin(), operands.end());
  for (std::size_t i = 0; i < types.size(); ++i) {
    values_.push_back({types[i], id, static_cast<std::uint16_t>(i), names[i]});
    taken_.try_emplace(names[i], 1);
  }
  nodes_.push_back(std::move(node));
  return id;
}

ParamId Graph::param_of(ValueId value) const {
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (params[i].value == value) return ParamId::at(i);
  }
  return {};
}

InputId Graph::input_of(ValueId value) const {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].value == value) return InputId::at(i);
  }
  return {};
}

}  // namespace piper::tensor
