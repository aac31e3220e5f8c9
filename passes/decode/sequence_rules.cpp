#include "passes/decode/sequence_rules.h"

#include <algorithm>
#include <optional>

namespace piper::passes {

using namespace tensor;

namespace {

constexpr const char* kOnlyAttention =
    "only causal attention may read other positions of the text: `attend(q, k, v, causal: true)`";

bool names(const Attrs& attrs, Symbol dim) {
  return std::find(attrs.dims.begin(), attrs.dims.end(), dim) != attrs.dims.end();
}

SequenceUse refuse(std::string why) { return {std::move(why), kOnlyAttention, {}, {}, false}; }

/// Operands and results have one dimension of positions.
SequenceUse along(Symbol sequence) { return {{}, {}, sequence, sequence, false}; }

/// Positions of queries and keys. The positions of a text are those of all three operands, or a
/// leading dimension.
SequenceUse attend(const Node& node, std::span<const OperandOfNode> operands) {
  const std::size_t rank = operands[0].type->dims.size();
  const auto place = [&](std::size_t i) -> std::optional<std::size_t> {
    return operands[i].sequence.valid() ? operands[i].type->find(operands[i].sequence)
                                        : std::nullopt;
  };
  const std::size_t position = rank - 3;
  const auto q = place(0), k = place(1), v = place(2);
  const auto leads = [&](const std::optional<std::size_t>& at) { return !at || *at < position; };
  if (leads(q) && leads(k) && leads(v)) {
    std::optional<Symbol> sequence;
    for (const OperandOfNode& operand : operands) {
      if (!operand.sequence.valid()) continue;
      if (sequence && *sequence != operand.sequence)
        return refuse("`attend` has two dimensions of positions");
      sequence = operand.sequence;
    }
    return along(*sequence);
  }
  if (q == position && !k && !v) {
    if (node.attrs.causal)
      return refuse("causal `attend` has keys and values that depend on no token");
    return {{}, {}, operands[0].sequence, {}, false};
  }
  if (q != position || k != position || v != position)
    return refuse("`attend` reads positions of the text along another dimension than its own");
  if (!node.attrs.causal) return refuse("`attend` without `causal: true` reads later positions");
  return {{}, {}, operands[0].sequence, {}, true};
}

/// The only dimension of positions of operands that align by name.
SequenceUse aligned(const Node& node, std::span<const OperandOfNode> operands,
                    const SymbolTable& symbols) {
  Symbol sequence;
  for (const OperandOfNode& operand : operands) {
    if (!operand.sequence.valid()) continue;
    if (sequence.valid() && sequence != operand.sequence)
      return refuse(in_words(node.op) + " joins positions along `" +
                    std::string(symbols.text(sequence)) + "` with those along `" +
                    std::string(symbols.text(operand.sequence)) + "`");
    sequence = operand.sequence;
  }
  if (names(node.attrs, sequence))
    return refuse(in_words(node.op) + " goes along `" + std::string(symbols.text(sequence)) +
                  "`, over all positions of the text");
  return along(sequence);
}

SequenceUse lookup(std::span<const OperandOfNode> operands) {
  if (!operands[0].sequence.valid()) return {{}, {}, operands[1].sequence, {}, false};
  if (operands[1].sequence.valid() || operands[0].type->dims.front().name == operands[0].sequence)
    return refuse("`lookup` reads rows of other positions of the text");
  return {{}, {}, operands[0].sequence, {}, false};
}

}  // namespace

SequenceUse sequence_use(const Node& node, std::span<const OperandOfNode> operands,
                         const SymbolTable& symbols) {
  switch (node.op) {
    case Op::attend: return attend(node, operands);
    case Op::lookup: return lookup(operands);
    case Op::rename: {
      Symbol sequence = operands[0].sequence;
      for (std::size_t i = 0; i < node.attrs.dims.size(); ++i) {
        if (node.attrs.dims[i] == operands[0].sequence) sequence = node.attrs.dims2[i];
      }
      return along(sequence);
    }
    case Op::permute:
      return along(operands[0].sequence);
      // clang-format off
    case Op::add: case Op::sub: case Op::mul: case Op::div: case Op::maximum: case Op::minimum:
    case Op::neg: case Op::scale: case Op::offset: case Op::exp: case Op::log: case Op::sqrt:
    case Op::rsqrt: case Op::square: case Op::sin: case Op::cos: case Op::tanh: case Op::sigmoid:
    case Op::softplus: case Op::relu: case Op::gelu: case Op::silu: case Op::select_ge:
    case Op::select_lt: case Op::dropout: case Op::cast: case Op::fill: case Op::iota:
    case Op::sum: case Op::max: case Op::softmax: case Op::log_softmax: case Op::rms_norm:
    case Op::layer_norm: case Op::cross_entropy: case Op::slice: case Op::pad: case Op::shift:
    case Op::concat: case Op::rotary: case Op::broadcast: case Op::contract: case Op::contract_add:
      return aligned(node, operands, symbols);
    // Operations of the backward pass and of updates.
    case Op::piecewise: return refuse(in_words(node.op) + " is of updates");
    case Op::relu_grad: case Op::gelu_grad: case Op::silu_grad: case Op::max_grad:
    case Op::softmax_grad: case Op::log_softmax_grad: case Op::rms_norm_grad:
    case Op::layer_norm_grad: case Op::cross_entropy_grad: case Op::lookup_grad:
    case Op::attend_grad:
      return refuse(in_words(node.op) + " is of the backward pass");
      // clang-format on
  }
  return refuse(in_words(node.op) + " has no form for one position");
}

}  // namespace piper::passes
