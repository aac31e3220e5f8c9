#include <unordered_map>

#include "ir/diagnostics/counted.h"
#include "ir/tensor/graph_checks.h"
#include "ir/tensor/graph_text.h"

namespace piper::tensor {

std::string types_text(std::span<const Type> types, const SymbolTable& symbols) {
  std::string text;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (i > 0) text += i + 1 == types.size() ? " and " : ", ";
    text += "`" + print(types[i], symbols) + "`";
  }
  return text;
}

std::string check_loss(const Graph& graph, const Loss& loss) {
  const SymbolTable& symbols = graph.context().symbols;
  const Type& elements = graph.type(loss.elements);
  const Type& sum = graph.type(loss.sum);
  const std::string name = "loss `" + std::string(symbols.text(loss.name)) + "`";
  if (!is_floating(elements.dtype))
    return name + " has elements `" + print(elements, symbols) + "`, which are no floating values";
  if (!sum.dims.empty() || sum.dtype != wide(elements.dtype)) {
    return "the sum of " + name + " is `" + print(sum, symbols) +
           "`, not a scalar of the type of its elements `" + print(elements, symbols) + "`";
  }
  const NodeId def = graph.value(loss.sum).def;
  if (!def.valid() || graph.node(def).op != Op::sum ||
      graph.operands(graph.node(def))[0] != loss.elements || graph.node(def).pass != Pass::F) {
    return "the sum of " + name + " is not made by `sum` from its elements";
  }
  if (loss.count != elements.elements()) {
    return name + " counts " + counted(loss.count, "element") + " of `" + print(elements, symbols) +
           "`, which has " + std::to_string(elements.elements());
  }
  if (!loss.mask) return {};
  const Value& count = graph.value(loss.mask->count);
  if (count.def.valid() || count.type != Type{DType::f64, {}})
    return "the count of " + name + " is `" + print(count.type, symbols) +
           "`, not a leaf of type `f64[]`";
  const Type& targets = graph.type(graph.inputs[loss.mask->targets.index()].value);
  if (targets.dtype != DType::i64 || targets.elements() != elements.elements()) {
    return name + " has elements `" + print(elements, symbols) + "`, but `" +
           print(targets, symbols) + "` decides which of them count";
  }
  return {};
}

std::string check_grad(const Graph& graph, const ParamGrad& grad) {
  const SymbolTable& symbols = graph.context().symbols;
  const Param& param = graph.params[grad.param.index()];
  const std::string name = "the gradient of `" + std::string(symbols.text(param.name)) + "`";
  if (graph.type(grad.value) != gradient_type(graph.type(param.value))) {
    return name + " is `" + print(graph.type(grad.value), symbols) + "`, the weight `" +
           print(graph.type(param.value), symbols) + "`";
  }
  if (param.frozen) return name + " is of no use: the weight is frozen";
  const NodeId def = graph.value(grad.value).def;
  if (!def.valid() || graph.node(def).pass == Pass::F)
    return name + " is not made by the backward pass";
  return {};
}

bool verify(const Graph& graph, DiagnosticSink& sink) {
  const std::size_t before = sink.error_count();
  const SymbolTable& symbols = graph.context().symbols;
  std::unordered_map<Symbol, LocId> names;
  const auto check_name = [&](const Value& value, LocId loc) {
    if (!value.name.valid()) {
      sink.report(Code::malformed_tensor_text, loc, "a value of graph `{}` has no name",
                  graph.name);
    } else if (!names.try_emplace(value.name, loc).second) {
      sink.report(Code::repeated_tensor_value, loc, "two values are named `%{}`",
                  symbols.text(value.name));
    }
  };
  const auto check_leaf = [&](ValueId id, LocId loc) {
    if (id.valid() && id.index() < graph.values().size() && !graph.value(id).def.valid()) return;
    sink.report(Code::malformed_tensor_text, loc, "an input or weight of graph `{}` is no leaf",
                graph.name);
  };

  std::size_t made = 0;  // values before the current node: leaves and results, in order
  const auto leaves_up_to = [&](std::size_t end) {
    for (; made < end && made < graph.values().size(); ++made) {
      const Value& leaf = graph.values()[made];
      if (leaf.def.valid())
        sink.report(Code::tensor_order, LocId(),
                    "value `%{}` does not stand where its operation does", symbols.text(leaf.name));
      check_name(leaf, {});
      if (auto why = check_type(leaf.type, symbols); !why.empty())
        sink.report(Code::tensor_operands_do_not_fit, LocId(), "{}", why);
    }
  };
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    leaves_up_to(node.first_result);
    std::vector<Type> types, results;
    bool ordered = true;
    for (const ValueId operand : graph.operands(node)) {
      ordered = ordered && operand.valid() && operand.value() < node.first_result;
      if (ordered) types.push_back(graph.type(operand));
    }
    for (std::size_t i = 0; i < node.num_results; ++i) {
      const Value& value = graph.value(graph.result(node, i));
      check_name(value, node.loc);
      results.push_back(value.type);
      ordered = ordered && value.def == NodeId::at(n) && value.result == i;
    }
    made = node.first_result + node.num_results;
    if (!ordered || node.pass == Pass::B || (node.origin.valid() && node.origin.index() >= n)) {
      sink.report(Code::tensor_order, node.loc,
                  "operation `{}` of graph `{}` stands before what it needs", info(node.op).name,
                  graph.name);
      continue;
    }
    const Inferred inferred = infer(node.op, types, node.attrs, symbols);
    if (!inferred.error.empty()) {
      sink.report(Code::tensor_operands_do_not_fit, node.loc, "{}", inferred.error);
    } else if (inferred.types != results) {
      sink.report(Code::tensor_types_differ, node.loc, "`{}` gives {}, and the graph says {}",
                  info(node.op).name, types_text(inferred.types, symbols),
                  types_text(results, symbols));
    }
  }
  leaves_up_to(graph.values().size());
  if (sink.error_count() != before) return false;

  ValueId last;
  std::unordered_map<Symbol, LocId> param_names;
  for (const Param& param : graph.params) {
    check_leaf(param.value, param.loc);
    if (last.valid() && param.value <= last)
      sink.report(Code::tensor_order, param.loc,
                  "the weights of graph `{}` are not listed in their order", graph.name);
    last = param.value;
    if (!param_names.try_emplace(param.name, param.loc).second) {
      sink.report(Code::repeated_tensor_value, param.loc, "two weights are named `{}`",
                  symbols.text(param.name));
    }
  }
  last = {};
  for (const Input& input : graph.inputs) {
    check_leaf(input.value, input.loc);
    if (last.valid() && input.value <= last)
      sink.report(Code::tensor_order, input.loc,
                  "the inputs of graph `{}` are not listed in their order", graph.name);
    last = input.value;
  }
  for (const Loss& loss : graph.losses) {
    if (auto why = check_loss(graph, loss); !why.empty())
      sink.report(Code::tensor_loss_mismatch, loss.loc, "{}", why);
  }
  for (const ParamGrad& grad : graph.grads) {
    if (auto why = check_grad(graph, grad); !why.empty())
      sink.report(Code::tensor_gradient_mismatch, graph.params[grad.param.index()].loc, "{}", why);
  }
  return sink.error_count() == before;
}

}  // namespace piper::tensor
