#include "passes/build/differentiate.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "ir/tensor/op_rules.h"

namespace piper::passes {

using namespace tensor;

namespace {

class Differentiator {
 public:
  Differentiator(Graph& graph, DiagnosticSink& sink, const AdjointsOfOp& rule)
      : graph_(graph), sink_(sink), rule_(rule) {}

  bool run();

 private:
  std::string text(Symbol symbol) const { return std::string(graph_.context().text(symbol)); }
  /// The pass of the ops that compute the adjoint of a value.
  Pass pass_of(ValueId value) const { return has_data_[value.index()] ? Pass::BI : Pass::BW; }

  void look_upstream();
  bool look_downstream();
  bool visit(NodeId forward);
  void move_sums();
  bool differentiate_op(NodeId forward, std::span<const ValueId> dy);
  void give(ValueId value, ValueId adjoint, NodeId use, bool own);
  ValueId total(ValueId value);
  bool multiplies_weight(NodeId forward, ValueId value) const;
  ValueId take_product(ValueId value, NodeId use);
  ValueId seed(Loss loss, NodeId forward);
  ValueId append(Op op, std::span<const ValueId> operands, Attrs attrs, Pass pass, NodeId origin,
                 ValueId adjoint_of);
  ValueId cast(ValueId adjoint, DType dtype, Pass pass, NodeId origin, ValueId adjoint_of) {
    Attrs to;
    to.dtype = dtype;
    const ValueId operands[] = {adjoint};
    return append(Op::cast, operands, std::move(to), pass, origin, adjoint_of);
  }

  Graph& graph_;
  DiagnosticSink& sink_;
  const AdjointsOfOp& rule_;
  std::size_t forward_nodes_ = 0, forward_values_ = 0;
  // Per forward value:
  std::vector<bool> trainable_;       // a parameter is upstream, through differentiable operands
  std::vector<bool> has_data_;        // an input of the model is upstream
  std::vector<bool> reached_;         // a loss is downstream, through differentiable operands
  std::vector<std::uint32_t> param_;  // position in params, or kNone
  /// The adjoint of one use of a value, in the type of its rule: wide for a sum, narrow for the
  /// adjoint of a value after rounding.
  struct Contribution {
    ValueId adjoint;
    NodeId use;
  };
  std::vector<std::vector<Contribution>> contributions_;
  // The `add` nodes of adjoints of values used several times, all in the region that makes them.
  std::vector<NodeId> sums_;
  // Per forward node: the losses whose sum it computes.
  std::vector<std::vector<std::uint32_t>> losses_;
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;
};

void Differentiator::look_upstream() {
  trainable_.assign(forward_values_, false);
  has_data_.assign(forward_values_, true);
  param_.assign(forward_values_, kNone);
  for (std::size_t i = 0; i < graph_.params.size(); ++i) {
    const std::size_t value = graph_.params[i].value.index();
    param_[value] = static_cast<std::uint32_t>(i);
    trainable_[value] = !graph_.params[i].frozen;
    has_data_[value] = false;
  }
  for (const Node& node : graph_.nodes()) {
    bool trainable = false, has_data = false;
    const auto operands = graph_.operands(node);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      has_data = has_data || has_data_[operands[i].index()];
      trainable = trainable || (trainable_[operands[i].index()] && is_differentiable(node.op, i));
    }
    for (std::size_t i = 0; i < node.num_results; ++i) {
      trainable_[node.first_result + i] = trainable;
      has_data_[node.first_result + i] = has_data;
    }
  }
}

/// Marks values on the way to losses and refuses parameters without an effect on any loss.
bool Differentiator::look_downstream() {
  reached_.assign(forward_values_, false);
  for (const Loss& loss : graph_.losses) reached_[loss.elements.index()] = true;
  for (std::size_t n = forward_nodes_; n-- > 0;) {
    const Node& node = graph_.nodes()[n];
    bool reached = false;
    for (std::size_t i = 0; i < node.num_results; ++i)
      reached = reached || reached_[node.first_result + i];
    if (!reached) continue;
    const auto operands = graph_.operands(node);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (is_differentiable(node.op, i)) reached_[operands[i].index()] = true;
      // An op without a rule would silently leave a parameter without a gradient.
      const bool has_rule = is_differentiable(node.op, i) || !trainable_[operands[i].index()] ||
                            !is_floating(graph_.type(operands[i]).dtype);
      if (!has_rule && node.op != Op::select_ge && node.op != Op::select_lt) {
        sink_
            .report(Code::missing_derivative, node.loc,
                    "{} has no derivative, and it stands between a loss and a weight",
                    tensor::in_words(node.op))
            .hint("write it with the operations it is made of");
        return false;
      }
    }
  }
  bool all = true;
  for (const Param& param : graph_.params) {
    if (reached_[param.value.index()] || param.frozen) continue;
    all = false;
    sink_
        .report(Code::unreached_parameter, param.loc,
                "weight `{}` has no effect on any loss; a trained weight needs a gradient",
                text(param.name))
        .hint("use it on the way to a `loss`, or remove it");
  }
  return all;
}

ValueId Differentiator::append(Op op, std::span<const ValueId> operands, Attrs attrs, Pass pass,
                               NodeId origin, ValueId adjoint_of) {
  const Node& forward = graph_.node(origin);
  const Symbol name = graph_.context().symbol("d." + text(graph_.value(adjoint_of).name) + "." +
                                              std::string(info(op).name));
  const NodeId node =
      graph_.add(op, operands, std::move(attrs), pass, forward.region, forward.loc, origin, name);
  return graph_.result(graph_.node(node));
}

/// One use's adjoint of `value`. For a parameter it becomes an entry of `grads`: `own` if it has no
/// other reader, else copied.
void Differentiator::give(ValueId value, ValueId adjoint, NodeId use, bool own) {
  const std::uint32_t param = param_[value.index()];
  if (param == kNone) {
    contributions_[value.index()].push_back({adjoint, use});
    return;
  }
  const Type wanted = gradient_type(graph_.type(value));
  if (graph_.type(adjoint).dtype != wanted.dtype) {
    adjoint = cast(adjoint, wanted.dtype, Pass::BW, use, value);
  } else if (!own || graph_.node(graph_.value(adjoint).def).pass != Pass::BW) {
    Attrs copy;
    copy.shape = wanted;
    const ValueId operands[] = {adjoint};
    adjoint = append(Op::broadcast, operands, std::move(copy), Pass::BW, use, value);
  }
  graph_.grads.push_back({ParamId(param), adjoint});
}

/// The sum of all adjoints of a value; invalid if there is none.
ValueId Differentiator::total(ValueId value) {
  std::vector<Contribution>& parts = contributions_[value.index()];
  if (parts.empty()) return {};
  const DType dtype = graph_.type(value).dtype;
  // Rounded at the use, so that the rounded value is sent. Ops whose result was rounded afterwards
  // take the adjoint as it is.
  const NodeId def = graph_.value(value).def;
  const Op op = def.valid() ? graph_.node(def).op : Op::cast;
  const bool as_it_is =
      parts.size() == 1 && (op == Op::contract || op == Op::sum || op == Op::scale);
  const auto part = [&](std::size_t i) {
    const DType made = graph_.type(parts[i].adjoint).dtype;
    return made == dtype || (as_it_is && wide(made) == dtype)
               ? parts[i].adjoint
               : cast(parts[i].adjoint, dtype, pass_of(value), parts[i].use, value);
  };
  // All terms come before the first addition, so that place_sums may reorder the additions
  // (place_sums.h).
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i].adjoint = part(i);
  ValueId sum = parts[0].adjoint;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const ValueId operands[] = {sum, parts[i].adjoint};
    sum = append(Op::add, operands, {}, pass_of(value), graph_.value(value).def, value);
    const bool here = std::all_of(parts.begin(), parts.end(), [&](const Contribution& each) {
      return graph_.node(each.use).region == graph_.node(def).region;
    });
    if (here) sums_.push_back(graph_.value(sum).def);
  }
  std::vector<Contribution>().swap(parts);
  return sum;
}

/// `x @ w` or `w @ x` with a weight or an input: all such uses of x in one region have the same
/// dependencies, and are in one segment under any strategy.
bool Differentiator::multiplies_weight(NodeId forward, ValueId value) const {
  const Node& node = graph_.node(forward);
  if (node.op != Op::contract) return false;
  const auto operands = graph_.operands(node);
  if (operands[0] == operands[1] || (operands[0] != value && operands[1] != value)) return false;
  return !graph_.value(operands[0] == value ? operands[1] : operands[0]).def.valid();
}

/// If the adjoint of `use` is a product that can add to the last adjoint of a value: removes that
/// adjoint from the contributions and returns it; else invalid.
ValueId Differentiator::take_product(ValueId value, NodeId use) {
  std::vector<Contribution>& parts = contributions_[value.index()];
  if (parts.empty() || !multiplies_weight(use, value)) return {};
  const NodeId def = graph_.value(parts.back().adjoint).def;
  if (!def.valid()) return {};
  const Node& last = graph_.node(def);
  const bool product =
      (last.op == Op::contract || last.op == Op::contract_add) && last.pass == Pass::BI;
  if (!product || !multiplies_weight(last.origin, value) ||
      graph_.node(last.origin).region != graph_.node(use).region)
    return {};
  const ValueId taken = parts.back().adjoint;
  parts.pop_back();
  return taken;
}

bool Differentiator::differentiate_op(NodeId forward, std::span<const ValueId> dy) {
  const Node node = graph_.node(forward);  // a copy: the graph grows
  const auto span = graph_.operands(node);
  const std::vector<ValueId> operands(span.begin(), span.end());
  std::unique_ptr<bool[]> wanted(new bool[operands.size()]());
  for (std::size_t i = 0; i < operands.size(); ++i)
    wanted[i] = trainable_[operands[i].index()] && is_differentiable(node.op, i);
  if (node.op == Op::attend && dy.size() > 1 && dy[1].valid()) {
    sink_.report(Code::missing_derivative, node.loc,
                 "the second result of `attend` has no derivative");
    return false;
  }

  const std::size_t first_new = graph_.nodes().size();
  const Emit emit = [&](Op op, std::vector<ValueId> values, Attrs attrs, std::size_t for_operand,
                        std::size_t result) {
    const ValueId value = operands[for_operand];
    if (op == Op::contract && pass_of(value) == Pass::BI) {
      if (const ValueId sum = take_product(value, forward); sum.valid()) {
        values.push_back(sum);
        op = Op::contract_add;
      }
    }
    const ValueId made = append(op, values, std::move(attrs), pass_of(value), forward,
                                op == Op::attend_grad ? graph_.result(node) : value);
    return ValueId(made.value() + static_cast<std::uint32_t>(result));
  };
  const std::vector<ValueId> adjoint =
      rule_({graph_, node, dy, {wanted.get(), operands.size()}}, emit);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!wanted[i] || adjoint[i].valid()) continue;
    sink_
        .report(
            Code::missing_adjoint, node.loc,
            "internal error: the derivative of {} gives no adjoint of operand {}, but the op table says that there is one",
            tensor::in_words(node.op), i + 1)
        .hint(
            "this is a bug of the compiler: report it with the program; `ir/tensor/adjoints.cpp` holds the rule");
    return false;
  }

  // A step shared by several operands is BI as soon as one that needs it is.
  std::vector<Node>& nodes = graph_.mutable_nodes();
  const auto raise = [&](ValueId value) {
    const NodeId def = graph_.value(value).def;
    if (def.valid() && def.index() >= first_new) nodes[def.index()].pass = Pass::BI;
  };
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (adjoint[i].valid() && pass_of(operands[i]) == Pass::BI) raise(adjoint[i]);
  }
  for (std::size_t n = nodes.size(); n-- > first_new;) {
    if (nodes[n].pass != Pass::BI) continue;
    for (const ValueId operand : graph_.operands(nodes[n])) raise(operand);
  }

  // Whether this rule made the value, and no other op or adjoint of the rule reads it or is it.
  const std::size_t end = graph_.nodes().size();
  const auto is_own = [&](std::size_t i) {
    if (const NodeId def = graph_.value(adjoint[i]).def; !def.valid() || def.index() < first_new)
      return false;
    for (std::size_t n = first_new; n < end; ++n) {
      const auto read = graph_.operands(graph_.nodes()[n]);
      if (std::find(read.begin(), read.end(), adjoint[i]) != read.end()) return false;
    }
    return std::count(adjoint.begin(), adjoint.end(), adjoint[i]) == 1;
  };
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (adjoint[i].valid()) give(operands[i], adjoint[i], forward, is_own(i));
  }
  return true;
}

/// The derivative of a loss by its elements: one over their number.
ValueId Differentiator::seed(Loss loss, NodeId forward) {
  const Pass pass = pass_of(loss.elements);
  const auto fill = [&](double number, Type type) {
    Attrs attrs;
    attrs.scalar = number;
    attrs.shape = std::move(type);
    return append(Op::fill, {}, std::move(attrs), pass, forward, loss.elements);
  };
  const Type elements = graph_.type(loss.elements);
  if (!loss.mask) return fill(1.0 / static_cast<double>(loss.count), elements);
  const ValueId most[] = {loss.mask->count, fill(1, {DType::f64, {}})};
  ValueId count = append(Op::maximum, most, {}, pass, forward, loss.elements);
  if (elements.dtype != DType::f64)
    count = cast(count, elements.dtype, pass, forward, loss.elements);
  const ValueId quotient[] = {fill(1, elements), count};
  return append(Op::div, quotient, {}, pass, forward, loss.elements);
}

bool Differentiator::visit(NodeId forward) {
  for (const std::uint32_t l : losses_[forward.index()]) {
    const Loss& loss = graph_.losses[l];
    if (!trainable_[loss.elements.index()]) continue;
    give(loss.elements, seed(loss, forward), forward, true);
  }
  const Node& node = graph_.node(forward);
  std::vector<ValueId> dy(node.num_results);
  bool any = false;
  const std::uint32_t first = node.first_result;
  for (std::size_t i = 0; i < dy.size(); ++i) {
    dy[i] = total(ValueId(first + static_cast<std::uint32_t>(i)));
    any = any || dy[i].valid();
  }
  return !any || differentiate_op(forward, dy);
}

/// A sum whose readers are all BW, in its own region, is BW: a region with only integer inputs then
/// has an empty BI. Longer chains stay BI, because a partition may cut between their ops, and a
/// stage's BI must not wait for another's BW. Sums of adjoints from other regions stay BI too,
/// because they may be moved there (place_sums.h).
void Differentiator::move_sums() {
  std::vector<Node>& nodes = graph_.mutable_nodes();
  std::vector<bool> moves(nodes.size(), false);
  for (const NodeId sum : sums_) moves[sum.index()] = nodes[sum.index()].pass == Pass::BI;
  for (std::size_t n = nodes.size(); n-- > forward_nodes_;) {
    const bool is_sum = moves[n];
    if (is_sum) nodes[n].pass = Pass::BW;  // all its readers come after it and have been visited
    for (const ValueId operand : graph_.operands(nodes[n])) {
      const NodeId def = graph_.value(operand).def;
      if (def.valid() &&
          (nodes[n].pass != Pass::BW || nodes[n].region != nodes[def.index()].region))
        moves[def.index()] = false;
    }
  }
}

bool Differentiator::run() {
  forward_nodes_ = graph_.nodes().size();
  forward_values_ = graph_.values().size();
  if (graph_.losses.empty()) {
    sink_.report(Code::nothing_to_train, LocId(), "model `{}` has no loss", graph_.name)
        .hint("end the model with `loss ...`");
    return false;
  }
  look_upstream();
  if (!look_downstream()) return false;
  contributions_.resize(forward_values_);
  losses_.resize(forward_nodes_);
  for (std::size_t l = 0; l < graph_.losses.size(); ++l) {
    losses_[graph_.value(graph_.losses[l].sum).def.index()].push_back(
        static_cast<std::uint32_t>(l));
  }
  NodePolls polls(graph_.context().cancellation);
  for (std::size_t n = forward_nodes_; n-- > 0;) {
    polls.visit();
    if (!visit(NodeId::at(n))) return false;
  }
  move_sums();
  return true;
}

}  // namespace

bool differentiate(Graph& graph, DiagnosticSink& sink, const AdjointsOfOp& rule) {
  return Differentiator(graph, sink, rule).run();
}

}  // namespace piper::passes
